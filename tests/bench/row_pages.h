// The file of the rivals that queue updates: leaves of several B+ trees in pages of a file,
// internal nodes in memory, no cache.
//
// Leaves are those of index/leaf.h and are committed as BOSC does it (commit_leaf): from what a
// page holds and all that is pending for it, divided over new pages at the end of the file where it
// does not fit. A page is changed in place. An error of the disk ends the program. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "index/block_buffers.h"
#include "index/index_block.h"
#include "index/leaf.h"
#include "index/leaf_map.h"
#include "index/modification_queue.h"
#include "logging/file_disk.h"
#include "proto/payload.h"
#include "tests/bench/page_cache.h"
#include "tests/bench/row_engine.h"

namespace mariner::bench {

class RowPages {
 public:
  using IndexKey = index::IndexKey;
  using Page = std::uint32_t;  // its number in the file, and its leaf's in the map

  // `loop` outlives it. The file of `options` is made anew.
  static Result<std::unique_ptr<RowPages>> create(const RowEngineOptions& options, RingLoop& loop);
  ~RowPages();  // nothing is under way

  // As RowEngine::load.
  void load(std::uint32_t table, const RowEngine::Next& next);

  // The page that the key belongs to. A table without one gets its first.
  [[nodiscard]] Page page_of(std::uint32_t table, IndexKey key);
  [[nodiscard]] bool is_empty(std::uint32_t table) const { return maps_[table].size() == 0; }
  // The smallest key above `key` that another page begins with.
  [[nodiscard]] std::optional<IndexKey> next_low(std::uint32_t table, IndexKey key) const {
    return maps_[table].next_low(key);
  }
  [[nodiscard]] IndexKey low(Page page) const { return pages_[page].low; }
  [[nodiscard]] const index::LeafShape& shape(std::uint32_t table) const { return shapes_[table]; }
  [[nodiscard]] Page pages() const { return static_cast<Page>(pages_.size()); }

  // The contents of a page, valid until the next call; empty where it was never written.
  [[nodiscard]] std::span<const std::byte> view(Page page);

  // Neighbouring pages, as they are read and written together.
  struct Run {
    Page first = 0;
    std::uint32_t count = 0;
    Payload before;
    Payload after;
    std::vector<std::pair<Page, Payload>> added;
    unsigned transfers = 0;  // under way

    [[nodiscard]] bool has(Page page) const;
    [[nodiscard]] bool meets(const Run& other) const {
      return first < other.first + other.count && other.first < first + count;
    }
  };
  // `run` stays where it is until its transfers have ended.
  void begin_read(Run& run);
  // Of a run that has been read: what is pending for each page, or nothing.
  using PendingOf = std::function<const index::ModificationQueue*(Page)>;
  void commit(Run& run, const index::ModificationPool& pool, const PendingOf& pending_of);
  void begin_write(Run& run);
  void await(const Run& run) {
    loop_.run_until([&] { return run.transfers == 0; });
  }
  void flush();

  [[nodiscard]] const PageCache::Counts& counts() const { return counts_; }
  [[nodiscard]] std::uint64_t file_bytes() const {
    return std::uint64_t{pages()} * options_.block_bytes;
  }
  [[nodiscard]] std::uint64_t node_bytes() const;

 private:
  struct PageState {
    IndexKey low;
    std::uint32_t table = 0;
    bool on_disk = false;
  };
  RowPages(const RowEngineOptions& options, RingLoop& loop);

  Page add_page(std::uint32_t table, IndexKey low);
  [[nodiscard]] std::span<std::byte> block_of(Payload& payload, std::size_t i) const {
    return payload.bytes().subspan(i * options_.block_bytes, options_.block_bytes);
  }
  [[nodiscard]] std::uint64_t offset_of(Page page) const {
    return std::uint64_t{page} * options_.block_bytes;
  }
  void check(Page page, std::span<const std::byte> block) const;
  void begin_transfer(Run& run, Page page, std::span<const std::byte> bytes);

  const RowEngineOptions options_;
  RingLoop& loop_;
  std::unique_ptr<logging::FileDisk> disk_;
  std::vector<index::LeafShape> shapes_;  // by table
  std::vector<index::LeafMap> maps_;
  std::vector<PageState> pages_;
  index::BlockBuffers buffers_;
  Payload viewed_;
  PageCache::Counts counts_;
};

}  // namespace mariner::bench
