// Rows in B+ trees with a page cache, changed in place: the variant "vanilla" of dissertation 3.4.
#pragma once

#include <deque>
#include <memory>

#include "logging/file_disk.h"
#include "tests/bench/page_cache.h"
#include "tests/bench/page_tree.h"
#include "tests/bench/row_engine.h"

namespace mariner::bench {

class PageRows final : public RowEngine {
 public:
  static Result<std::unique_ptr<PageRows>> create(const RowEngineOptions& options);
  ~PageRows() override;

  [[nodiscard]] std::string name() const override { return "vanilla"; }
  void load(std::uint32_t table, const Next& next) override;
  void apply(std::span<const RowUpdate> updates) override;
  void begin_find(std::uint32_t table, KeyRange range, Found done) override;
  std::uint64_t count(std::uint32_t table, KeyRange range) override;
  void poll() override {}
  void commit() override { pages_.write_back(); }
  [[nodiscard]] EngineCounts counts() const override;

 private:
  PageRows(const RowEngineOptions& options, std::unique_ptr<logging::FileDisk> disk);

  const RowEngineOptions options_;
  const std::unique_ptr<logging::FileDisk> disk_;
  PageCache pages_;
  std::deque<PageTree> tables_;
};

}  // namespace mariner::bench
