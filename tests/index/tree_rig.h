// A B+ tree on a BOSC store on a faulty disk, beside a map of what it must hold and a log of what
// was done to it, so that it can be crashed and opened again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "index/bosc.h"
#include "index/btree.h"
#include "tests/support/faulty_disk.h"
#include "tests/support/manual_executor.h"

namespace mariner::test {

class TreeRig {
 public:
  struct Options {
    std::uint64_t seed = 1;
    std::uint64_t disk_bytes = std::uint64_t{64} << 20;
    std::uint32_t block_bytes = 4096;
    std::uint32_t group_blocks = 8;
    std::size_t value_bytes = 8;
    bool ascends_within_high = false;
    index::BoscOptions store;
  };
  using Model = std::map<index::IndexKey, std::uint64_t>;

  static Options small_options(std::uint64_t seed);

  explicit TreeRig(const Options& options);
  ~TreeRig();

  void insert(index::IndexKey key, std::uint64_t value);
  void erase(index::IndexKey key);
  // Commits all and turns until that is done.
  Result<void> commit_all();
  // Lets things under way go on for some turns, without waiting for their end.
  void turn(std::size_t turns);
  // Turns until nothing is left to do at this moment.
  void settle() { executor_.run_until_idle(); }

  // The power goes, with whatever is in flight; then everything is opened again and the log
  // replayed from the store's frontier on.
  void crash();
  // An orderly end instead.
  void restart();

  // What the tree says, against the model: "" or the first difference.
  std::string compare();
  std::string compare_last(index::KeyRange range);
  std::string compare_each(const std::vector<index::KeyRange>& ranges);  // the last one of each
  std::string compare_walk(const std::vector<index::KeyRange>& ranges);  // all of them
  Result<void> consult(UniqueFunction<void(index::BlockReader&)> compute);
  // The records of the range by scan, in order.
  Result<std::vector<std::pair<index::IndexKey, std::uint64_t>>> scan(
      index::KeyRange range, index::BTree::Direction direction);
  Result<std::optional<index::IndexRecord>> find_last(index::KeyRange range);
  std::vector<std::pair<index::KeyRange, Error>> check();
  // Makes the leaves that were reported as damaged again from the log. How many.
  std::size_t repair(bool crash_in_repair = false);

  [[nodiscard]] index::Bosc& store() { return *store_; }
  [[nodiscard]] index::BTree& tree() { return *tree_; }
  [[nodiscard]] FaultyDisk& disk() { return *disk_; }
  [[nodiscard]] ManualExecutor& executor() { return executor_; }
  [[nodiscard]] const Model& model() const { return model_; }
  [[nodiscard]] const index::IndexSuperblock& superblock() const { return superblock_; }
  [[nodiscard]] std::uint64_t replayed() const { return replayed_; }
  [[nodiscard]] const std::vector<std::string>& errors() const { return errors_; }

  static std::array<std::byte, 8> value_of(std::uint64_t value);

 private:
  struct Entry {
    index::IndexKey key;
    std::optional<std::uint64_t> value;
  };

  void open();
  void close();
  void apply(std::uint64_t number);

  const Options options_;
  ManualExecutor executor_;
  std::unique_ptr<FaultyDisk> disk_;
  index::IndexShape shape_;
  index::IndexSuperblock superblock_;
  std::unique_ptr<index::Bosc> store_;
  std::unique_ptr<index::BTree> tree_;
  Model model_;
  std::vector<Entry> log_;  // by number, from 1
  std::uint64_t replayed_ = 0;
  std::vector<std::string> errors_;
  std::vector<index::BlockAddress> damaged_;
};

}  // namespace mariner::test
