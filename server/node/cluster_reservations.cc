#include "server/node/cluster_reservations.h"

#include <utility>

#include "server/node/reservation_store.h"

namespace mariner::node {
namespace {

constexpr auto kAskAgain = std::chrono::milliseconds(200);

Error not_here() { return {ErrorCode::kUnavailable, "this node does not serve the volume now"}; }

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

void ClusterReservations::save(VolumeId volume, const scsi::Reservations& state, Done done) {
  const auto term = terms_.find(volume);
  if (term == terms_.end()) return done(not_here());
  commit(volume, term->second, to_meta(state).SerializeAsString(), kTriesMax, std::move(done));
}

void ClusterReservations::commit(VolumeId volume, Term term, std::string value, int tries,
                                 Done done) {
  if (!lease_.held() || tries == 0) return done(not_here());
  manager::Transaction transaction;
  transaction.compares = {{manager::alive_key(self_), lease_.id()},
                          {manager::volume_key(volume), term.revision}};
  transaction.puts = {{reservations_key(volume), value}};
  store_.commit(std::move(transaction),
                [this, volume, term, value = std::move(value), tries, alive = alive_,
                 done = std::move(done)](const Result<manager::CommitAnswer>& r) mutable {
                  if (!r) return done(r.error());
                  switch (r->outcome) {
                    case manager::CommitOutcome::kApplied: return done({});
                    case manager::CommitOutcome::kUnknown:
                      // (Whether it was, whoever coordinates next finds out. Until then what is
                      // enforced is what was before, and the initiator knows of no change.)
                      return done(Error{ErrorCode::kUnavailable, r->why});
                    case manager::CommitOutcome::kNotApplied: break;
                  }
                  if (!*alive) return done(not_here());
                  // A wish that another node coordinates changes the record as well, and not the
                  // epoch.
                  for (const manager::Entry& entry : r->present) {
                    const std::optional<Term> now = term_of(volume, entry);
                    if (!now || now->epoch != term.epoch || now->revision == term.revision)
                      continue;
                    const auto known = terms_.find(volume);
                    if (known != terms_.end() && known->second.epoch == now->epoch)
                      known->second = *now;
                    return commit(volume, *now, std::move(value), tries - 1, std::move(done));
                  }
                  done(not_here());
                });
}

std::optional<ClusterReservations::Term> ClusterReservations::term_of(
    VolumeId volume, const manager::Entry& record) const {
  if (record.key != manager::volume_key(volume)) return std::nullopt;
  const auto decoded = manager::decode_volume_record(volume, record.value);
  if (!decoded || decoded->coordinator != self_) return std::nullopt;
  return Term{decoded->epoch, record.revision};
}

// The record before what was kept: as long as the record stays, nobody else changes that. Until it
// is read, what the device has is of an earlier epoch, and is not to be saved in this one.
void ClusterReservations::fetch(VolumeId volume, Fetched done) {
  terms_.erase(volume);
  store_.get(manager::volume_key(volume), [this, volume, alive = alive_, done = std::move(done)](
                                              const Result<manager::Reading>& record) mutable {
    if (!*alive) return;
    if (!record) return fetch_later(volume, std::move(done));
    const auto term = record->entry ? term_of(volume, *record->entry) : std::nullopt;
    read(volume, term, std::move(done));
  });
}

void ClusterReservations::read(VolumeId volume, std::optional<Term> term, Fetched done) {
  store_.get(reservations_key(volume), [this, volume, term, alive = alive_, done = std::move(done)](
                                           const Result<manager::Reading>& read) mutable {
    if (!*alive) return;
    if (!read) return fetch_later(volume, std::move(done));
    meta::Reservations saved;
    if (read->entry && !saved.ParseFromString(read->entry->value)) {
      return done(Error{ErrorCode::kCorrupt,
                        "the cluster's entry " + read->entry->key + " cannot be read"});
    }
    if (term) terms_[volume] = *term;
    done(read->entry ? from_meta(saved) : scsi::Reservations{});
  });
}

void ClusterReservations::fetch_later(VolumeId volume, Fetched done) {
  executor_.after(kAskAgain, [this, volume, alive = alive_, done = std::move(done)]() mutable {
    if (*alive) fetch(volume, std::move(done));
  });
}

}  // namespace mariner::node
