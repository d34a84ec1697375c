// The version index over rows: TL is table 0, LT table 1. So whatever keeps rows is put to the test
// that all engines of the version index must pass (index_engine_model.h).
#pragma once

#include <string>
#include <vector>

#include "proto/bytes.h"
#include "tests/bench/index_engine.h"
#include "tests/bench/row_engine.h"

namespace mariner::bench {

class RowVersions final : public IndexEngine {
 public:
  static constexpr std::uint32_t kByTime = 0;
  static constexpr std::uint32_t kByBlock = 1;
  static constexpr std::size_t kByTimeBytes = 32;
  static constexpr std::size_t kByBlockBytes = 16;

  [[nodiscard]] static std::vector<RowTable> tables() {
    return {{.value_bytes = kByTimeBytes, .load_fill = 100},
            {.value_bytes = kByBlockBytes, .ascends_within_high = true}};
  }
  // `rows` has tables(), and outlives it.
  explicit RowVersions(RowEngine& rows) : rows_(rows) {}

  [[nodiscard]] std::string name() const override { return rows_.name(); }

  Result<void> load(const Next& next_by_block, const Next& next_by_time) override {
    rows_.load(kByBlock, [&]() -> std::optional<RowEngine::Row> {
      const std::optional<BenchVersion> version = next_by_block();
      if (!version) return std::nullopt;
      fill(*version);
      return RowEngine::Row{{version->block, version->sequence}, by_block()};
    });
    rows_.load(kByTime, [&]() -> std::optional<RowEngine::Row> {
      const std::optional<BenchVersion> version = next_by_time();
      if (!version) return std::nullopt;
      fill(*version);
      return RowEngine::Row{{version->sequence, version->block}, value_};
    });
    return {};
  }

  void insert(const BenchVersion& version) override {
    fill(version);
    const RowUpdate updates[] = {{kByTime, {version.sequence, version.block}, value_},
                                 {kByBlock, {version.block, version.sequence}, by_block()}};
    rows_.apply(updates);
  }

  std::optional<BenchVersion> find(std::uint64_t block, std::uint64_t sequence) override {
    std::optional<BenchVersion> found;
    bool answered = false;
    begin_find(block, sequence, [&](std::optional<BenchVersion> version) {
      found = version;
      answered = true;
    });
    while (!answered) rows_.poll();
    return found;
  }

  void begin_find(std::uint64_t block, std::uint64_t sequence,
                  std::function<void(std::optional<BenchVersion>)> done) override {
    rows_.begin_find(kByBlock, {{block, 0}, {block, sequence}},
                     [done = std::move(done)](std::optional<index::IndexRecord> row) {
                       if (!row) return done(std::nullopt);
                       done(BenchVersion{row->key.high, row->key.low,
                                         load_le<std::uint64_t>(row->value.data())});
                     });
  }

  void poll() override { rows_.poll(); }

  std::uint64_t scan(std::uint64_t first, std::uint64_t blocks) override {
    if (blocks == 0) return 0;
    return rows_.count(kByBlock, {{first, 0}, {first + blocks - 1, UINT64_MAX}});
  }

  void commit() override { rows_.commit(); }
  [[nodiscard]] EngineCounts counts() const override { return rows_.counts(); }

 private:
  void fill(const BenchVersion& version) {
    store_le(value_, version.place);
    store_le(value_ + 8, version.block);
  }
  [[nodiscard]] RowEngine::Value by_block() const { return std::span(value_).first(kByBlockBytes); }

  RowEngine& rows_;
  std::byte value_[kByTimeBytes] = {};
};

}  // namespace mariner::bench
