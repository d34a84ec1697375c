#include "server/node/cluster_reservations.h"

#include <utility>

#include "server/node/reservation_store.h"

namespace mariner::node {
namespace {

constexpr auto kAskAgain = std::chrono::milliseconds(200);

}  // namespace

std::string reservations_key(VolumeId volume) {
  return std::string(manager::kClusterPrefix) + "reservations/" + std::to_string(volume.value);
}

scsi::ReservationOptions ClusterReservations::options(VolumeId volume) {
  scsi::ReservationOptions options;
  options.saves_all = true;
  options.save = [this, volume, alive = alive_](const scsi::Reservations& state,
                                                UniqueFunction<void(Result<void>)> done) {
    if (!*alive) return done(Error{ErrorCode::kUnavailable, "the node is stopping"});
    save(volume, state, std::move(done));
  };
  return options;
}

void ClusterReservations::save(VolumeId volume, const scsi::Reservations& state,
                               UniqueFunction<void(Result<void>)> done) {
  const Error not_here{ErrorCode::kUnavailable, "this node does not serve the volume now"};
  if (!lease_.held()) return done(not_here);
  manager::Transaction transaction;
  transaction.compares = {{manager::alive_key(self_), lease_.id()}};
  transaction.puts = {{reservations_key(volume), to_meta(state).SerializeAsString()}};
  store_.commit(std::move(transaction),
                [not_here, done = std::move(done)](const Result<manager::CommitAnswer>& r) mutable {
                  if (!r) return done(r.error());
                  switch (r->outcome) {
                    case manager::CommitOutcome::kApplied: return done({});
                    case manager::CommitOutcome::kNotApplied: return done(not_here);
                    case manager::CommitOutcome::kUnknown:
                      // (Whether it was, whoever coordinates next finds out. Until then what is
                      // enforced is what was before, and the initiator knows of no change.)
                      return done(Error{ErrorCode::kUnavailable, r->why});
                  }
                });
}

void ClusterReservations::fetch(VolumeId volume,
                                UniqueFunction<void(Result<scsi::Reservations>)> done) {
  store_.get(reservations_key(volume), [this, volume, alive = alive_, done = std::move(done)](
                                           const Result<manager::Reading>& read) mutable {
    if (!*alive) return;
    if (!read) {
      return executor_.after(kAskAgain, [this, volume, alive, done = std::move(done)]() mutable {
        if (*alive) fetch(volume, std::move(done));
      });
    }
    if (!read->entry) return done(scsi::Reservations{});
    meta::Reservations saved;
    if (!saved.ParseFromString(read->entry->value)) {
      return done(Error{ErrorCode::kCorrupt,
                        "the cluster's entry " + read->entry->key + " cannot be read"});
    }
    done(from_meta(saved));
  });
}

}  // namespace mariner::node
