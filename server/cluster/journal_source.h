// What a journal holds, for the log that was away (LogSource).
//
// Every payload block is verified as it is read. A rollback in a journal is a matter of that
// journal alone (it undoes what nobody had been told of) and is left out like a void. What comes
// out of a journal has stamps and contents of the writes that went in; `settled` and `frontier` are
// for whoever sends it on to fill in.
//
// Owner's thread only; nothing may be in flight when it is destroyed.
#pragma once

#include <cstdint>

#include "logging/log_reader.h"
#include "replication/participant.h"
#include "server/cluster/logger_part.h"

namespace mariner::cluster {

class JournalSource final : public replication::LogSource {
 public:
  // A portion has no more, but for one write at least.
  static constexpr std::size_t kPortionWritesMax = 64;
  static constexpr std::uint64_t kPortionBytesMax = 4u << 20;

  // Both outlive it.
  JournalSource(LoggerPart& journal, logging::LogReader& reader)
      : journal_(journal), reader_(reader) {}
  ~JournalSource() override;

  // kOutsideWindow: the journal has given some of it up. kUnavailable: not all of it is settled
  // there.
  void fetch(SequenceNumber from, SequenceNumber to,
             UniqueFunction<void(Result<Portion>)> done) override;

  [[nodiscard]] std::size_t in_flight() const { return in_flight_; }

 private:
  struct Fetch;
  [[nodiscard]] Result<void> check(SequenceNumber from) const;
  void read(const std::shared_ptr<Fetch>& fetch);
  void finished(const std::shared_ptr<Fetch>& fetch, const Result<void>& result);

  LoggerPart& journal_;
  logging::LogReader& reader_;
  std::size_t in_flight_ = 0;
};

}  // namespace mariner::cluster
