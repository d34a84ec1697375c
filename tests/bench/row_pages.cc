#include "tests/bench/row_pages.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "index/commit_function.h"
#include "proto/check.h"

namespace mariner::bench {
namespace {

constexpr index::IndexFileId kFile{};
constexpr std::size_t kLoadBytes = 1u << 20;

index::IndexBlockHeader header_of(RowPages::Page page) {
  return {.address = {page}, .function = {1}, .version = 1};
}

}  // namespace

bool RowPages::Run::has(Page page) const {
  return (page >= first && page < first + count) ||
         std::ranges::any_of(added, [&](const auto& one) { return one.first == page; });
}

Result<std::unique_ptr<RowPages>> RowPages::create(const RowEngineOptions& options,
                                                   RingLoop& loop) {
  using logging::FileDisk;
  ::unlink(options.path.c_str());
  std::unique_ptr<RowPages> made(new RowPages(options, loop));
  if (Result<void> r =
          FileDisk::create(options.path, FileDisk::Caching::kBuffered, options.disk_bytes);
      !r) {
    return r.error();
  }
  auto disk = FileDisk::open(options.path, FileDisk::Caching::kDirect, &loop.ring());
  if (!disk) return disk.error();
  made->disk_ = *std::move(disk);
  return made;
}

RowPages::RowPages(const RowEngineOptions& options, RingLoop& loop)
    : options_(options), loop_(loop), maps_(options.tables.size()), buffers_(options.block_bytes) {
  for (const RowTable& table : options_.tables) {
    shapes_.push_back({options_.block_bytes - index::kIndexBlockHeaderBytes, table.value_bytes});
  }
}

RowPages::~RowPages() {
  std::error_code ignored;
  std::filesystem::remove(options_.path, ignored);
}

RowPages::Page RowPages::add_page(std::uint32_t table, IndexKey low) {
  const Page page = pages();
  CHECK_MSG(offset_of(page + 1) <= options_.disk_bytes, "the index has outgrown its file");
  pages_.push_back({low, table, false});
  maps_[table].insert(low, page);
  return page;
}

RowPages::Page RowPages::page_of(std::uint32_t table, IndexKey key) {
  if (is_empty(table)) return add_page(table, {});
  return maps_[table].find(key);
}

void RowPages::load(std::uint32_t table, const RowEngine::Next& next) {
  CHECK(is_empty(table));
  const index::LeafShape& shape = shapes_[table];
  const std::size_t goal =
      std::max<std::size_t>(shape.capacity() * options_.tables[table].load_fill / 100, 1);
  const std::size_t pages_max = std::max<std::size_t>(kLoadBytes / options_.block_bytes, 1);
  Payload piece = Payload::allocate(pages_max * options_.block_bytes);
  Page first = pages();
  const auto write = [&] {
    const std::size_t count = pages() - first;
    if (count == 0) return;
    for (std::size_t i = 0; i < count; ++i) {
      const Page page = first + static_cast<Page>(i);
      index::seal_index_block(header_of(page), kFile, block_of(piece, i));
      pages_[page].on_disk = true;
    }
    const logging::ConstBytes part = piece.bytes().first(count * options_.block_bytes);
    const Result<void> written =
        disk_->write(offset_of(first), {&part, 1}, logging::Durability::kVolatile);
    CHECK_MSG(written.has_value(), written.has_error() ? written.error().message.c_str() : "");
    ++counts_.writes;
    counts_.bytes_written += part.size();
    first = pages();
  };
  std::size_t rows = goal;
  std::span<std::byte> contents;
  std::vector<std::byte> record(shape.record_bytes());
  while (const std::optional<RowEngine::Row> row = next()) {
    if (rows == goal) {
      if (pages() - first == pages_max) write();
      const Page page = add_page(table, is_empty(table) ? IndexKey{} : row->key);
      const std::span<std::byte> block = block_of(piece, page - first);
      std::memset(block.data(), 0, block.size());
      contents = index::contents_of(block);
      rows = 0;
    }
    index::store_key(record.data(), row->key);
    std::ranges::copy(row->value, record.begin() + index::kKeyBytes);
    CHECK(index::apply_to_leaf(contents, record, shape));
    ++rows;
  }
  write();
  flush();
}

void RowPages::check(Page page, std::span<const std::byte> block) const {
  CHECK(index::check_index_block(header_of(page), kFile, block) == index::BlockDamage::kNone);
}

std::span<const std::byte> RowPages::view(Page page) {
  if (!pages_[page].on_disk) return {};
  if (!viewed_) viewed_ = Payload::allocate(options_.block_bytes);
  const Result<void> read = disk_->read(offset_of(page), viewed_.bytes());
  CHECK_MSG(read.has_value(), read.has_error() ? read.error().message.c_str() : "");
  ++counts_.reads;
  counts_.bytes_read += options_.block_bytes;
  check(page, viewed_.bytes());
  return index::contents_of(std::as_const(viewed_).bytes());
}

void RowPages::begin_read(Run& run) {
  run.before = Payload::allocate(std::size_t{run.count} * options_.block_bytes);
  run.added.clear();
  ++run.transfers;
  ++counts_.reads;
  counts_.bytes_read += run.before.size();
  disk_->async_read(offset_of(run.first), run.before.bytes(), [&run](const Result<void>& r) {
    CHECK_MSG(r.has_value(), r.has_error() ? r.error().message.c_str() : "");
    --run.transfers;
  });
}

void RowPages::commit(Run& run, const index::ModificationPool& pool, const PendingOf& pending_of) {
  CHECK(run.transfers == 0);
  run.after = Payload::allocate(run.before.size());
  for (std::uint32_t i = 0; i < run.count; ++i) {
    const Page page = run.first + i;
    const std::span<std::byte> before = block_of(run.before, i);
    const std::span<std::byte> after = block_of(run.after, i);
    if (pages_[page].on_disk) check(page, before);
    const index::ModificationQueue* const pending = pending_of(page);
    if (pending == nullptr) {
      CHECK(pages_[page].on_disk);
      std::ranges::copy(before, after.begin());
      continue;
    }
    const std::uint32_t table = pages_[page].table;
    const index::LeafShape& shape = shapes_[table];
    index::BlockCommit commit({{page},
                               pages_[page].on_disk
                                   ? index::contents_of(std::span<const std::byte>(before))
                                   : std::span<const std::byte>{},
                               index::contents_of(after),
                               {pool, pending},
                               &buffers_});
    index::commit_leaf(commit, shape, nullptr);
    for (std::size_t part = 1; part < commit.result_blocks(); ++part) {
      const Page added = add_page(table, index::Leaf(commit.result(part), shape).key(0));
      Payload block = Payload::allocate(options_.block_bytes);
      std::memset(block.data(), 0, index::kIndexBlockHeaderBytes);
      std::ranges::copy(commit.result(part), index::contents_of(block.bytes()).begin());
      run.added.emplace_back(added, std::move(block));
    }
  }
}

void RowPages::begin_transfer(Run& run, Page page, std::span<const std::byte> bytes) {
  ++run.transfers;
  ++counts_.writes;
  counts_.bytes_written += bytes.size();
  disk_->async_write(offset_of(page), {bytes}, logging::Durability::kVolatile,
                     [&run](const Result<void>& r) {
                       CHECK_MSG(r.has_value(), r.has_error() ? r.error().message.c_str() : "");
                       --run.transfers;
                     });
}

void RowPages::begin_write(Run& run) {
  for (std::uint32_t i = 0; i < run.count; ++i) {
    index::seal_index_block(header_of(run.first + i), kFile, block_of(run.after, i));
    pages_[run.first + i].on_disk = true;
  }
  begin_transfer(run, run.first, std::as_const(run.after).bytes());
  for (auto& [page, block] : run.added) {
    index::seal_index_block(header_of(page), kFile, block.bytes());
    pages_[page].on_disk = true;
    begin_transfer(run, page, std::as_const(block).bytes());
  }
}

void RowPages::flush() {
  const Result<void> flushed = disk_->flush();
  CHECK_MSG(flushed.has_value(), flushed.has_error() ? flushed.error().message.c_str() : "");
}

std::uint64_t RowPages::node_bytes() const {
  std::uint64_t bytes = pages_.capacity() * sizeof(PageState);
  for (const index::LeafMap& map : maps_) bytes += map.memory_bytes();
  return bytes;
}

}  // namespace mariner::bench
