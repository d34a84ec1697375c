// Rows in B+ trees of this project on one BOSC store: the variant "BOSC" of dissertation 3.4.
#pragma once

#include <memory>
#include <vector>

#include "index/bosc.h"
#include "index/btree.h"
#include "logging/file_disk.h"
#include "tests/bench/row_engine.h"

namespace mariner::bench {

class BoscRows final : public RowEngine {
 public:
  // `loop` outlives it.
  static Result<std::unique_ptr<BoscRows>> create(const RowEngineOptions& options, RingLoop& loop);
  ~BoscRows() override;

  [[nodiscard]] std::string name() const override { return "BOSC"; }
  void load(std::uint32_t table, const Next& next) override;
  void apply(std::span<const RowUpdate> updates) override;
  void begin_find(std::uint32_t table, KeyRange range, Found done) override;
  std::uint64_t count(std::uint32_t table, KeyRange range) override;
  void poll() override { loop_.poll(); }
  void commit() override;
  [[nodiscard]] EngineCounts counts() const override;

 private:
  BoscRows(const RowEngineOptions& options, RingLoop& loop) : options_(options), loop_(loop) {}
  Result<void> open();
  void make_room();

  const RowEngineOptions options_;
  RingLoop& loop_;
  std::unique_ptr<logging::FileDisk> disk_;
  std::unique_ptr<index::Bosc> store_;
  std::vector<std::unique_ptr<index::BTree>> tables_;
  std::vector<index::BTree::Insert> inserts_;  // of one table, that come together
  std::uint64_t number_ = 0;
};

}  // namespace mariner::bench
