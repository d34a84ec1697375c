// The past of a volume whose log and indexes are in this process.
//
// A lookup is a computation over the index (StoredIndex::consult). Of many, some are made in a
// turn, and each answer is of the moment of its turn; a single one is used in the turn in which it
// is made. Bytes are read when all is looked up, and what the log has moved since is sought again.
// Nothing is copied on the way, and no answer ends early. Owner's thread only; the owner keeps it
// alive while anything is in flight.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "index/stored_index.h"
#include "logging/log_reader.h"
#include "server/volume/base_map.h"
#include "server/volume/history.h"
#include "server/volume/volume_log.h"

namespace mariner::volume {

class LocalHistory final : public History {
 public:
  struct Parts {  // all outlive it
    VolumeId volume;
    index::StoredIndex& index;
    const logging::LogDisks& disks;
    logging::LogReader& reader;
    VolumeLog& log;
    const BaseMap& base;
  };

  // What is looked up in one turn: blocks of versions(), lookups of locate().
  static constexpr std::size_t kListedAtATime = 64;
  static constexpr std::size_t kLookupsEachTurn = 16;

  explicit LocalHistory(Parts parts) : parts_(parts) {}
  ~LocalHistory() override;  // nothing may be in flight
  LocalHistory(const LocalHistory&) = delete;
  LocalHistory& operator=(const LocalHistory&) = delete;

  void locate(std::vector<Lookup> lookups, LocateDone done) override;
  void read(BlockRange range, SequenceNumber at, std::span<std::byte> to, ReadDone done) override;
  void changed(SequenceNumber from, SequenceNumber to, Portion portion, Done done) override;
  void versions(std::vector<Since> blocks, SequenceNumber to, VersionsDone done) override;
  void hold(SequenceNumber at, HoldDone done) override;
  void log_before_image(BlockRange range, PayloadSlice bytes, Done done) override;
  void moment(std::variant<VersionTime, SequenceNumber> asked, MomentDone done) override;
  void summarize(const HistorySummary::Question& question, SummaryDone done) override;
  [[nodiscard]] double writes_at_once() const override { return parts_.log.writes_at_once(); }

  // The oldest moment at or after `from` that is held; nothing: none is.
  [[nodiscard]] std::optional<SequenceNumber> oldest_held(SequenceNumber from) const;
  [[nodiscard]] bool holds_any() const { return !held_->empty(); }
  [[nodiscard]] bool holds(SequenceNumber moment) const { return held_->contains(moment); }
  [[nodiscard]] std::size_t in_flight() const { return in_flight_; }

 private:
  struct Reading;
  void find(BlockRange range, std::span<std::byte> to, const std::shared_ptr<Reading>& reading);
  void read_run(const index::LocatedRun& run, std::span<std::byte> to,
                const std::shared_ptr<Reading>& reading);
  void read_elsewhere(const index::LocatedRun& run, std::span<std::byte> to, const Error& error,
                      const std::shared_ptr<Reading>& reading);
  void finished(const std::shared_ptr<Reading>& reading, const Result<void>& result);
  [[nodiscard]] logging::LogRead log_read_of(const index::LocatedRun& run,
                                             std::span<std::byte> to) const;
  struct Looking;
  struct Fetching;
  void append(const index::LocatedRun& run, std::vector<PastRun>& out) const;
  void look(const std::shared_ptr<Looking>& looking);
  void fetch(Looking& looking);
  void fetch(const std::shared_ptr<Fetching>& fetching);
  void take(const std::shared_ptr<Fetching>& fetching, std::size_t i, const Result<void>& read);
  void took(const std::shared_ptr<Fetching>& fetching);
  struct Listing;
  void list(const std::shared_ptr<Listing>& listing);
  [[nodiscard]] static Result<void> check_known(SequenceNumber from, SequenceNumber oldest);
  [[nodiscard]] std::vector<index::LocatedRun> base_that_matters(
      const index::VersionLookup& lookup, BlockRange range,
      std::vector<index::LocatedRun> base) const;

  const Parts parts_;
  std::size_t in_flight_ = 0;
  // Bounded by what the target has under way. Shared with the holds, which may outlive this.
  const std::shared_ptr<std::multiset<SequenceNumber>> held_ =
      std::make_shared<std::multiset<SequenceNumber>>();
};

}  // namespace mariner::volume
