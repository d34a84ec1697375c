// The coordinator of one volume's writes: stamps them, sends them to the participants, and answers.
//
// Sans I/O: inputs are calls with the time as an argument, outputs are actions for the caller to
// carry out in order. The same code runs in the daemon and in the simulator.
//
// Invariants:
// - sequence numbers and version times increase strictly; neither is ever given twice, nor a time
//   at or below one that was opened as a moment (raise_floor). Of volumes that share a clock, that
//   is so of all their version times together.
// - a write is answered with success only after the logger has it on stable storage.
// - commit(settled) is sent only for numbers at or below which all are durable or void.
// - admission is bounded (Limits, and what storage has granted); what does not fit waits unstamped,
//   in order. What is stamped passes a grant by less than one write.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "proto/error.h"
#include "replication/messages.h"
#include "replication/settled_frontier.h"
#include "replication/version_clock.h"

namespace mariner::replication {

// Names one request between submit() and its Answer. Chosen by the caller.
struct RequestToken {
  std::uint64_t value = 0;
  friend constexpr auto operator<=>(const RequestToken&, const RequestToken&) = default;
};

struct SendWrite {
  WriteMessage message;
};
struct SendVoid {
  VoidMessage message;
};
// Storage: everything at or below is settled; make it visible.
struct Commit {
  SequenceNumber settled;
};
// To whoever submitted the request. With success: the stamp.
struct Answer {
  RequestToken token;
  Result<Stamp> result;
};
// To whoever asked by settle(): all that was stamped before has settled.
struct Settled {
  RequestToken token;
  SequenceNumber sequence;
};
using Action = std::variant<SendWrite, SendVoid, Commit, Answer, Settled>;
using Actions = std::vector<Action>;

class WriteCoordinator {
 public:
  struct Limits {
    std::size_t writes_in_flight_max = 1024;
    std::uint64_t bytes_in_flight_max = 64u << 20;
  };
  struct Start {
    VolumeId volume;
    Epoch epoch;
    SequenceNumber last;      // every number at or below is settled
    VersionTime floor;        // every version time to come is above
    SequenceNumber frontier;  // durable in the image
  };

  WriteCoordinator(const Start& start, const Limits& limits);

  // A write whose whole payload is in memory. Stamped at once, or when there is room for it.
  void submit(RequestToken token, WriteRequest request, VersionTime now, Actions& out);

  // The logger's acknowledgement of `sequence`, or its failure: the number is then voided.
  void logged(SequenceNumber sequence, const Result<void>& result, VersionTime now, Actions& out);

  // The logger has the void of [first, last] on stable storage, or could not write it. In the
  // latter case no further write is accepted, and whoever waits for settling waits for the answers
  // alone: what is above cannot settle before a restart.
  void void_logged(SequenceNumber first, SequenceNumber last, const Result<void>& result,
                   VersionTime now, Actions& out);

  // Every image holds everything at or below `sequence`.
  void storage_durable(SequenceNumber sequence);

  // Back-pressure from storage: writes are stamped while they add up to less than `bytes`, counted
  // by lag_bytes() since the start. Takes the place of the grant before, and may be less.
  // kUnlimited, as it is at the start, is no bound.
  static constexpr std::uint64_t kUnlimited = UINT64_MAX;
  void grant(std::uint64_t bytes, VersionTime now, Actions& out);

  // Fails what waits and all that comes with `error`. What is stamped goes on.
  void close(const Error& error, Actions& out);

  // Emits Settled once all that has been stamped (and what waits, if `include_waiting`) is settled,
  // with the settled number; after a void that failed that number may be below what was stamped.
  void settle(RequestToken token, bool include_waiting, Actions& out);

  // No version time at or below `time` will be given any more.
  void raise_floor(VersionTime time) { clock_->raise(time); }

  // Version times come from `clock` from now on, which gives none that this one has given.
  void share_clock(std::shared_ptr<VersionClock> clock) {
    clock->raise(floor());
    clock_ = std::move(clock);
  }

  [[nodiscard]] SequenceNumber last_stamped() const { return last_; }
  [[nodiscard]] SequenceNumber settled() const { return settled_.value(); }
  [[nodiscard]] SequenceNumber frontier() const { return frontier_; }
  // The highest number whose write was answered with success: a read waits for it.
  [[nodiscard]] SequenceNumber acknowledged() const { return acknowledged_; }
  [[nodiscard]] VersionTime floor() const { return clock_->last(); }
  [[nodiscard]] Epoch epoch() const { return epoch_; }
  [[nodiscard]] std::size_t in_flight() const { return in_flight_.size(); }
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
  // By lag_bytes(), of all that was ever stamped: what a grant is compared with.
  [[nodiscard]] std::uint64_t stamped_bytes() const { return stamped_bytes_; }

 private:
  struct InFlight {
    RequestToken token;
    std::uint64_t bytes = 0;
    Stamp stamp;
    bool done = false;
  };
  struct Waiting {
    RequestToken token;
    WriteRequest request;
  };
  struct Settler {
    RequestToken token;
    SequenceNumber until;  // valid once `waiting` is 0
    std::uint64_t waiting_until = 0;
  };

  [[nodiscard]] bool has_room(const WriteRequest& request) const;
  void stamp(RequestToken token, WriteRequest request, VersionTime now, Actions& out);
  void admit(VersionTime now, Actions& out);
  void settled(SequenceRange numbers, Actions& out);
  void notify_settlers(Actions& out);
  [[nodiscard]] bool answered(SequenceNumber until) const;
  InFlight& in_flight(SequenceNumber sequence);

  const VolumeId volume_;
  const Epoch epoch_;
  const Limits limits_;
  SequenceNumber last_;
  std::shared_ptr<VersionClock> clock_ = std::make_shared<VersionClock>();
  SequenceNumber frontier_;
  SequenceNumber acknowledged_;
  SettledFrontier settled_;
  std::uint64_t granted_bytes_ = kUnlimited;
  std::uint64_t stamped_bytes_ = 0;  // ever
  bool unsettled_ = false;           // a void failed: the frontier stands still from here on
  std::optional<Error> closed_;
  std::uint64_t bytes_in_flight_ = 0;
  std::deque<InFlight> in_flight_;  // [0] is the lowest number that has not been answered
  std::deque<Waiting> waiting_;
  std::uint64_t waited_total_ = 0;  // requests that ever waited and were taken out since
  std::deque<Settler> settlers_;
};

}  // namespace mariner::replication
