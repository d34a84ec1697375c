// A history that is far away: questions are looked into later, answers arrive later still, in any
// order, some of them never, and some end early. Everything random comes from its seed.
//
// It does what a client of a logger on another machine does: the bytes of the past come with the
// answer, what is read is put in its place when the answer is there, and a question without an
// answer is kUnavailable, whether it was looked into or not, and is never looked into afterwards.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "proto/executor.h"
#include "server/volume/history.h"

namespace mariner::test {

class DelayedHistory final : public volume::History {
 public:
  struct Options {
    std::uint64_t seed = 1;
    // Of each way; one in kSlowIn takes up to kSlow times as long.
    std::chrono::nanoseconds delay_max{0};
    std::uint64_t unavailable_in = 0;  // one in so many questions finds nobody; 0: none
  };

  // All outlive it.
  DelayedHistory(Executor& executor, volume::History& far, const Options& options)
      : executor_(executor), far_(far), options_(options), random_(options.seed) {}
  ~DelayedHistory() override;  // nothing may be in flight

  void locate(std::vector<Lookup> lookups, LocateDone done) override;
  void read(BlockRange range, SequenceNumber at, std::span<std::byte> to, ReadDone done) override;
  void changed(SequenceNumber from, SequenceNumber to, Portion portion, volume::Done done) override;
  void versions(std::vector<Since> blocks, SequenceNumber to, VersionsDone done) override;
  void hold(SequenceNumber at, HoldDone done) override;
  void log_before_image(BlockRange range, PayloadSlice bytes, volume::Done done) override;
  void moment(std::variant<VersionTime, SequenceNumber> asked, MomentDone done) override;
  void summarize(const volume::HistorySummary::Question& question, SummaryDone done) override;

 private:
  static constexpr std::uint64_t kSlowIn = 16;
  static constexpr std::uint64_t kSlow = 10;

  enum class Fate { kAnswered, kNotAsked, kNotAnswered };

  std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : random_() % n; }
  void later(UniqueFunction<void()> work);
  // Runs `look` later, which hands its answer to what it is given; `done` has it later still.
  template <typename Answer>
  void ask(UniqueFunction<void(UniqueFunction<void(Answer)>)> look,
           UniqueFunction<void(Answer)> done);
  Result<Located> as_message(Result<Located> found);

  Executor& executor_;
  volume::History& far_;
  const Options options_;
  std::mt19937_64 random_;
  std::size_t in_flight_ = 0;
};

}  // namespace mariner::test
