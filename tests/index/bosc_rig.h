// A BOSC store of counters on a faulty disk, beside a model of them and a log of what was added, so
// that it can be crashed and opened again. A modification adds to a counter, so that one that is
// lost or applied twice shows.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "index/bosc.h"
#include "proto/check.h"
#include "tests/support/faulty_disk.h"
#include "tests/support/manual_executor.h"

namespace mariner::test {

inline constexpr index::FunctionId kCounters{5};
inline constexpr std::uint32_t kCountersPerBlock = 16;

// A block's contents are counters of 8 bytes; a modification is the number of one and what to add.
class CounterFunction final : public index::CommitFunction {
 public:
  // A commit with this one in it adds a block.
  static constexpr std::uint32_t kDividing = UINT32_MAX;
  using Change = std::array<std::byte, 12>;

  static Change change(std::uint32_t counter, std::uint64_t add);
  static void add(std::span<std::byte> contents, index::Modification modification);

  void commit(index::BlockCommit& commit) const override;
  void committed(const index::BlockCommit& commit) override;
  bool apply(std::span<std::byte> contents, index::Modification modification) override;
  std::size_t saved_bytes() const override { return 4; }
  void save(std::span<std::byte> to) const override;

  std::uint32_t blocks = 0;  // what it saves
  std::vector<index::BlockAddress> added;
};

// Members are public: a test turns and breaks each part.
class BoscRig {
 public:
  struct Options {
    std::uint64_t seed = 1;
    std::uint32_t blocks = 40;  // addresses 0 to 39
    std::uint32_t group_blocks = 8;
    std::uint64_t disk_bytes = std::uint64_t{16} << 20;
    std::chrono::nanoseconds delay_max{0};  // of the disk
    index::BoscOptions store = small_store();
  };
  static index::BoscOptions small_store();

  BoscRig() : BoscRig(Options{}) {}
  explicit BoscRig(const Options& options);
  ~BoscRig();

  // Under the next number.
  void add(std::uint32_t block, std::uint32_t counter, std::uint64_t what = 1);
  // Commits all and turns until that is done.
  Result<void> commit_all();
  void turn(std::size_t turns);
  // As long as it takes until `ended` says so.
  template <typename Ended>
  void turn_until(Ended ended) {
    for (std::size_t turns = 0; !ended(); ++turns) {
      CHECK_MSG(turns < 1'000'000, "what is waited for does not end");
      if (executor.turn() == 0) executor.advance(std::chrono::microseconds(100));
    }
  }
  void crash();
  void restart();
  void open();
  void close();

  // The counters of a block, by a query.
  Result<std::vector<std::uint64_t>> read(std::uint32_t block);
  // What all blocks hold, against the model: "" or the first difference.
  std::string compare();

  // The block and place of a write, or nothing: one of a superblock or a checkpoint.
  struct Place {
    std::uint32_t block = 0;
    unsigned place = 0;
  };
  [[nodiscard]] std::optional<Place> place_of(std::uint64_t offset) const;
  // The writes since the `from`th that begin at blocks, as "first-last " each.
  [[nodiscard]] std::string runs_since(std::size_t from) const;

  const Options options;
  ManualExecutor executor;
  std::unique_ptr<FaultyDisk> disk;
  index::IndexSuperblock superblock;  // as formatted
  std::unique_ptr<CounterFunction> function;
  std::unique_ptr<index::Bosc> store;
  std::vector<std::vector<std::uint64_t>> model;
  std::vector<std::string> errors;
  std::uint64_t replayed = 0;

 private:
  struct Entry {
    std::uint32_t block = 0;
    std::uint32_t counter = 0;
    std::uint64_t what = 0;
  };
  std::vector<Entry> log_;  // by number, from 1
};

// A rig whose blocks are all on disk, with 1 in each counter 0, and nothing in memory.
std::unique_ptr<BoscRig> written_rig(const BoscRig::Options& options = {});

}  // namespace mariner::test
