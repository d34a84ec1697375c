#include "ifsck/follower.h"

#include <algorithm>
#include <utility>

#include "ifsck/commit_search.h"

namespace mariner::ifsck {
namespace {

// What the first look looks through.
constexpr std::uint64_t kWritesFirst = 16 * 1024;
// What was under way is done.
constexpr std::uint64_t kRestNs = 1'000'000'000;

bool is_no_file_system(ErrorCode code) {
  return code == ErrorCode::kNotFound || code == ErrorCode::kCorrupt ||
         code == ErrorCode::kInvalidArgument;
}

}  // namespace

Result<std::optional<Follower::Look>> Follower::look() {
  const auto reach = past_.reach();
  if (!reach) return reach.error();
  if (last_ && reach->newest <= *last_) return std::optional<Look>();
  const auto found = find(*reach);
  if (!found) {
    if (!is_no_file_system(found.error().code)) return found.error();
    last_ = reach->newest;
    return std::optional<Look>();
  }
  if (!*found) return std::optional<Look>();
  last_ = reach->newest;
  Overlay overlay;
  // (The first one is mended, so that the others begin there.)
  auto report = check_moment(past_, (*found)->at, states_, overlay, {.mend = !known_});
  if (!report) {
    if (is_no_file_system(report.error().code)) return std::optional<Look>();
    return report.error();
  }
  const bool tried = !known_;
  known_ = true;
  if (!tried && report->verdict == Verdict::kRepairable) {
    const auto verdict = try_to_mend((*found)->at);
    if (!verdict) return verdict.error();
    report->verdict = *verdict;
  }
  return std::optional(Look{std::move(*report), (*found)->transaction});
}

// Bitmaps and counts always can be: only the rest is tried.
Result<Verdict> Follower::try_to_mend(SequenceNumber at) {
  Overlay overlay;
  const auto report = check_moment(past_, at, states_, overlay, {.level = 2, .keep = false});
  if (!report) return report.error();
  return report->verdict == Verdict::kDamaged ? Verdict::kDamaged : Verdict::kRepairable;
}

Result<std::optional<Follower::Found>> Follower::find(const Past::Reach& reach) {
  const SequenceNumber beginning{reach.newest.value - std::min(kWritesFirst, reach.newest.value)};
  const SequenceNumber from = std::max(last_.value_or(beginning), reach.oldest);
  const auto commits = CommitSearch::run(past_, from, reach.newest);
  if (!commits) return commits.error();
  if (commits->journal) {
    if (commits->commits.empty()) return std::optional<Found>();
    const CommitSearch::Commit& newest = commits->commits.back();
    return std::optional(Found{newest.at, newest.transaction});
  }
  const auto time = past_.time_of(reach.newest);
  if (!time) return time.error();
  if (time->ns + kRestNs > now_().ns) return std::optional<Found>();
  return std::optional(Found{reach.newest, {}});
}

}  // namespace mariner::ifsck
