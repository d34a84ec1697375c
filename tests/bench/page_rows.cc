#include "tests/bench/page_rows.h"

#include <unistd.h>

#include <filesystem>
#include <utility>

namespace mariner::bench {

Result<std::unique_ptr<PageRows>> PageRows::create(const RowEngineOptions& options) {
  using logging::FileDisk;
  ::unlink(options.path.c_str());
  if (Result<void> r =
          FileDisk::create(options.path, FileDisk::Caching::kBuffered, options.disk_bytes);
      !r) {
    return r.error();
  }
  auto disk = FileDisk::open(options.path, FileDisk::Caching::kDirect, nullptr);
  if (!disk) return disk.error();
  return std::unique_ptr<PageRows>(new PageRows(options, *std::move(disk)));
}

PageRows::PageRows(const RowEngineOptions& options, std::unique_ptr<logging::FileDisk> disk)
    : options_(options),
      disk_(std::move(disk)),
      pages_(*disk_, {.page_bytes = options.block_bytes, .bytes_max = options.memory_bytes}) {
  for (const RowTable& table : options_.tables) tables_.emplace_back(pages_, table.value_bytes);
}

PageRows::~PageRows() {
  std::error_code ignored;
  std::filesystem::remove(options_.path, ignored);
}

void PageRows::load(std::uint32_t table, const Next& next) {
  tables_[table].load(
      [&]() -> std::optional<PageTree::Record> {
        const std::optional<Row> row = next();
        if (!row) return std::nullopt;
        return PageTree::Record{row->key, row->value};
      },
      options_.tables[table].load_fill);
}

void PageRows::apply(std::span<const RowUpdate> updates) {
  for (const RowUpdate& update : updates) {
    if (update.value.empty()) {
      tables_[update.table].erase(update.key);
    } else {
      tables_[update.table].insert(update.key, update.value);
    }
  }
}

void PageRows::begin_find(std::uint32_t table, KeyRange range, Found done) {
  const std::optional<PageTree::Record> found =
      tables_[table].find_last({.low = range.low, .high = range.high});
  if (!found) return done(std::nullopt);
  done(index::IndexRecord{found->key, {found->value.begin(), found->value.end()}});
}

std::uint64_t PageRows::count(std::uint32_t table, KeyRange range) {
  return tables_[table].count({.low = range.low, .high = range.high});
}

EngineCounts PageRows::counts() const {
  const PageCache::Counts& disk = pages_.counts();
  std::uint64_t node_bytes = 0;
  for (const PageTree& table : tables_) node_bytes += table.node_bytes();
  return {.reads = disk.reads,
          .bytes_read = disk.bytes_read,
          .writes = disk.writes,
          .bytes_written = disk.bytes_written,
          .disk_bytes = pages_.file_bytes(),
          .memory_bytes = pages_.memory_bytes(),
          .node_bytes = node_bytes};
}

}  // namespace mariner::bench
