#include "ifsck/moment_check.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "ifsck/census.h"
#include "ifsck/mend.h"
#include "ifsck/moment.h"
#include "ifsck/recheck.h"

namespace mariner::ifsck {
namespace {

// What has changed so much since the known state that the next check better begins here.
constexpr std::uint64_t kManyChanges = 20'000;
constexpr std::size_t kFindingsMax = 1'000'000;

void add_overlay(const Overlay& overlay, std::vector<BlockRange>& to) {
  overlay.for_each([&](Lbn lbn, const Overlay::Block&) { to.push_back({lbn, BlockCount{1}}); });
}

// Ascending, with gaps between them.
void normalize(std::vector<BlockRange>& ranges) {
  std::ranges::sort(ranges);
  std::vector<BlockRange> merged;
  for (const BlockRange& each : ranges) {
    if (!merged.empty() && each.first <= merged.back().end()) {
      merged.back() =
          BlockRange::between(merged.back().first, std::max(merged.back().end(), each.end()));
    } else {
      merged.push_back(each);
    }
  }
  ranges = std::move(merged);
}

std::uint64_t count_blocks(const std::vector<BlockRange>& ranges) {
  std::uint64_t blocks = 0;
  for (const BlockRange& each : ranges) blocks += each.count.value;
  return blocks;
}

void copy(const Overlay& from, Overlay& to) {
  from.for_each([&](Lbn lbn, const Overlay::Block& block) { to.put(lbn, block); });
}

class Checker {
 public:
  Checker(Past& past, SequenceNumber at, KnownStates& states, Overlay& overlay,
          const MomentCheckOptions& options)
      : past_(past),
        states_(states),
        overlay_(overlay),
        options_(options),
        now_(past, at, overlay) {
    report_.at = at;
    report_.level = options.level;
  }

  Result<MomentReport> run() {
    const auto reach = past_.reach();
    if (!reach) return reach.error();
    const auto time = past_.time_of(report_.at);
    if (!time) return time.error();
    report_.time = *time;
    if (const auto done = begin(*reach); !done) return done.error();
    if (const auto done = replay(); !done) return done.error();
    replayed_ = overlay_.size();
    if (const auto done = now_.open(); !done) return done.error();
    if (const auto done = check(); !done) return done.error();
    keep_sound();
    if (const auto done = mend(); !done) return done.error();
    decide();
    count(now_.view());
    if (then_) count(then_->view());
    return std::move(report_);
  }

 private:
  // With what is known of a moment nearby.
  Result<void> begin(const Past::Reach& reach) {
    while ((known_ = states_.nearest(report_.at, reach.oldest, reach.newest)) != nullptr) {
      if (known_->volume_bytes == past_.size_bytes()) {
        then_.emplace(past_, known_->baseline.at, known_->overlay);
        if (const auto compared = compare(); !compared) return compared;
        const auto opened = then_->open();
        if (opened) break;
        if (opened.error().code == ErrorCode::kIo ||
            opened.error().code == ErrorCode::kUnavailable) {
          return opened;
        }
      }
      forget();
    }
    return {};
  }

  // What both have alike is read once.
  Result<void> compare() {
    const auto [from, to] = std::minmax(known_->baseline.at, report_.at);
    auto changed = past_.changed(from, to);
    if (!changed) return changed.error();
    changed_ = std::move(*changed);
    add_overlay(known_->overlay, changed_);
    normalize(changed_);
    now_.view().share(then_->view(), changed_);
    // Superblock and group descriptors: nearly always they are what a volume begins with.
    const ByteRange beginning{
        0, kBlockBytes + known_->baseline.groups.size() * EXT2_MIN_DESC_SIZE_64BIT};
    std::vector<Lbn> blocks;
    const BlockRange range = beginning.covering_blocks();
    for (Lbn lbn = range.first; lbn < range.end(); lbn = lbn + BlockCount{1}) blocks.push_back(lbn);
    const View::Wish wishes[] = {{&then_->view(), blocks}, {&now_.view(), blocks}};
    return View::prefetch_all(wishes);
  }

  void forget() {
    states_.forget(known_->baseline.at);
    now_.view().share_nothing();
    then_.reset();
    known_.reset();
  }

  Result<void> replay() {
    auto replay = replay_journal(now_.view());
    if (replay) {
      report_.replay = *replay;
      return {};
    }
    if (replay.error().code != ErrorCode::kCorrupt && replay.error().code != ErrorCode::kLimit) {
      return replay.error();
    }
    const auto given_up = give_up_journal(now_.view());
    if (!given_up) return replay.error();
    report_.replay = {.needed = true, .failed = true};
    report_.journal_damage = std::move(replay.error().message);
    return {};
  }

  Result<void> check() {
    if (then_) {
      std::vector<BlockRange> all = changed_;
      add_overlay(overlay_, all);
      normalize(all);
      auto recheck = Recheck::run(then_->context(), now_.context(), known_->baseline, all,
                                  {.findings_max = kFindingsMax});
      if (recheck) {
        report_.since = known_->baseline.at;
        report_.changed_blocks = count_blocks(all);
        next_ = std::move(recheck->next);
        return take(std::move(recheck->findings), recheck->findings_all, recheck->derived);
      }
      if (recheck.error().code != ErrorCode::kInvalidArgument) return recheck.error();
      // Another file system than the one that is known: it was made anew, or grew. (What has not
      // changed is still read there.)
    }
    report_.full = true;
    report_.since = {};
    baseline_.emplace();
    auto census = Census::take(
        now_.context().volume, now_.context().layout,
        {.findings_max = kFindingsMax, .progress = options_.progress, .keep = &*baseline_});
    if (!census) return census.error();
    return take(std::move(census->findings), census->findings_all, census->derived);
  }

  Result<void> take(std::vector<Finding> findings, std::uint64_t all, std::uint64_t derived) {
    sound_ = all == derived;
    report_.findings_all = all;
    report_.findings = std::move(findings);
    if (options_.level >= 2) {
      report_.findings_all -= derived;
      std::erase_if(report_.findings, [](const Finding& each) { return is_derived(each.code); });
    }
    if (report_.findings.size() > options_.findings_max) {
      report_.findings.resize(options_.findings_max);
    }
    return {};
  }

  // What was sound before anything was mended.
  void keep_sound() {
    if (!options_.keep || !sound_) return;
    if (report_.full) {
      keep(std::move(*baseline_));
    } else {
      keep_change(next_);
    }
  }

  void keep_change(const BaselineChange& change) {
    if (report_.changed_blocks < kManyChanges) return;
    Baseline baseline = known_->baseline;
    change.apply(report_.at, baseline);
    keep(std::move(baseline));
  }

  void keep(Baseline baseline) {
    const ext2_super_block& super = now_.context().super;
    KeptBaseline kept{.uuid = {},
                      .volume_bytes = past_.size_bytes(),
                      .time = report_.time,
                      .baseline = std::move(baseline),
                      .overlay = {}};
    static_assert(sizeof kept.uuid == sizeof super.s_uuid);
    std::memcpy(kept.uuid.data(), super.s_uuid, kept.uuid.size());
    kept.baseline.at = report_.at;
    copy(overlay_, kept.overlay);
    // What cannot be kept is found again.
    (void)states_.keep(std::move(kept));
  }

  Result<void> mend() {
    if (!options_.mend || report_.findings_all == 0) return {};
    const bool derived = options_.level < 2;
    auto mended = report_.full ? mend_in_full(now_.view(), derived)
                               : mend_by_change(now_.view(), then_->context(), known_->baseline,
                                                changed_, derived);
    if (!mended) return mended.error();
    report_.repairs = std::move(mended->repairs);
    report_.left = std::move(mended->left);
    if (!options_.keep || sound_ || !report_.left.empty()) return {};
    // From here the next one is checked.
    if (const auto done = now_.open(); !done) return done;
    if (!report_.full) {
      keep_change(mended->next);
      return {};
    }
    baseline_.emplace();
    const auto census = Census::take(now_.context().volume, now_.context().layout,
                                     {.findings_max = 0, .progress = {}, .keep = &*baseline_});
    if (!census) return census.error();
    if (census->sound()) keep(std::move(*baseline_));
    return {};
  }

  void decide() {
    report_.blocks_mended = overlay_.size() - replayed_;
    if (report_.findings_all == 0 && report_.journal_damage.empty()) {
      report_.verdict = Verdict::kClean;
    } else {
      report_.verdict = report_.left.empty() ? Verdict::kRepairable : Verdict::kDamaged;
    }
  }

  void count(const View& view) {
    report_.read.blocks_read += view.counters().blocks_read;
    report_.read.questions += view.counters().questions;
  }

  Past& past_;
  KnownStates& states_;
  Overlay& overlay_;
  const MomentCheckOptions& options_;
  MomentReport report_;
  std::shared_ptr<KeptBaseline> known_;
  std::optional<Moment> then_;
  Moment now_;
  std::vector<BlockRange> changed_;  // between both, and what the known one was mended with
  std::uint64_t replayed_ = 0;
  bool sound_ = false;
  BaselineChange next_;
  std::optional<Baseline> baseline_;
};

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kClean: return "clean";
    case Verdict::kRepairable: return "repairable";
    case Verdict::kDamaged: return "damaged";
  }
  return "?";
}

Result<MomentReport> check_moment(Past& past, SequenceNumber at, KnownStates& states,
                                  Overlay& overlay, const MomentCheckOptions& options) {
  return Checker(past, at, states, overlay, options).run();
}

}  // namespace mariner::ifsck
