// The history that a storage node asks: the log's, or while the log is away its own journal's.
//
// A question goes to who is asked at that moment, and its answer comes from there, maybe after
// somebody else has taken the place. Owner's thread only.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "server/cluster/journal_history.h"

namespace mariner::cluster {

class SwitchedHistory final : public volume::History {
 public:
  // Both outlive it. `journal`: null: this node has none, and nothing can be said without the log.
  SwitchedHistory(volume::History& log, LoggerPart* journal) : log_(log), journal_(journal) {}

  // Nothing: the log is there.
  void log_away(std::optional<SequenceNumber> since) {
    if (since == since_) return;
    since_ = since;
    away_.reset();  // lets go what it holds
    if (!since) return;
    if (journal_ != nullptr) {
      away_ = std::make_unique<JournalHistory>(*journal_, *since);
    } else {
      away_ = std::make_unique<AwayHistory>();
    }
  }
  [[nodiscard]] std::optional<SequenceNumber> away_since() const { return since_; }

  void locate(std::vector<Lookup> lookups, LocateDone done) override {
    now().locate(std::move(lookups), std::move(done));
  }
  void read(BlockRange range, SequenceNumber at, std::span<std::byte> to, ReadDone done) override {
    now().read(range, at, to, std::move(done));
  }
  void changed(SequenceNumber from, SequenceNumber to, Portion portion,
               volume::Done done) override {
    now().changed(from, to, std::move(portion), std::move(done));
  }
  void versions(std::vector<Since> blocks, SequenceNumber to, VersionsDone done) override {
    now().versions(std::move(blocks), to, std::move(done));
  }
  void hold(SequenceNumber at, HoldDone done) override { now().hold(at, std::move(done)); }
  void log_before_image(BlockRange range, PayloadSlice bytes, volume::Done done) override {
    now().log_before_image(range, std::move(bytes), std::move(done));
  }
  void moment(std::variant<VersionTime, SequenceNumber> asked, MomentDone done) override {
    now().moment(asked, std::move(done));
  }
  void summarize(const volume::HistorySummary::Question& question, SummaryDone done) override {
    now().summarize(question, std::move(done));
  }

 private:
  [[nodiscard]] volume::History& now() { return away_ == nullptr ? log_ : *away_; }

  volume::History& log_;
  LoggerPart* const journal_;
  std::optional<SequenceNumber> since_;
  std::unique_ptr<volume::History> away_;  // in the place of log_
};

}  // namespace mariner::cluster
