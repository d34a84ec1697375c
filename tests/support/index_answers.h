// The answers of a version index at once: what production code hears in a callback.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "index/stored_index.h"
#include "proto/check.h"

namespace mariner::test {

class IndexAnswers {
 public:
  // `turn` runs what is at hand of the executor that the index is on. Without it only locate() and
  // versions() answer, which read the disk while they wait, and may be called within a turn.
  explicit IndexAnswers(index::StoredIndex& index, std::function<void()> turn = nullptr)
      : index_(index), turn_(std::move(turn)) {}

  // What `use` makes of a lookup.
  template <typename Use>
  [[nodiscard]] auto compute(Use use) const {
    index::BlockReader reader(index_.store());
    for (;;) {
      reader.begin();
      auto result = use(index::VersionLookup(index_, reader));
      CHECK(reader.failure().has_value());
      if (reader.complete()) return result;
      CHECK(reader.fetch_now().has_value());
    }
  }

  [[nodiscard]] std::vector<index::LocatedRun> locate(BlockRange range, SequenceNumber at) const {
    return compute([&](const index::VersionLookup& lookup) { return lookup.locate(range, at); });
  }
  [[nodiscard]] std::vector<SequenceNumber> versions(Lbn block, SequenceNumber from,
                                                     SequenceNumber to) const {
    return compute(
        [&](const index::VersionLookup& lookup) { return lookup.versions(block, from, to); });
  }
  [[nodiscard]] std::vector<BlockRange> changed(SequenceNumber from, SequenceNumber to) const {
    return wait<std::vector<BlockRange>>(
        [&](auto done) { index_.changed(from, to, std::move(done)); });
  }
  [[nodiscard]] index::IndexMoment moment_at(VersionTime time) const {
    return wait<index::IndexMoment>([&](auto done) { index_.moment_at(time, std::move(done)); });
  }
  [[nodiscard]] index::IndexMoment moment_of(SequenceNumber sequence) const {
    return wait<index::IndexMoment>(
        [&](auto done) { index_.moment_of(sequence, std::move(done)); });
  }
  void for_each(SequenceNumber from, SequenceNumber to,
                UniqueFunction<bool(const index::IndexedWrite&)> visit) const {
    bool ended = false;
    index_.for_each(from, to, std::move(visit), [&](const Result<void>& visited) {
      CHECK(visited.has_value());
      ended = true;
    });
    turn_until([&] { return ended; });
  }
  [[nodiscard]] const index::StoredIndex& index() const { return index_; }

 private:
  template <typename Ended>
  void turn_until(Ended ended) const {
    // Other threads may have a part in it: turns alone do not say that it hangs.
    const auto begun = std::chrono::steady_clock::now();
    for (int turns = 0; !ended(); ++turns) {
      const bool hangs =
          turns >= 100'000 && std::chrono::steady_clock::now() - begun > std::chrono::seconds(20);
      CHECK_MSG(turn_ != nullptr && !hangs, "the index does not answer");
      turn_();
    }
  }
  template <typename T, typename Ask>
  T wait(Ask ask) const {
    std::optional<T> answer;
    ask(UniqueFunction<void(Result<T>)>([&](Result<T> result) {
      CHECK(result.has_value());
      answer = *std::move(result);
    }));
    turn_until([&] { return answer.has_value(); });
    return *std::move(answer);
  }

  index::StoredIndex& index_;
  std::function<void()> turn_;
};

}  // namespace mariner::test
