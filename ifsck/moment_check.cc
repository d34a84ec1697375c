#include "ifsck/moment_check.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "ifsck/block_ledger.h"
#include "ifsck/census.h"
#include "ifsck/completion.h"
#include "ifsck/draft.h"
#include "ifsck/later_moment.h"
#include "ifsck/mend.h"
#include "ifsck/moment.h"
#include "ifsck/moment_change.h"
#include "ifsck/path_check.h"
#include "ifsck/recheck.h"
#include "ifsck/recheck_memory.h"
#include "ifsck/volume_ranges.h"
#include "proto/crc32c.h"

namespace mariner::ifsck {
namespace {

// What has changed so much since the known state that the next check better begins here.
constexpr std::uint64_t kManyChanges = 20'000;

// Larger ones are read when they are asked for.
constexpr std::uint32_t kDescriptorMax = 64;

void copy(const Overlay& from, Overlay& to) {
  from.for_each([&](Lbn lbn, const Overlay::Block& block) { to.put(lbn, block); });
}

// It may be otherwise the next time.
bool is_passing(ErrorCode code) {
  return code == ErrorCode::kIo || code == ErrorCode::kUnavailable;
}

bool is_of(const KeptBaseline& known, const ExtContext& context) {
  return std::memcmp(known.uuid.data(), context.super.s_uuid, known.uuid.size()) == 0;
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
    overlay_.for_each(
        [&](Lbn lbn, const Overlay::Block& block) { replayed_.emplace(lbn, crc32c(block)); });
    const ExtLayout* const like = then_ ? &then_->context().layout : nullptr;
    if (const auto done = now_.open(like); !done) return done.error();
    if (const auto done = check(); !done) return done.error();
    if (options_.level < 3) keep_sound();
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
        // A history that was begun anew counts from the beginning, too.
        const auto time = past_.time_of(known_->baseline.at);
        if (!time) return time.error();
        then_.emplace(past_, known_->baseline.at, known_->overlay);
        if (const auto compared = compare(); !compared) return compared;
        const auto opened = then_->open();
        if (opened && *time == known_->time && is_of(*known_, then_->context())) break;
        if (!opened && is_passing(opened.error().code)) return opened;
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
    const std::uint64_t each = std::min<std::uint32_t>(known_->descriptor_bytes, kDescriptorMax);
    const ByteRange beginning{0, kBlockBytes + known_->baseline.groups.size() * each};
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
    if (options_.level == 3) return check_one();
    return check_all();
  }

  // A file or folder: by itself, and who else claims what it has.
  Result<void> check_one() {
    const auto change = then_ ? find_claims() : std::optional<MomentChange>();
    if (!change) return change.error();
    auto path = PathCheck::run(now_.context(), options_.path, then_ ? &known_->baseline : nullptr);
    if (!path) return path.error();
    std::vector<Finding> others;
    bool compared = change->has_value();
    if (compared) {
      const auto done = check_claims(**change, path->claims(), [&](const Finding& each) {
        if (each.code == Finding::Code::kClaimedTwice) others.push_back(each);
      });
      compared = done.has_value();
      if (!compared && done.error().code != ErrorCode::kInvalidArgument) return done;
    }
    if (!compared) {
      // Nothing is known yet: from here on it is.
      if (const auto done = check_all(); !done) return done;
      keep_sound();
      std::ranges::copy_if(report_.findings, std::back_inserter(others), [&](const Finding& each) {
        return each.code == Finding::Code::kClaimedTwice && path->in_scope(each);
      });
    }
    std::vector<Finding> found = std::move(path->findings);
    std::ranges::move(others, std::back_inserter(found));
    if (options_.mend && !found.empty()) return compared ? check_all() : Result<void>{};
    return take(std::move(found));
  }

  // Nothing: another file system is known than this one.
  Result<std::optional<MomentChange>> find_claims() {
    const std::vector<BlockRange> all = all_changed();
    const std::vector<FsBlock> root =
        PathCheck::likely(now_.context(), known_->baseline, EXT2_ROOT_INO);
    auto change = MomentChange::find(then_->context(), now_.context(), known_->baseline, all,
                                     {.claims_only = true, .also = root});
    if (!change) {
      if (change.error().code == ErrorCode::kInvalidArgument) return std::optional<MomentChange>();
      return change.error();
    }
    report_.since = known_->baseline.at;
    report_.changed_blocks = count_blocks(all);
    return std::optional(std::move(*change));
  }

  Result<void> take(std::vector<Finding> found) {
    const std::uint64_t all = found.size();
    return take(std::move(found), all, 0);
  }

  Result<void> check_all() {
    if (then_) {
      auto checked = recheck();
      if (checked) {
        report_.since = known_->baseline.at;
        report_.changed_blocks = count_blocks(all_changed());
        report_.known = known_;
        report_.change = checked->next;
        checked_ = *checked;
        return take(std::move(checked->findings), checked->findings_all, checked->derived);
      }
      if (checked.error().code != ErrorCode::kInvalidArgument) return checked.error();
      // Another file system than the one that is known: it was made anew, or grew; or very much of
      // it is. (What has not changed is still read there.)
    }
    report_.full = true;
    report_.since = {};
    baseline_.emplace();
    auto census = Census::take(
        now_.context().volume, now_.context().layout,
        {.findings_max = kMendFindingsMax, .progress = options_.progress, .keep = &*baseline_});
    if (!census) return census.error();
    return take(std::move(census->findings), census->findings_all, census->derived);
  }

  Result<void> take(std::vector<Finding> findings, std::uint64_t all, std::uint64_t derived) {
    sound_ = all == derived;
    report_.sound = sound_;
    report_.findings_all = all;
    unsound_ = unsound_of(findings);
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
      keep_change(report_.change);
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
    KeptBaseline kept{
        .uuid = {},
        .volume_bytes = past_.size_bytes(),
        .descriptor_bytes = static_cast<std::uint32_t>(EXT2_DESC_SIZE(now_.context().fs->super)),
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
    // (What quota files say no check looks at: only who mends counts all that is in use.)
    const bool quota =
        options_.level == 1 && ext2fs_has_feature_quota(now_.context().fs->super) != 0;
    if (!options_.mend || (report_.findings_all == 0 && !quota)) return {};
    if (const auto done = believe_names(); !done) return done;
    if (const auto done = complete(); !done) return done;
    const bool derived = options_.level < 2;
    auto mended = report_.full
                      ? mend_in_full(now_.view(), derived)
                      : mend_by_change(now_.view(), then_->context(), known_->baseline, changed_,
                                       derived, std::exchange(checked_, std::nullopt), &memory_);
    if (!mended) return mended.error();
    std::ranges::move(mended->repairs, std::back_inserter(report_.repairs));
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

  // Inodes that descriptors hide are neither missing nor under way.
  Result<void> believe_names() {
    for (int i = 0; i < kBelieveMax && !report_.full && !unsound_.empty(); ++i) {
      auto repairs = mend_said_unused(now_.context(), unsound_);
      if (!repairs) return repairs.error();
      if (repairs->empty()) return {};
      std::ranges::move(*repairs, std::back_inserter(report_.repairs));
      if (const auto done = now_.open(); !done) return done;
      auto checked = recheck();
      if (!checked) return checked.error();
      unsound_ = unsound_of(checked->findings);
      checked_ = std::move(*checked);
    }
    return {};
  }

  // What was under way, as far as it is done soon afterwards.
  Result<void> complete() {
    if (unsound_.empty() || report_.full || options_.after.count() == 0) return {};
    auto later = LaterMoment::find(past_, report_.at, options_.after, *then_, *known_);
    if (!later) return later.error();
    if (later->moment == nullptr) {
      report_.undone_because = std::move(later->why_not);
      return {};
    }
    count(later->moment->view());
    const auto done = complete_from(*later);
    if (!done) return done.error();
    if (*done) return {};
    report_.undone_because = "what follows does not complete it";
    return now_.open();
  }

  // False: it is no better than without what was completed, and is as it was.
  Result<bool> complete_from(LaterMoment& later) {
    const std::vector<BlockRange> all = all_changed();
    Draft draft(now_.view());
    auto completion = ifsck::complete({.then = then_->context(),
                                       .known = known_->baseline,
                                       .now = now_.context(),
                                       .later = later.moment->context(),
                                       .changed_now = all,
                                       .changed_later = later.changed,
                                       .findings_now = unsound_,
                                       .findings_later = later.findings,
                                       .memory_now = &memory_,
                                       .memory_later = &later.memory},
                                      now_.view());
    if (!completion) return completion.error();
    if (draft.empty()) return false;
    if (const auto opened = now_.open(); !opened) return opened.error();
    auto after = recheck();
    if (!after) return after.error();
    if (after->findings_all - after->derived >= unsound_.size()) return false;
    draft.keep();
    checked_ = std::move(*after);
    report_.completed = std::move(completion->operations);
    report_.completed_as_of = later.moment->view().at();
    if (completion->given_up > 0) report_.undone_because = "some of it was not done soon enough";
    return true;
  }

  // What may differ between both moments, with what they were mended with.
  [[nodiscard]] std::vector<BlockRange> all_changed() const {
    std::vector<BlockRange> all = changed_;
    add_overlay(overlay_, all);
    normalize(all);
    return all;
  }

  Result<Recheck> recheck() {
    return Recheck::run(then_->context(), now_.context(), known_->baseline, all_changed(),
                        {.findings_max = kMendFindingsMax, .memory = &memory_});
  }

  static std::vector<Finding> unsound_of(const std::vector<Finding>& findings) {
    std::vector<Finding> some;
    std::ranges::copy_if(findings, std::back_inserter(some),
                         [](const Finding& each) { return !is_derived(each.code); });
    return some;
  }

  void decide() {
    overlay_.for_each([&](Lbn lbn, const Overlay::Block& block) {
      const auto found = replayed_.find(lbn);
      if (found == replayed_.end() || found->second != crc32c(block)) ++report_.blocks_mended;
    });
    if (report_.findings_all == 0 && report_.journal_damage.empty() && report_.repairs.empty()) {
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
  std::vector<BlockRange> changed_;        // between both, and what the known one was mended with
  std::map<Lbn, std::uint32_t> replayed_;  // what the overlay had then: checksums
  bool sound_ = false;
  std::vector<Finding> unsound_;    // without bitmaps and counts
  std::optional<Recheck> checked_;  // of the view as it is
  RecheckMemory memory_;            // of then and now
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
  auto first = Checker(past, at, states, overlay, options).run();
  const bool again = first && first->full && options.keep && options.after.count() != 0 &&
                     first->verdict == Verdict::kRepairable && !first->sound;
  if (!again) return first;
  // What it was mended to is known now: from there, what was under way is completed.
  overlay.clear();
  auto second = Checker(past, at, states, overlay, options).run();
  if (!second) return second;
  second->full = true;
  second->since = {};
  second->read.blocks_read += first->read.blocks_read;
  second->read.questions += first->read.questions;
  return second;
}

}  // namespace mariner::ifsck
