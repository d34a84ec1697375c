// One stream as its sender has it: payloads in, batches of datagrams out, at the pace and to those
// whom it suits.
//
// Sans I/O. A payload that is offered gets its place in the stream; its datagrams follow when pace
// and windows allow, and then, for each receiver, a frame that refers to it (way()). So frames are
// never ahead of what they refer to, and what a receiver misses when it reads one is lost, or
// nearly. A payload stays here until each receiver has reported it through: what is missing is sent
// again from it, over that receiver's connection.
//
// Who takes part changes: a receiver is admitted once probes have reached it, and dismissed when
// multicast does not get through any more, when it makes no progress, or when it is much slower
// than the others. Its frames then carry their payloads themselves.
//
// Invariants:
// - a position is given once, and sent at most once by multicast (sealer.h needs that).
// - between what a receiver has through and what is sent there is at most a window: so who was
//   dismissed, and never says what it has, keeps no more than that here.
// One thread.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trm-multicast/membership.h"
#include "trm-multicast/messages.h"
#include "trm-multicast/rate_control.h"

namespace mariner::trm {

// Receivers of a stream, a bit each.
using ReceiverSet = std::uint32_t;
static_assert(kReceiversMax <= 32);

class StreamSender {
 public:
  using Nanoseconds = std::chrono::nanoseconds;
  struct Options {
    std::uint64_t window_bytes = 8u << 20;
    // Of what waits to be sent: beyond it payloads are carried by their frames.
    std::uint64_t queued_bytes_max = 16u << 20;
    std::uint32_t payload_bytes_min = 4096;
    std::uint32_t body_bytes_max = 1440;   // what fits into the interface's packets
    std::uint32_t body_bytes_safe = 1440;  // what fits into everybody's
    std::uint32_t burst_bytes = 256u << 10;
    RateControl::Options rate{};
    Membership::Options membership{};
  };
  // Datagrams of `body_bytes` each, to be sealed and sent in this order. The last one, if it is not
  // the only one, begins as much earlier as it would be shorter, and repeats what is there.
  struct Batch {
    DatagramHeader first;
    PayloadSlice bytes;
    std::uint32_t body_bytes = 0;
  };
  // To be sent to a receiver over its connection.
  struct Told {
    ReceiverIndex receiver = 0;
    FromSender message;
  };
  enum class Way : std::uint8_t {
    kWait,       // not all of it is sent
    kReference,  // refer to it
    kCarry,      // this receiver does not get it by multicast: send it in the frame
  };
  // Somebody takes part, or does not any more, for this reason.
  struct Change {
    ReceiverIndex receiver = 0;
    bool admitted = false;
    Dismissal why{};     // unless admitted
    std::string reason;  // the same for people
  };

  StreamSender(const OpenStream& stream, const Options& options);

  // There is a connection to the receiver: it was told OpenStream.
  void connected(ReceiverIndex receiver);
  void disconnected(ReceiverIndex receiver);

  // The place of a payload for these receivers. Nothing: carry it in the frames, because it is
  // small, fewer than two of them take part, or too much waits.
  [[nodiscard]] std::optional<Reference> offer(ReceiverSet receivers, const PayloadSlice& payload);
  // How the frame goes that has this reference.
  [[nodiscard]] Way way(ReceiverIndex receiver, const Reference& reference) const;

  // What is to be sent now; nothing: see next_at().
  [[nodiscard]] std::optional<Batch> next(Nanoseconds now);
  // When next() may have something without a report coming; nothing: it may not.
  [[nodiscard]] std::optional<Nanoseconds> next_at(Nanoseconds now);

  // kProtocol: it makes no sense; end the connection.
  Result<void> received(ReceiverIndex receiver, const FromReceiver& message, Nanoseconds now);
  // So much has gone out by connections, on the same way: the stream's pace is theirs, too.
  void share(std::uint64_t bytes) { shared_ += static_cast<double>(bytes); }
  // The receiver's connection takes what it is given.
  void moved(ReceiverIndex receiver) { receivers_[receiver].moved = true; }
  // At least ten times a second: probes, and judgement.
  void tick(Nanoseconds now);

  // What there is to tell, in order, and what has changed.
  [[nodiscard]] std::vector<Told> take_told() { return std::exchange(told_, {}); }
  [[nodiscard]] std::vector<Change> take_changes() { return std::exchange(changes_, {}); }

  [[nodiscard]] ReceiverSet admitted() const { return admitted_; }
  [[nodiscard]] const OpenStream& stream() const { return stream_; }
  [[nodiscard]] std::uint64_t queued_bytes() const { return queued_bytes_; }
  [[nodiscard]] std::uint64_t kept_bytes() const { return kept_bytes_; }
  [[nodiscard]] std::uint64_t repaired_bytes() const { return repaired_bytes_; }
  [[nodiscard]] RateControl& rate() { return rate_; }

 private:
  struct Item {
    Position start;
    PayloadSlice payload;  // none when it is over
    std::uint32_t length = 0;
    std::uint32_t sent = 0;
    ReceiverSet receivers = 0;  // that do not have it through
    [[nodiscard]] Position end() const { return {start.value + length}; }
    [[nodiscard]] bool is_sent() const { return sent == length; }
    // Nobody needs it, or will.
    [[nodiscard]] bool is_over() const { return is_sent() && receivers == 0; }
  };
  struct Receiver {
    bool connected = false;
    Membership membership;
    bool moved = false;                                 // its connection, since it was judged last
    std::deque<Position> outstanding;                   // starts of what it does not have through
    RateControl::Load load = RateControl::Load::kFull;  // since its last report
    bool refuses = false;  // it cannot listen, as it said to the last OpenStream
    std::string refusal;   // why, when it said so last
  };

  struct Verdict {
    Dismissal why{};
    bool punished = false;
    std::string reason;
  };

  [[nodiscard]] Item* find(Position start);
  [[nodiscard]] const Item* find(Position start) const;
  [[nodiscard]] bool window_open(Position end) const;
  [[nodiscard]] Batch batch_of(Item& item);
  void refill(Nanoseconds now);
  void held_up(RateControl::Load by);
  Result<void> reported(ReceiverIndex receiver, const Report& report, Nanoseconds now);
  Result<void> repair(ReceiverIndex receiver, const Missing& missing);
  void forget(Item& item, ReceiverIndex receiver);
  void release(Item& item);
  void drop_over();
  void skip_unwanted();
  void admit(ReceiverIndex receiver, Nanoseconds now);
  void dismiss(ReceiverIndex receiver, Verdict verdict, Nanoseconds now);
  void refused(ReceiverIndex receiver, const std::string& reason, Nanoseconds now);
  void open_again(ReceiverIndex receiver);
  void judge(ReceiverIndex receiver, Nanoseconds now);
  void probe(Nanoseconds now);
  void fit_bodies();

  const OpenStream stream_;
  const Options options_;
  RateControl rate_;
  std::array<Receiver, kReceiversMax> receivers_;
  ReceiverSet admitted_ = 0;
  std::deque<Item> items_;  // ascending; all before unsent_ are sent
  std::size_t unsent_ = 0;  // index of the first that is not
  std::size_t over_ = 0;    // of them, that are over
  Position next_position_{1};
  std::uint32_t body_bytes_;
  double tokens_;      // bytes that may be sent now
  double shared_ = 0;  // to be taken from what comes
  Nanoseconds refilled_{};
  std::deque<Batch> probes_;
  Nanoseconds probed_{};
  std::uint64_t probes_made_ = 0;
  std::uint64_t bytes_sent_ = 0;
  std::uint64_t queued_bytes_ = 0;
  std::uint64_t kept_bytes_ = 0;
  std::uint64_t repaired_bytes_ = 0;
  std::vector<Told> told_;
  std::vector<Change> changes_;
};

}  // namespace mariner::trm
