// A history that answers nothing by itself: a test sees each question and answers it.
#pragma once

#include <deque>
#include <limits>
#include <utility>
#include <vector>

#include "server/volume/history.h"

namespace mariner::test {

class AskedHistory final : public volume::History {
 public:
  struct Locate {
    std::vector<Lookup> lookups;
    LocateDone done;
  };
  struct Read {
    BlockRange range;
    SequenceNumber at;
    std::span<std::byte> to;
    ReadDone done;
  };
  struct Changed {
    SequenceNumber from;
    SequenceNumber to;
    Portion portion;
    volume::Done done;
  };
  struct VersionsOf {
    std::vector<Since> blocks;
    SequenceNumber to;
    VersionsDone done;
  };
  struct HoldAt {
    SequenceNumber at;
    HoldDone done;
  };
  struct BeforeImage {
    BlockRange range;
    PayloadSlice bytes;
    volume::Done done;
  };

  struct MomentOf {
    std::variant<VersionTime, SequenceNumber> asked;
    MomentDone done;
  };
  struct Summary {
    volume::HistorySummary::Question question;
    SummaryDone done;
  };

  void locate(std::vector<Lookup> lookups, LocateDone done) override {
    locates.push_back({std::move(lookups), std::move(done)});
  }
  void read(BlockRange range, SequenceNumber at, std::span<std::byte> to, ReadDone done) override {
    reads.push_back({range, at, to, std::move(done)});
  }
  void changed(SequenceNumber from, SequenceNumber to, Portion portion,
               volume::Done done) override {
    changes.push_back({from, to, std::move(portion), std::move(done)});
  }
  void versions(std::vector<Since> blocks, SequenceNumber to, VersionsDone done) override {
    listings.push_back({std::move(blocks), to, std::move(done)});
  }
  void hold(SequenceNumber at, HoldDone done) override { holds.push_back({at, std::move(done)}); }
  void log_before_image(BlockRange range, PayloadSlice bytes, volume::Done done) override {
    before_images.push_back({range, std::move(bytes), std::move(done)});
  }

  void moment(std::variant<VersionTime, SequenceNumber> asked, MomentDone done) override {
    moments.push_back({asked, std::move(done)});
  }
  void summarize(const volume::HistorySummary::Question& question, SummaryDone done) override {
    summaries.push_back({question, std::move(done)});
  }

  [[nodiscard]] double writes_at_once() const override { return at_once; }

  // Takes the oldest question out of `questions`.
  template <typename Question>
  static Question next(std::deque<Question>& questions) {
    CHECK(!questions.empty());
    Question question = std::move(questions.front());
    questions.pop_front();
    return question;
  }

  double at_once = std::numeric_limits<double>::infinity();
  std::deque<Locate> locates;
  std::deque<Read> reads;
  std::deque<Changed> changes;
  std::deque<VersionsOf> listings;
  std::deque<HoldAt> holds;
  std::deque<BeforeImage> before_images;
  std::deque<MomentOf> moments;
  std::deque<Summary> summaries;
};

}  // namespace mariner::test
