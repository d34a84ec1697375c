// Brings the logger that was away up to date, while the volume's journals keep what is written.
//
// Sans I/O, for the CoordinatorRole that uses it. What the logger has above LogAway::since was
// never acknowledged, and other writes came instead: it is taken back, on record. Then it is sent
// what is settled, from the journal of this node, a portion at a time; nothing that is not settled,
// so that what it has is the one history whatever happens to the journals. It is behind as long as
// more comes; who coordinates lets nothing more be settled for the last portions.
//
// One that has nothing at all, though it had acknowledged something, has lost its log. Its history
// begins anew behind `since`, when both images hold all of that.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "replication/cluster_messages.h"
#include "replication/participant.h"

namespace mariner::replication {

class LogReturn {
 public:
  struct Start {
    VolumeId volume;
    Epoch epoch;
    NodeId logger;
    LogAway away;
  };
  // What the caller is to do, in this order.
  struct Out {
    std::vector<ToLogger> send;
    std::optional<Error> drop;           // the connection
    std::optional<SequenceRange> fetch;  // of the journal; then fetched()
  };

  explicit LogReturn(const Start& start) : start_(start) {}

  [[nodiscard]] NodeId logger() const { return start_.logger; }

  // `known`: what there is to be sent; until then nothing is.
  void connected(bool known, Out& out);
  void disconnected();
  // `settled`: by who coordinates, at most what the journals have.
  void hear(const FromLogger& message, SequenceNumber settled, Out& out);
  void fetched(const Result<LogSource::Portion>& portion, Out& out);
  // It has lost its log, and waits for begin_anew(): when both images hold everything at or below
  // LogAway::since durably.
  [[nodiscard]] bool lost() const { return phase_ == Phase::kLost; }
  void begin_anew(Out& out);

  // More may have been settled.
  void go_on(SequenceNumber settled, Out& out);

  // It is connected, and was told nothing yet.
  [[nodiscard]] bool waits() const { return phase_ == Phase::kWaiting; }
  // It is connected, and has everything up to here; nothing: it is not ready for that yet.
  [[nodiscard]] std::optional<SequenceNumber> has() const;

 private:
  enum class Phase {
    kDown,
    kWaiting,  // until it is known what there is
    kOpening,
    kLost,
    kBeginning,   // it was told to begin anew
    kTakingBack,  // what it has above `since`
    kReceiving,
  };

  void opened(const LogOpened& message, SequenceNumber settled, Out& out);
  void drop(ErrorCode code, const std::string& message, Out& out);
  // No number up to here is anybody's but the logger's: one for the rollback at least.
  [[nodiscard]] SequenceNumber taken_back_until() const { return start_.away.used.next(); }

  const Start start_;
  Phase phase_ = Phase::kDown;
  SequenceNumber sent_;
  SequenceNumber has_;
  bool fetching_ = false;
  std::uint64_t connection_ = 0;
  std::uint64_t fetched_for_ = 0;  // of which connection
};

}  // namespace mariner::replication
