// The history of a log that is away: nothing of it can be said, and no base be kept there.
#pragma once

#include <utility>

#include "server/volume/history.h"

namespace mariner::cluster {

class AwayHistory : public volume::History {
 public:
  void locate(std::vector<Lookup> /*lookups*/, LocateDone done) override { done(away()); }
  void read(BlockRange /*range*/, SequenceNumber /*at*/, std::span<std::byte> /*to*/,
            ReadDone done) override {
    done(away());
  }
  void changed(SequenceNumber /*from*/, SequenceNumber /*to*/, Portion /*portion*/,
               volume::Done done) override {
    done(away());
  }
  void versions(std::vector<Since> /*blocks*/, SequenceNumber /*to*/, VersionsDone done) override {
    done(away());
  }
  void hold(SequenceNumber /*at*/, HoldDone done) override { done(away()); }
  void log_before_image(BlockRange /*range*/, PayloadSlice /*bytes*/, volume::Done done) override {
    done(away());
  }
  void moment(std::variant<VersionTime, SequenceNumber> /*asked*/, MomentDone done) override {
    done(away());
  }
  void summarize(const volume::HistorySummary::Question& /*question*/, SummaryDone done) override {
    done(away());
  }

 protected:
  [[nodiscard]] static Error away() { return {ErrorCode::kUnavailable, "the logger is away"}; }
};

}  // namespace mariner::cluster
