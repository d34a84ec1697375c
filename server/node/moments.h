// Moments of a volume, between the admin API and the history.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "proto/admin.pb.h"
#include "proto/error.h"
#include "replication/replicator.h"
#include "server/node/meta_store.h"
#include "server/node/volume_set.h"
#include "server/volume/history.h"

namespace mariner::node {

// As much of a volume as finding its moments needs. To be copied: whoever asks keeps one until the
// answer is there.
struct MomentsOf {
  std::string volume;  // its name
  VersionTime created;
  volume::History* history = nullptr;
  // Who stamps its writes, here; null: nobody does now.
  std::function<replication::Replicator*()> replicator;
  std::vector<meta::Mark> marks;      // of the volume
  std::shared_ptr<const void> keeps;  // the history, as long as this is held
};
[[nodiscard]] Result<MomentsOf> moments_of(const ServedVolume& volume, MetaStore& store);

// A moment that was asked for, found and settled.
struct ResolvedMoment {
  index::IndexMoment at;
  VersionTime asked;  // 0 when it was not asked for by time
  std::string mark;
  // As the history had them then.
  index::IndexMoment oldest{};  // the first that can be opened
  index::IndexMoment newest{};
};

// Finds the moment that `spec` means, and waits until it is settled, so that it never changes any
// more. kOutsideWindow: before the oldest recoverable moment, or in the future; kNotFound: no such
// mark; kInvalidArgument: nothing was said; kUnavailable: the volume is not coordinated here.
void resolve_moment(const MomentsOf& of, const api::MomentSpec& spec, const Executor& executor,
                    UniqueFunction<void(Result<ResolvedMoment>)> done);
void resolve_moment(const ServedVolume& volume, const api::MomentSpec& spec, MetaStore& store,
                    const Executor& executor, UniqueFunction<void(Result<ResolvedMoment>)> done);

// What was asked for, or now.
[[nodiscard]] api::MomentSpec or_now(api::MomentSpec spec);

// kNotFound.
[[nodiscard]] Result<meta::Mark> find_mark(const MomentsOf& of, const std::string& name);

// As an answer, in UTC and in the daemon's local time.
[[nodiscard]] api::Moment to_api(const index::IndexMoment& at);
[[nodiscard]] api::Moment to_api(const ResolvedMoment& moment);

// The first moment that can be opened.
index::IndexMoment oldest_moment(const ServedVolume& volume);

}  // namespace mariner::node
