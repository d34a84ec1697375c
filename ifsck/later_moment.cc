#include "ifsck/later_moment.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "ifsck/journal.h"
#include "ifsck/mend.h"
#include "ifsck/recheck.h"
#include "ifsck/volume_ranges.h"

namespace mariner::ifsck {
namespace {

constexpr std::uint64_t kPauseNs = 200'000'000;  // what was under way is likely done
constexpr std::size_t kLooksMax = 6;
// Beyond, all of the volume is being rewritten.
constexpr std::uint64_t kBlocksMax = 1u << 20;

class Finder {
 public:
  Finder(Past& past, SequenceNumber at, std::chrono::nanoseconds after, Moment& then,
         const KeptBaseline& known)
      : past_(past), at_(at), after_(after), then_(then), known_(known) {}

  Result<LaterMoment> run() {
    const auto end = find_end();
    if (!end) return end.error();
    if (*end <= at_) return std::move(best_);
    const auto candidates = find_candidates(*end);
    if (!candidates) return candidates.error();
    std::size_t least = std::numeric_limits<std::size_t>::max();
    for (const SequenceNumber each : *candidates) {
      auto looked = look(each);
      if (!looked) return looked.error();
      ++looks_;
      if (looked->moment != nullptr && looked->findings.size() < least) {
        least = looked->findings.size();
        best_ = std::move(*looked);
      }
      if (least == 0) break;
    }
    best_.looks = looks_;
    if (best_.moment == nullptr) best_.why_not = "what follows is another file system";
    return std::move(best_);
  }

 private:
  Result<SequenceNumber> find_end() {
    const auto reach = past_.reach();
    if (!reach) return reach.error();
    if (at_ >= reach->newest) {
      best_.why_not = "nothing was written afterwards";
      return at_;
    }
    const auto time = past_.time_of(at_);
    if (!time) return time.error();
    const auto newest = past_.time_of(reach->newest);
    if (!newest) return newest.error();
    SequenceNumber end = reach->newest;
    const VersionTime until{time->ns + static_cast<std::uint64_t>(after_.count())};
    if (time->ns == 0) {
      best_.why_not = "when the moment was is not known";
      return at_;
    }
    if (until < *newest) {
      const auto found = past_.moment_of(until);
      if (!found) return found.error();
      end = *found;
    }
    const auto broken = past_.first_break(at_, end);
    if (!broken) return broken.error();
    if (broken->value != 0) end = SequenceNumber{broken->value - 1};
    if (end <= at_) {
      best_.why_not = broken->value != 0 ? "a rollback or a gap in the history follows"
                                         : "nothing was written soon afterwards";
    }
    return end;
  }

  // Moments that a pause follows, soonest first; and the last one.
  Result<std::vector<SequenceNumber>> find_candidates(SequenceNumber end) {
    const auto changed = past_.changed(at_, end);
    if (!changed) return changed.error();
    std::vector<SequenceNumber> candidates;
    if (count_blocks(*changed) <= kBlocksMax) {
      std::vector<Lbn> blocks;
      for_each_block(*changed, [&](Lbn lbn) { blocks.push_back(lbn); });
      const auto versions = past_.versions(blocks, at_, end);
      if (!versions) return versions.error();
      std::map<SequenceNumber, VersionTime> writes;
      for (const Past::Version& each : *versions) writes[each.sequence] = each.time;
      SequenceNumber before;
      VersionTime time{};
      for (const auto& [sequence, written] : writes) {
        if (before.value != 0 && written.ns >= time.ns + kPauseNs &&
            candidates.size() + 1 < kLooksMax) {
          candidates.push_back(before);
        }
        before = sequence;
        time = written;
      }
    }
    if (candidates.empty() || candidates.back() != end) candidates.push_back(end);
    return candidates;
  }

  // Without a moment: it cannot be compared.
  Result<LaterMoment> look(SequenceNumber at) {
    LaterMoment later;
    const auto [from, to] = std::minmax(known_.baseline.at, at);
    auto changed = past_.changed(from, to);
    if (!changed) return changed.error();
    later.changed = std::move(*changed);
    add_overlay(then_.view().overlay(), later.changed);
    normalize(later.changed);
    later.overlay = std::make_unique<Overlay>();
    auto moment = std::make_unique<Moment>(past_, at, *later.overlay);
    moment->view().share(then_.view(), later.changed);
    if (const auto replayed = replay_journal(moment->view()); !replayed) {
      return failed(replayed.error());
    }
    for (int i = 0;; ++i) {
      add_overlay(*later.overlay, later.changed);
      normalize(later.changed);
      if (const auto opened = moment->open(&then_.context().layout); !opened)
        return failed(opened.error());
      auto check = Recheck::run(then_.context(), moment->context(), known_.baseline, later.changed,
                                {.findings_max = 100'000, .memory = &later.memory});
      if (!check) return failed(check.error());
      std::erase_if(check->findings, [](const Finding& each) { return is_derived(each.code); });
      later.findings = std::move(check->findings);
      if (i == kBelieveMax) break;
      const auto repairs = mend_said_unused(moment->context(), later.findings);
      if (!repairs) return repairs.error();
      if (repairs->empty()) break;
    }
    later.moment = std::move(moment);
    return later;
  }

  static Result<LaterMoment> failed(const Error& error) {
    switch (error.code) {
      case ErrorCode::kNotFound:
      case ErrorCode::kCorrupt:
      case ErrorCode::kInvalidArgument:
      case ErrorCode::kLimit: return LaterMoment();
      default: return error;
    }
  }

  Past& past_;
  const SequenceNumber at_;
  const std::chrono::nanoseconds after_;
  Moment& then_;
  const KeptBaseline& known_;
  LaterMoment best_;
  std::uint64_t looks_ = 0;
};

}  // namespace

Result<LaterMoment> LaterMoment::find(Past& past, SequenceNumber at, std::chrono::nanoseconds after,
                                      Moment& then, const KeptBaseline& known) {
  return Finder(past, at, after, then, known).run();
}

}  // namespace mariner::ifsck
