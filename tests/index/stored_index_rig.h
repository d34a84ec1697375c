// A version index on disk, over a disk that forgets at a power cut, beside the one in memory, and
// the log that both are of: random records, commits, restarts, giving up.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "index/stored_index.h"
#include "tests/index/memory_index.h"
#include "tests/support/faulty_disk.h"
#include "tests/support/manual_executor.h"

namespace mariner::test {

class StoredIndexRig {
  using Bosc = index::Bosc;
  using IndexMoment = index::IndexMoment;
  using LocatedRun = index::LocatedRun;
  using LogLocation = logging::LogLocation;
  using MemoryIndex = index::MemoryIndex;
  using Record = logging::Record;
  using RecordType = logging::RecordType;
  using StoredIndex = index::StoredIndex;
  using VersionLookup = index::VersionLookup;

 public:
  static constexpr std::uint64_t kBlocks = 6'000;
  static constexpr VolumeId kVolume{9};

  explicit StoredIndexRig(std::uint64_t seed)
      : random_(seed), disk_(executor_, {.size_bytes = std::uint64_t{64} << 20, .seed = seed}) {
    index::IndexShape shape;
    shape.block_bytes = 4096;
    shape.group_blocks = 8;
    EXPECT_TRUE(index::format_index_file(disk_, shape));
    open();
  }
  ~StoredIndexRig() { close(); }

  std::uint64_t pick(std::uint64_t below) { return random_() % below; }

  void add_one() {
    switch (pick(12)) {
      case 0: before_image(); break;
      case 1: base_record(RecordType::kRebase, any_range(40), 0); break;
      case 2:
        if (newest() > 3 && pick(4) == 0) return rollback();
        [[fallthrough]];
      default: write(); break;
    }
  }
  void commit() {
    bool done = false;
    stored_->flush();
    store_->commit_all([&](const Result<void>& r) { done = r.has_value(); });
    executor_.run_until_idle();
    EXPECT_TRUE(done);
  }
  void restart(bool crash) {
    if (crash) disk_.cut_power();
    close();
    if (crash) disk_.restore_power();
    open();
  }
  // The log gives up its oldest records, a prefix of them.
  void forget() {
    // With two before-images of a block, what is left when the first goes is not the same in both.
    if (twice_) return;
    const std::size_t count = pick(records_.size() / 3 + 1);
    for (std::size_t i = 0; i < count; ++i) {
      const auto& [record, location] = records_.front();
      memory_.forget(record, location);
      given_up_ordinal_ = record.ordinal;
      if (record.sequence.value > 0) given_up_ = {record.sequence, record.time};
      records_.pop_front();
    }
    memory_.set_horizon(given_up_);
    give_up();
  }

  // Makes some leaves again from the log, as if they had been damaged, while more records come.
  void mend() {
    std::vector<index::LeafRepair> leaves;
    for (std::uint64_t i = 1 + pick(4); i > 0; --i) {
      const index::BlockAddress address{
          static_cast<std::uint32_t>(pick(store_->allocated_blocks() + 2))};
      if (!store_->is_allocated(address) || store_->is_committing(address)) continue;
      if (auto leaf = stored_->begin_repair(address, ordinal_)) leaves.push_back(*leaf);
    }
    mended_ += leaves.size();
    index::RepairFilter filter(leaves);
    std::vector<std::pair<Record, LogLocation>> log(records_.begin(), records_.end());
    std::ranges::shuffle(log, random_);
    for (const auto& [record, location] : log) {
      if (pick(20) == 0) add_one();
      if (pick(20) == 0) executor_.run_ready();
      if (!filter.concerns(record)) continue;
      for (std::uint64_t times = pick(10) == 0 ? 2 : 1; times > 0; --times) {
        for (const index::LeafRepair& leaf : leaves) stored_->restore(leaf, record, location);
      }
    }
    for (const index::LeafRepair& leaf : leaves) stored_->end_repair(leaf);
  }
  [[nodiscard]] std::uint64_t mended() const { return mended_; }

  void compare() {
    EXPECT_EQ(stored_->newest().sequence, memory_.newest().sequence);
    EXPECT_EQ(stored_->oldest().sequence, memory_.oldest().sequence);
    EXPECT_EQ(stored_->last_rollback(), memory_.last_rollback());
    for (int i = 0; i < 12; ++i) {
      const std::uint64_t low = given_up_.sequence.value;
      const SequenceNumber at{low + pick(newest() - low + 2)};
      const BlockRange range = any_range(i == 0 ? kBlocks : 200);
      compare_locate(range, at);
      compare_locate(range, SequenceNumber{0});
      compare_locate_each(at);
      const SequenceNumber from{low + pick(at.value - low + 1)};
      compare_versions(range.first, from, at);
      compare_changes(range.first, from, at);
      compare_changed(from, at);
      compare_moments(at);
      if (::testing::Test::HasFailure()) return;
    }
  }

 private:
  static bool same(const LocatedRun& a, const LocatedRun& b) {
    return a.range == b.range && a.source == b.source && a.sequence == b.sequence &&
           (a.source != LocatedRun::Source::kLog ||
            (a.location == b.location && a.payload_block == b.payload_block &&
             a.repeated == b.repeated));
  }
  [[nodiscard]] std::uint64_t newest() const { return sequence_; }
  BlockRange any_range(std::uint64_t most) {
    const std::uint64_t first = pick(kBlocks);
    return {Lbn{first}, BlockCount{1 + pick(std::min(most, kBlocks - first))}};
  }
  LogLocation any_location() {
    return {1 + pick(1'000'000), static_cast<std::uint32_t>(1 + pick(100)),
            static_cast<std::uint16_t>(pick(512)), static_cast<std::uint8_t>(1 + pick(5)),
            static_cast<std::uint8_t>(pick(3))};
  }
  void take(Record record) {
    record.volume = kVolume;
    record.epoch = {1};
    record.ordinal = ++ordinal_;
    const LogLocation location = any_location();
    records_.emplace_back(record, location);
    log_.emplace_back(record, location);
    memory_.insert(record, location);
    stored_->insert(record, location);
  }
  void write() {
    Record record;
    record.extent = any_range(pick(4) == 0 ? 1'000 : 20);
    record.type = pick(4) == 0 ? RecordType::kZero : RecordType::kWrite;
    const bool repeats = record.type == RecordType::kWrite && pick(4) == 0;
    const bool edges = record.extent.count.value >= 3 &&
                       (repeats || record.type == RecordType::kZero) && pick(2) == 0;
    if (repeats) record.flags |= logging::kRepeats;
    if (edges) record.flags |= logging::kHasHead | logging::kHasTail;
    record.payload_blocks = (edges ? 2u : 0u) + (repeats ? 1u : 0u);
    if (record.type == RecordType::kWrite && !repeats) {
      record.payload_blocks = static_cast<std::uint32_t>(record.extent.count.value);
    }
    stamp(record);
    take(record);
  }
  void rollback() {
    Record record;
    record.type = RecordType::kRollback;
    const std::uint64_t low = given_up_.sequence.value;
    record.target_sequence = {low + pick(sequence_ - low + 1)};
    stamp(record);
    take(record);
  }
  void stamp(Record& record) {
    sequence_ += 1 + pick(2);
    time_ += 1 + pick(1'000);
    record.sequence = {sequence_};
    record.time = {time_};
  }
  void before_image() {
    const BlockRange range = any_range(40);
    // Once a block, unless it replaces, or another one stands there: then the first stays.
    const std::vector<LocatedRun> base = memory_.locate(range, SequenceNumber{0});
    const bool fresh = twice_ || (base.size() == 1 && base[0].source == LocatedRun::Source::kBase);
    base_record(RecordType::kBeforeImage, range, fresh && pick(2) == 0 ? 0 : logging::kReplaces);
  }
  void base_record(RecordType type, BlockRange range, std::uint16_t flags) {
    Record record;
    record.type = type;
    record.flags = flags;
    record.extent = range;
    record.payload_blocks =
        type == RecordType::kRebase ? 0 : static_cast<std::uint32_t>(range.count.value);
    take(record);
  }

  void open() {
    index::BoscOptions options;
    options.memory_bytes = std::size_t{1} << 20;
    options.cache_bytes = pick(2) == 0 ? 0 : std::size_t{64} << 10;
    options.run_blocks_max = 8;
    options.commit_at = pick(2) == 0 ? 0.8 : 0.02;
    store_ = *Bosc::open(executor_, disk_, options);
    stored_ = *StoredIndex::open(*store_, kVolume);
    give_up();
    bool learnt = false;
    stored_->learn([&](const Result<void>& r) { learnt = r.has_value(); });
    executor_.run_ready();
    ASSERT_TRUE(learnt);
    for (const auto& [record, location] : log_) {
      if (record.ordinal > std::max(store_->frontier(), given_up_ordinal_)) {
        stored_->insert(record, location);
      }
    }
    store_->on_checkpoint_begin([this] {
      stored_->flush();
      store_->set_used_through(ordinal_);
    });
    give_up();
  }
  void give_up() {
    stored_->set_horizon(given_up_);
    stored_->forget_through(given_up_.sequence, given_up_ordinal_);
  }
  void close() {
    store_->drain(nullptr);
    executor_.run_until_idle();
    store_.reset();
    stored_.reset();
  }

  void consult(UniqueFunction<void(const VersionLookup&)> compute) {
    bool done = false;
    stored_->consult(std::move(compute), [&](const Result<void>& r) { done = r.has_value(); });
    executor_.run_ready();
    ASSERT_TRUE(done);
  }
  void compare_locate(BlockRange range, SequenceNumber at) {
    std::vector<LocatedRun> found;
    consult([&](const VersionLookup& lookup) { found = lookup.locate(range, at); });
    const std::vector<LocatedRun> expected = memory_.locate(range, at);
    EXPECT_TRUE(std::ranges::equal(found, expected, same))
        << "blocks " << range.first.value << " + " << range.count.value << " at " << at.value
        << ": " << found.size() << " runs, " << expected.size() << " expected";
  }
  // Several at once, overlapping and of several moments too.
  void compare_locate_each(SequenceNumber at) {
    std::vector<VersionLookup::Asked> asked;
    const BlockRange around = any_range(2'000);
    for (std::uint64_t i = pick(40); i > 0; --i) {
      BlockRange range = any_range(30);
      if (pick(4) != 0) range.first = around.first + BlockCount{pick(around.count.value)};
      range = range.intersect({Lbn{0}, BlockCount{kBlocks}});
      if (!range.empty()) asked.push_back({range, pick(3) == 0 ? at : SequenceNumber{newest()}});
    }
    std::vector<std::vector<LocatedRun>> found;
    consult([&](const VersionLookup& lookup) { found = lookup.locate_each(asked); });
    ASSERT_EQ(found.size(), asked.size());
    for (std::size_t i = 0; i < asked.size(); ++i) {
      EXPECT_TRUE(std::ranges::equal(found[i], memory_.locate(asked[i].range, asked[i].at), same))
          << "blocks " << asked[i].range.first.value << " + " << asked[i].range.count.value
          << " at " << asked[i].at.value;
    }
  }
  void compare_versions(Lbn block, SequenceNumber from, SequenceNumber to) {
    std::vector<SequenceNumber> found;
    consult([&](const VersionLookup& lookup) { found = lookup.versions(block, from, to); });
    EXPECT_EQ(found, memory_.versions(block, from, to));
  }
  // Asked again and again, as whoever gets few at a time does.
  void compare_changes(Lbn block, SequenceNumber from, SequenceNumber to) {
    std::vector<std::uint64_t> expected;
    for (const SequenceNumber each : memory_.versions(block, from, to)) {
      expected.push_back(each.value);
    }
    for (const auto& [record, location] : records_) {
      if (record.type != RecordType::kRollback || record.sequence <= from || record.sequence > to) {
        continue;
      }
      const BlockRange range{block, {1}};
      if (!same(memory_.locate(range, {record.sequence.value - 1}).front(),
                memory_.locate(range, record.sequence).front())) {
        expected.push_back(record.sequence.value);
      }
    }
    std::ranges::sort(expected);
    std::vector<std::uint64_t> found;
    const std::size_t most = pick(3) == 0 ? SIZE_MAX : 1 + pick(3);
    while (from < to) {
      VersionLookup::Changes some;
      consult([&](const VersionLookup& lookup) { some = lookup.changes(block, from, to, most); });
      ASSERT_LE(some.list.size(), most);
      ASSERT_GT(some.through, from);
      for (const IndexMoment& each : some.list) {
        EXPECT_EQ(each.time, memory_.moment_of(each.sequence).time);
        found.push_back(each.sequence.value);
      }
      from = some.through;
    }
    EXPECT_EQ(found, expected) << "block " << block.value;
  }
  void compare_changed(SequenceNumber from, SequenceNumber to) {
    std::optional<std::vector<BlockRange>> found;
    stored_->changed(from, to, [&](Result<std::vector<BlockRange>> r) { found = *std::move(r); });
    executor_.run_ready();
    EXPECT_EQ(found, memory_.changed(from, to));
  }
  void compare_moments(SequenceNumber at) {
    std::optional<IndexMoment> found;
    stored_->moment_of(at, [&](Result<IndexMoment> r) { found = *r; });
    executor_.run_ready();
    const IndexMoment expected = memory_.moment_of(at);
    EXPECT_EQ(found->sequence, expected.sequence);
    const VersionTime time{expected.time.ns + pick(500)};
    stored_->moment_at(time, [&](Result<IndexMoment> r) { found = *r; });
    executor_.run_ready();
    EXPECT_EQ(found->sequence, memory_.moment_at(time).sequence);
  }

  std::mt19937_64 random_;
  ManualExecutor executor_;
  FaultyDisk disk_;
  std::unique_ptr<Bosc> store_;
  std::unique_ptr<StoredIndex> stored_;
  MemoryIndex memory_;
  std::deque<std::pair<Record, LogLocation>> records_;  // that the log has
  std::vector<std::pair<Record, LogLocation>> log_;
  std::uint64_t ordinal_ = 0;
  std::uint64_t sequence_ = 0;
  std::uint64_t time_ = 1'000'000;
  const bool twice_ = pick(3) == 0;
  IndexMoment given_up_;
  std::uint64_t given_up_ordinal_ = 0;
  std::uint64_t mended_ = 0;
};

}  // namespace mariner::test
