#include "tests/index/tree_rig.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <utility>

#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::test {

using index::BTree;
using index::IndexKey;
using index::KeyRange;

namespace {

constexpr index::FunctionId kTree{7};

std::string text(IndexKey key) {
  return "(" + std::to_string(key.high) + "," + std::to_string(key.low) + ")";
}

}  // namespace

TreeRig::Options TreeRig::small_options(std::uint64_t seed) {
  Options options;
  options.seed = seed;
  options.store.memory_bytes = std::size_t{1} << 20;
  options.store.cache_bytes = std::size_t{64} << 10;
  options.store.run_blocks_max = 8;
  options.store.runs_in_flight = 2;
  return options;
}

TreeRig::TreeRig(const Options& options) : options_(options) {
  disk_ = std::make_unique<FaultyDisk>(
      executor_, FaultyDisk::Options{.size_bytes = options.disk_bytes, .seed = options.seed});
  shape_.file[0] = std::byte{42};
  shape_.block_bytes = options.block_bytes;
  shape_.group_blocks = options.group_blocks;
  const Result<index::IndexSuperblock> superblock = index::format_index_file(*disk_, shape_);
  CHECK(superblock.has_value());
  superblock_ = *superblock;
  open();
}

TreeRig::~TreeRig() { close(); }

std::array<std::byte, 8> TreeRig::value_of(std::uint64_t value) {
  std::array<std::byte, 8> bytes{};
  store_le(bytes.data(), value);
  return bytes;
}

void TreeRig::open() {
  Result<std::unique_ptr<index::Bosc>> store = index::Bosc::open(executor_, *disk_, options_.store);
  // Everything from the log, into a file that is another one; again if the disk lies just then.
  for (int tries = 0; tries < 5 && !store && store.error().code == ErrorCode::kCorrupt; ++tries) {
    shape_.file[1] = static_cast<std::byte>(static_cast<unsigned>(shape_.file[1]) + 1);
    if (!index::format_index_file(*disk_, shape_)) continue;
    store = index::Bosc::open(executor_, *disk_, options_.store);
  }
  CHECK_MSG(store.has_value(), store.has_error() ? store.error().message.c_str() : "");
  store_ = *std::move(store);
  store_->on_error([this](index::BlockAddress address, const Error& error) {
    if (error.code == ErrorCode::kCorrupt) damaged_.push_back(address);
    errors_.push_back(std::to_string(address.value) + ": " + error.message);
  });
  Result<std::unique_ptr<BTree>> tree =
      BTree::open(*store_, {.id = kTree,
                            .value_bytes = options_.value_bytes,
                            .ascends_within_high = options_.ascends_within_high});
  CHECK_MSG(tree.has_value(), tree.has_error() ? tree.error().message.c_str() : "");
  tree_ = *std::move(tree);
  for (std::uint64_t number = store_->frontier() + 1; number <= log_.size(); ++number) {
    apply(number);
    ++replayed_;
  }
  store_->set_used_through(log_.size());
}

void TreeRig::close() {
  bool drained = false;
  store_->drain([&] { drained = true; });
  for (settle(); !drained; settle()) std::this_thread::yield();  // for commit threads, if any
  store_.reset();
  tree_.reset();
}

void TreeRig::apply(std::uint64_t number) {
  const Entry& entry = log_[number - 1];
  if (entry.value) {
    std::vector<std::byte> value(options_.value_bytes);
    store_le(value.data(), *entry.value);
    tree_->insert(entry.key, value, number);
  } else {
    tree_->erase(entry.key, number);
  }
}

void TreeRig::insert(IndexKey key, std::uint64_t value) {
  model_[key] = value;
  log_.push_back({key, value});
  apply(log_.size());
  store_->set_used_through(log_.size());
}

void TreeRig::erase(IndexKey key) {
  model_.erase(key);
  log_.push_back({key, std::nullopt});
  apply(log_.size());
  store_->set_used_through(log_.size());
}

Result<void> TreeRig::commit_all() {
  std::optional<Result<void>> result;
  store_->commit_all([&](Result<void> r) { result = std::move(r); });
  for (std::size_t turns = 0; !result; ++turns) {
    CHECK_MSG(turns < 1'000'000, "the commit does not end");
    if (executor_.turn() == 0) executor_.advance(std::chrono::milliseconds(100));
  }
  return *result;
}

void TreeRig::turn(std::size_t turns) {
  for (std::size_t i = 0; i < turns; ++i) executor_.turn();
}

void TreeRig::crash() {
  disk_->cut_power();
  close();
  damaged_.clear();
  disk_->restore_power();
  open();
}

void TreeRig::restart() {
  close();
  open();
}

Result<std::vector<std::pair<IndexKey, std::uint64_t>>> TreeRig::scan(KeyRange range,
                                                                      BTree::Direction direction) {
  std::vector<std::pair<IndexKey, std::uint64_t>> records;
  std::optional<Result<void>> result;
  tree_->scan(
      range, direction,
      [&](IndexKey key, BTree::Value value) {
        records.emplace_back(key, load_le<std::uint64_t>(value.data()));
        return true;
      },
      [&](Result<void> r) { result = std::move(r); });
  while (!result) CHECK_MSG(executor_.turn() > 0, "the scan does not end");
  if (!*result) return result->error();
  return records;
}

Result<std::optional<index::IndexRecord>> TreeRig::find_last(KeyRange range) {
  std::optional<Result<std::optional<index::IndexRecord>>> result;
  tree_->find_last(range,
                   [&](Result<std::optional<index::IndexRecord>> r) { result = std::move(r); });
  while (!result) CHECK_MSG(executor_.turn() > 0, "the lookup does not end");
  return *std::move(result);
}

std::vector<std::pair<KeyRange, Error>> TreeRig::check() {
  std::vector<std::pair<KeyRange, Error>> damaged;
  bool done = false;
  tree_->check([&](KeyRange range, const Error& error) { damaged.emplace_back(range, error); },
               [&] { done = true; });
  while (!done) CHECK_MSG(executor_.turn() > 0, "the check does not end");
  return damaged;
}

std::size_t TreeRig::repair(bool crash_in_repair) {
  std::size_t repaired = 0;
  for (const index::BlockAddress address : std::exchange(damaged_, {})) {
    while (store_->belongs_to(address, kTree) && store_->is_committing(address)) executor_.turn();
    const std::optional<KeyRange> range = tree_->begin_rebuild(address);
    if (!range) continue;
    EXPECT_EQ(find_last({range->low, range->low}).error().code, ErrorCode::kUnavailable);
    std::size_t done = 0;
    for (const Entry& entry : log_) {
      // The log is read bit by bit, and other things go on; the power may go, too.
      if (++done % 3'000 == 0) executor_.turn();
      if (crash_in_repair && done == log_.size() / 2) {
        crash();
        return ++repaired;
      }
      if (entry.key < range->low || entry.key > range->high) continue;
      if (entry.value) {
        std::vector<std::byte> value(options_.value_bytes);
        store_le(value.data(), *entry.value);
        tree_->restore(entry.key, value);
      } else {
        tree_->restore(entry.key, std::nullopt);
      }
    }
    tree_->end_rebuild(*range);
    ++repaired;
  }
  return repaired;
}

std::string TreeRig::compare() {
  for (const BTree::Direction direction :
       {BTree::Direction::kAscending, BTree::Direction::kDescending}) {
    const auto records = scan({{}, IndexKey::max()}, direction);
    if (!records) return records.error().message;
    std::vector<std::pair<IndexKey, std::uint64_t>> expected(model_.begin(), model_.end());
    if (direction == BTree::Direction::kDescending) std::ranges::reverse(expected);
    for (std::size_t i = 0; i < std::max(records->size(), expected.size()); ++i) {
      if (i >= records->size()) return text(expected[i].first) + " is missing at the end";
      if (i >= expected.size()) return text((*records)[i].first) + " is there, behind the last";
      if ((*records)[i] != expected[i]) {
        return text((*records)[i].first) + "=" + std::to_string((*records)[i].second) +
               " is there, " + text(expected[i].first) + "=" + std::to_string(expected[i].second) +
               " was expected";
      }
    }
  }
  return "";
}

Result<void> TreeRig::consult(UniqueFunction<void(index::BlockReader&)> compute) {
  std::optional<Result<void>> result;
  index::consult(*store_, std::move(compute), [&](Result<void> r) { result = std::move(r); });
  while (!result) CHECK_MSG(executor_.turn() > 0, "the lookups do not end");
  return *std::move(result);
}

std::string TreeRig::compare_each(const std::vector<KeyRange>& ranges) {
  std::map<std::size_t, std::pair<IndexKey, std::uint64_t>> found;
  const Result<void> looked = consult([&](index::BlockReader& reader) {
    found.clear();
    tree_->find_last_each(reader, ranges, [&](std::size_t i, IndexKey key, BTree::Value value) {
      found[i] = {key, load_le<std::uint64_t>(value.data())};
    });
  });
  if (!looked) return looked.error().message;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const auto behind = model_.upper_bound(ranges[i].high);
    const bool has = behind != model_.begin() && std::prev(behind)->first >= ranges[i].low;
    const auto here = found.find(i);
    if (has != (here != found.end()))
      return "of range " + text(ranges[i].low) + " the last is not right";
    if (has && here->second != std::pair<IndexKey, std::uint64_t>(*std::prev(behind))) {
      return text(here->second.first) + " is not the last of its range";
    }
  }
  return "";
}

std::string TreeRig::compare_walk(const std::vector<KeyRange>& ranges) {
  std::vector<std::pair<IndexKey, std::uint64_t>> shown;
  const Result<void> walked = consult([&](index::BlockReader& reader) {
    shown.clear();
    tree_->walk_each(reader, ranges, [&](IndexKey key, BTree::Value value) {
      shown.emplace_back(key, load_le<std::uint64_t>(value.data()));
    });
  });
  if (!walked) return walked.error().message;
  auto next = shown.begin();
  for (const KeyRange& range : ranges) {
    const auto behind = model_.upper_bound(range.high);
    for (auto it = model_.lower_bound(range.low); it != behind; ++it, ++next) {
      if (next == shown.end() || *next != std::pair<IndexKey, std::uint64_t>(*it))
        return "a walk over some ranges does not show " + text(it->first);
    }
  }
  return next == shown.end() ? "" : "a walk over some ranges shows " + text(next->first) + ", too";
}

std::string TreeRig::compare_last(KeyRange range) {
  const auto found = find_last(range);
  if (!found) return found.error().message;
  auto expected = model_.upper_bound(range.high);
  const bool has = expected != model_.begin() && std::prev(expected)->first >= range.low;
  if (has != found->has_value())
    return has ? "a record was not found" : "one was found that is none";
  if (!has) return "";
  --expected;
  if ((*found)->key != expected->first ||
      load_le<std::uint64_t>((*found)->value.data()) != expected->second) {
    return text((*found)->key) + " was found, " + text(expected->first) + " is the last";
  }
  return "";
}

}  // namespace mariner::test
