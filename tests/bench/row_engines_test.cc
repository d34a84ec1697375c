// All engines of rows, without a log and with one, put to the test of the version indexes
// (index_engine_model.h), and to what only rows have: deletes.
#include "tests/bench/row_engines.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>

#include "tests/bench/append_log.h"
#include "tests/bench/index_engine_model.h"
#include "tests/bench/logged_rows.h"
#include "tests/bench/redo_record.h"
#include "tests/bench/row_versions.h"
#include "tests/bench/writer_log.h"
#include "tests/logging/temporary_directory.h"

namespace mariner::bench {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// An engine with everything that it needs.
class Assembled {
 public:
  Assembled(const std::string& engine, const std::string& log, std::vector<RowTable> tables,
            std::uint32_t block_bytes, std::size_t memory_bytes = 4 * kMiB) {
    auto loop = RingLoop::create();
    EXPECT_TRUE(loop);
    loop_ = *std::move(loop);
    RowEngineOptions options;
    options.path = folder_.file("rows");
    options.disk_bytes = 256 * kMiB;
    options.block_bytes = block_bytes;
    options.memory_bytes = memory_bytes;
    options.tables = tables;
    auto rows = make_row_engine(engine, options, *loop_);
    EXPECT_TRUE(rows) << rows.error().message;
    rows_ = *std::move(rows);
    if (log == "writer") {
      auto made = WriterLog::create(
          {log_path(), 16 * logging::kTrackBytesMin, logging::kTrackBytesMin}, *loop_);
      EXPECT_TRUE(made) << made.error().message;
      log_ = *std::move(made);
    } else if (log == "append") {
      auto made = AppendLog::create(folder_.file("append"), *loop_);
      EXPECT_TRUE(made) << made.error().message;
      log_ = *std::move(made);
    }
    if (log_) {
      std::size_t longest = 0;
      for (const RowTable& table : tables) longest = std::max(longest, table.value_bytes);
      logged_ = std::make_unique<LoggedRows>(LoggedRows::Parts{*rows_, *log_, *loop_},
                                             LoggedRows::Options{64, longest});
    }
  }

  [[nodiscard]] RowEngine& engine() { return logged_ ? static_cast<RowEngine&>(*logged_) : *rows_; }
  [[nodiscard]] LoggedRows& logged() { return *logged_; }
  [[nodiscard]] UpdateLog& log() { return *log_; }
  [[nodiscard]] std::string log_path() const { return folder_.file("log"); }
  void close() {
    logged_.reset();
    log_.reset();
    rows_.reset();
  }

 private:
  logging::test::TemporaryDirectory folder_;
  std::unique_ptr<RingLoop> loop_;
  std::unique_ptr<RowEngine> rows_;
  std::unique_ptr<UpdateLog> log_;
  std::unique_ptr<LoggedRows> logged_;
};

using Case = std::tuple<std::string, std::string, std::uint32_t>;

class RowEnginesTest : public testing::TestWithParam<Case> {};

TEST_P(RowEnginesTest, AnswersLikeAMap) {
  const auto& [engine, log, block_bytes] = GetParam();
  Assembled assembled(engine, log, RowVersions::tables(), block_bytes);
  RowVersions versions(assembled.engine());
  IndexEngineModel(versions, {}).expect_all();
  if (engine == "bosc" || engine == "multi-queue") {
    EXPECT_GT(versions.counts().cycles, 0u);
  }
  EXPECT_GT(versions.counts().bytes_read, 0u);
}

TEST_P(RowEnginesTest, RowsArePutReplacedAndDeleted) {
  const auto& [engine, log, block_bytes] = GetParam();
  Assembled assembled(engine, log, {{.value_bytes = 84}}, block_bytes);
  RowEngine& rows = assembled.engine();
  std::map<std::uint64_t, std::uint64_t> expected;
  std::mt19937_64 random(5);
  std::vector<std::byte> value(84);
  const auto find = [&](std::uint64_t low, std::uint64_t high) {
    std::optional<index::IndexRecord> found;
    bool answered = false;
    rows.begin_find(0, {{low, 0}, {high, 0}}, [&](std::optional<index::IndexRecord> row) {
      found = std::move(row);
      answered = true;
    });
    while (!answered) rows.poll();
    return found;
  };
  const auto expect = [&](std::uint64_t low, std::uint64_t high) {
    const auto found = find(low, high);
    auto at = expected.upper_bound(high);
    const bool any = at != expected.begin() && (--at)->first >= low;
    ASSERT_EQ(found.has_value(), any) << low << " to " << high;
    if (!any) return;
    EXPECT_EQ(found->key.high, at->first);
    EXPECT_EQ(load_le<std::uint64_t>(found->value.data()), at->second);
  };
  for (std::uint64_t i = 0; i < 40'000; ++i) {
    const std::uint64_t key = scaled(random(), 10'000);
    if (random() % 3 == 0) {
      const RowUpdate update{0, {key, 0}, {}};
      rows.apply({&update, 1});
      expected.erase(key);
    } else {
      store_le(value.data(), i);
      const RowUpdate update{0, {key, 0}, value};
      rows.apply({&update, 1});
      expected[key] = i;
    }
    if (i % 50 == 0) {
      expect(key, key);
      const std::uint64_t low = scaled(random(), 10'000);
      expect(low, low + random() % 8);
    }
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(rows.count(0, {{}, index::IndexKey::max()}), expected.size());
  rows.commit();
  for (std::uint64_t key = 0; key < 10'000; key += 7) expect(key, key);
  EXPECT_EQ(rows.count(0, {{}, index::IndexKey::max()}), expected.size());
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::string_view engine : kRowEngines) all.emplace_back(engine, "none", 4096);
  all.emplace_back("bosc", "none", 16384);
  all.emplace_back("multi-queue", "none", 16384);
  all.emplace_back("bosc", "writer", 4096);
  all.emplace_back("vanilla", "append", 4096);
  return all;
}

std::string name_of(const testing::TestParamInfo<Case>& of) {
  const auto& [engine, log, block_bytes] = of.param;
  std::string name = engine + "_" + log + "_" + std::to_string(block_bytes);
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Engines, RowEnginesTest, testing::ValuesIn(cases()), name_of);

// Which updates find their way into the file, and when, is what tells the variants apart.
std::uint64_t bytes_moved(const std::string& engine) {
  Assembled assembled(engine, "none", {{.value_bytes = 48}}, 16384, kMiB);
  RowEngine& rows = assembled.engine();
  const std::vector<std::byte> value(48);
  std::uint64_t next = 0;
  rows.load(0, [&]() -> std::optional<RowEngine::Row> {
    if (next == 200'000) return std::nullopt;
    return RowEngine::Row{{next++ * 1000, 0}, value};
  });
  const EngineCounts before = rows.counts();
  std::mt19937_64 random(1);
  for (int i = 0; i < 30'000; ++i) {
    const RowUpdate update{0, {scaled(random(), 200'000'000), 0}, value};
    rows.apply({&update, 1});
  }
  return rows.counts().bytes_written + rows.counts().bytes_read - before.bytes_written -
         before.bytes_read;
}

TEST(RowEnginesComparedTest, OnlyAQueueForEachBlockMakesCommitsCheap) {
  const std::uint64_t multi = bytes_moved("multi-queue");
  const std::uint64_t one = bytes_moved("one-queue");
  const std::uint64_t vanilla = bytes_moved("vanilla");
  EXPECT_LT(5 * multi, one);
  EXPECT_LT(5 * multi, vanilla);
  // Without neighbours in its head, one queue saves little: nearly every update moves its block.
  EXPECT_GT(2 * one, vanilla);
}

TEST(LoggedRowsTest, WhatCountsStandsInTheLogInOrder) {
  Assembled assembled("multi-queue", "writer", {{.value_bytes = 20}}, 4096);
  std::vector<std::uint64_t> brought;
  for (std::uint64_t i = 0; i < 5'000; ++i) {
    std::vector<std::byte> value(i % 9 == 0 ? 0 : 20, std::byte{1});
    const RowUpdate update{0, {i, i + 1}, value};
    assembled.engine().apply({&update, 1});
    brought.push_back(i);
  }
  assembled.logged().settle();
  EXPECT_EQ(assembled.logged().applied(), brought.size());
  EXPECT_EQ(assembled.logged().latency().total(), brought.size());
  const std::string path = assembled.log_path();
  assembled.close();
  std::vector<std::uint64_t> found;
  const Result<void> read = WriterLog::read_all(path, [&](std::span<const std::byte> record) {
    const auto updates = parse_redo(record);
    ASSERT_TRUE(updates);
    for (const RowUpdate& update : *updates) {
      EXPECT_EQ(update.key.low, update.key.high + 1);
      EXPECT_EQ(update.value.empty(), update.key.high % 9 == 0);
      found.push_back(update.key.high);
    }
  });
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(found, brought);
}

// What an engine has been given is in the log: nothing is applied before.
TEST(LoggedRowsTest, NothingReachesTheEngineBeforeItIsDurable) {
  class HeldLog final : public UpdateLog {
   public:
    [[nodiscard]] std::string name() const override { return "held"; }
    void append(const PayloadSlice&, Done done) override { done_ = std::move(done); }
    [[nodiscard]] std::uint64_t written_bytes() const override { return 0; }
    Done done_;
  };
  Assembled assembled("vanilla", "none", {{.value_bytes = 8}}, 4096);
  auto loop = RingLoop::create();
  ASSERT_TRUE(loop);
  HeldLog log;
  LoggedRows rows({assembled.engine(), log, **loop}, {4, 8});
  const std::vector<std::byte> value(8);
  for (std::uint64_t key = 0; key < 3; ++key) {
    const RowUpdate update{0, {key, 0}, value};
    rows.apply({&update, 1});
    rows.poll();
  }
  EXPECT_EQ(assembled.engine().count(0, {{}, index::IndexKey::max()}), 0u);
  EXPECT_EQ(rows.applied(), 0u);
  log.done_({});  // of the first one
  rows.poll();
  EXPECT_EQ(assembled.engine().count(0, {{}, index::IndexKey::max()}), 1u);
  log.done_({});
  rows.poll();
  EXPECT_EQ(rows.applied(), 3u);
}

TEST(WriterLogTest, GoesRound) {
  logging::test::TemporaryDirectory folder;
  auto loop = RingLoop::create();
  ASSERT_TRUE(loop);
  auto log = WriterLog::create(
      {folder.file("log"), 16 * logging::kTrackBytesMin, logging::kTrackBytesMin}, **loop);
  ASSERT_TRUE(log) << log.error().message;
  const Payload payload = Payload::zeroed(kMiB);
  for (int i = 0; i < 200; ++i) {
    bool durable = false;
    (*log)->append({payload, 0, payload.size()}, [&](const Result<void>& r) {
      EXPECT_TRUE(r) << r.error().message;
      durable = true;
    });
    (*loop)->run_until([&] { return durable; });
  }
  EXPECT_GT((*log)->written_bytes(), 200 * kMiB);
  EXPECT_GT((*log)->releases(), 0u);
}

TEST(RedoRecordTest, RefusesWhatIsNone) {
  std::vector<std::byte> record(4096);
  EXPECT_EQ(parse_redo(record)->size(), 0u);
  const std::vector<std::byte> value(10, std::byte{7});
  const RowUpdate put = put_redo({3, {1, 2}, value}, record.data());
  ASSERT_EQ(parse_redo(record)->size(), 1u);
  EXPECT_EQ(parse_redo(record)->front().table, 3u);
  EXPECT_EQ(parse_redo(record)->front().value.data(), put.value.data());
  store_le<std::uint32_t>(record.data() + 8, 1u << 30);
  EXPECT_FALSE(parse_redo(record));
  store_le<std::uint32_t>(record.data() + 8, 0);
  EXPECT_FALSE(parse_redo(record));
  store_le<std::uint32_t>(record.data(), 9);
  EXPECT_FALSE(parse_redo(record));
}

}  // namespace
}  // namespace mariner::bench
