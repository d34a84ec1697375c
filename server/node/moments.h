// Moments of a volume, between the admin API and the index.
#pragma once

#include "proto/admin.pb.h"
#include "proto/error.h"
#include "server/node/meta_store.h"
#include "server/node/volume_set.h"

namespace mariner::node {

// A moment that was asked for, found and settled.
struct ResolvedMoment {
  index::IndexMoment at;
  VersionTime asked;  // 0 when it was not asked for by time
  std::string mark;
};

// Finds the moment that `spec` means in `volume`, and waits until it is settled, so that it never
// changes any more. kOutsideWindow: before the oldest recoverable moment, or in the future;
// kNotFound: no such mark; kInvalidArgument: nothing was said.
void resolve_moment(const ServedVolume& volume, const api::MomentSpec& spec, MetaStore& store,
                    Executor& executor, UniqueFunction<void(Result<ResolvedMoment>)> done);

// As an answer, in UTC and in the daemon's local time.
[[nodiscard]] api::Moment to_api(const index::IndexMoment& at);
[[nodiscard]] api::Moment to_api(const ResolvedMoment& moment);

// The first moment that can be opened.
index::IndexMoment oldest_moment(const ServedVolume& volume);

}  // namespace mariner::node
