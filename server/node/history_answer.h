// What `mariner history` shows of a volume: put together from its history, its marks, what checks
// found of its moments, and the steps of the clock.
#pragma once

#include <vector>

#include "proto/admin.pb.h"
#include "proto/executor.h"
#include "proto/meta.pb.h"
#include "server/node/moments.h"

namespace mariner::node {

// What a history does not know by itself.
struct BesideHistory {
  std::vector<meta::ClockStep> clock_steps;
  std::vector<meta::Verdict> verdicts;  // by sequence number
};

// Of more verdicts than this, those that say least are counted in the columns alone.
inline constexpr std::size_t kVerdictEventsMax = 200;

// kLimit: more columns than are drawn; otherwise as resolve_moment().
void answer_history(const MomentsOf& of, const api::HistoryRequest& request, BesideHistory beside,
                    const Executor& executor, UniqueFunction<void(Result<api::History>)> done);

// A mark as an answer.
[[nodiscard]] api::Mark to_api(const meta::Mark& mark, const std::string& volume);
// All of a volume's, the oldest moment first.
[[nodiscard]] api::MarkList to_api(const MomentsOf& of);

// The mark that a request asks for, at a moment that was found.
[[nodiscard]] meta::Mark mark_of(const api::MarkRequest& request, VolumeId volume,
                                 const index::IndexMoment& at, VersionTime now);
// kAlreadyExists; kInvalidArgument: the name is none.
[[nodiscard]] Result<void> check_mark(const MomentsOf& of, const std::string& name);

}  // namespace mariner::node
