// Whom a participant of a volume listens to: one connection, of the newest epoch that it promised.
//
// Shared by the logger and the storage nodes (logger_role.h, storage_role.h). Invariants: an epoch
// is promised durably before anybody is told that it is open; from the moment that a coordinator
// asks, nobody who asked before is heard, so that what is under way is all there will be. Who is
// not heard any more has to be told: it may be a connection that came later and was read earlier.
#pragma once

#include <algorithm>
#include <optional>

#include "proto/units.h"

namespace mariner::replication {

// One connection between a participant and a coordinator. Chosen by the caller, never reused.
using ConnectionId = Ordinal<struct ConnectionTag>;

class ParticipantDoor {
 public:
  explicit ParticipantDoor(Epoch promised) : promised_(promised), asked_(promised) {}

  enum class Asked {
    kStale,    // a newer epoch has asked before
    kPromise,  // the epoch is to be promised first, or again
    kWaits,    // it is promised, or on its way to that
  };

  // Somebody on `connection` claims to be the coordinator of `epoch`. But for kStale, nobody is
  // heard until open().
  Asked ask(ConnectionId connection, Epoch epoch) {
    if (epoch < asked_) return Asked::kStale;
    const bool newer = epoch > asked_ || unpromised_;
    unpromised_ = false;
    asked_ = epoch;
    waiting_ = connection;
    heard_.reset();
    return newer ? Asked::kPromise : Asked::kWaits;
  }

  // It is on stable storage that nobody older than `epoch` is heard.
  void promised(Epoch epoch) { promised_ = std::max(promised_, epoch); }

  // That could not be put there: it is tried again when somebody asks again. Whether somebody waits
  // for it, whom nobody else tells.
  [[nodiscard]] bool not_promised(Epoch epoch) {
    if (epoch != asked_ || promised_ == asked_) return false;
    unpromised_ = true;
    return waiting_.has_value();
  }

  // Somebody waits, and his epoch is promised.
  [[nodiscard]] bool can_open() const { return waiting_.has_value() && promised_ == asked_; }

  // Hears who waits from now on.
  ConnectionId open() {
    heard_ = waiting_;
    waiting_.reset();
    return *heard_;
  }

  // Who is heard or waits.
  [[nodiscard]] std::optional<ConnectionId> current() const { return waiting_ ? waiting_ : heard_; }

  // The connection is gone, or not to be heard any more.
  void leave(ConnectionId connection) {
    if (heard_ == connection) heard_.reset();
    if (waiting_ == connection) waiting_.reset();
  }

  [[nodiscard]] bool hears(ConnectionId connection) const { return heard_ == connection; }
  [[nodiscard]] std::optional<ConnectionId> heard() const { return heard_; }
  // The epoch of whoever is heard or waits; at the start the one that was promised last.
  [[nodiscard]] Epoch epoch() const { return asked_; }

 private:
  Epoch promised_;
  Epoch asked_;
  bool unpromised_ = false;  // asked_ could not be promised
  std::optional<ConnectionId> waiting_;
  std::optional<ConnectionId> heard_;
};

}  // namespace mariner::replication
