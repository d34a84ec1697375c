// Pages of a file in memory, as a database of the usual kind keeps them: what is not there is read
// when it is asked for, and what must go for it is written first if it is dirty.
//
// Those that were not looked at again lately go first (CLOCK). A page is an index block
// (index_block.h): sealed when it is written, checked when it is read, so that it costs and holds
// what a block of Mariner's index does. All calls block; an error of the disk ends the program. One
// thread.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <span>
#include <vector>

#include "index/index_block.h"
#include "logging/disk.h"
#include "proto/payload.h"

namespace mariner::bench {

class PageCache {
 public:
  using Address = index::BlockAddress;

  struct Options {
    std::size_t page_bytes = 0;
    std::size_t bytes_max = 0;
  };
  struct Counts {
    std::uint64_t reads = 0;
    std::uint64_t bytes_read = 0;
    std::uint64_t writes = 0;
    std::uint64_t bytes_written = 0;
  };
  static constexpr std::size_t kPagesMin = 4;
  static constexpr std::size_t kTransferBytesMax = 1u << 20;  // of load_page() and write_back()

  // `disk` outlives it.
  PageCache(logging::Disk& disk, const Options& options);

  // The contents of a page, valid until the next call. Of change() the page is dirty.
  [[nodiscard]] std::span<const std::byte> view(Address address);
  [[nodiscard]] std::span<std::byte> change(Address address);
  // A new page at the end of the file: zeros, dirty. Requires that the file has room.
  [[nodiscard]] Address add_page();

  // The same, past the cache: the contents to be filled in before the next call, which may write
  // this one with those before it, in large writes. end_load() writes the last.
  struct Loaded {
    Address address;
    std::span<std::byte> contents;
  };
  [[nodiscard]] Loaded load_page();
  void end_load();

  // Writes what is dirty, in the order of the file, neighbours together, and flushes.
  void write_back();

  [[nodiscard]] std::size_t contents_bytes() const {
    return options_.page_bytes - index::kIndexBlockHeaderBytes;
  }
  [[nodiscard]] std::uint64_t file_bytes() const { return pages_ * options_.page_bytes; }
  [[nodiscard]] std::size_t memory_bytes() const { return slots_.size() * options_.page_bytes; }
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  struct Slot {
    Address address;
    Payload page;
    bool dirty = false;
    bool used = false;  // again, lately
  };

  Slot& slot_of(Address address);
  // One whose page may be overwritten.
  Slot& free_slot(Address address);
  [[nodiscard]] Address next_address();
  [[nodiscard]] std::uint64_t offset_of(Address address) const {
    return std::uint64_t{address.value} * options_.page_bytes;
  }
  void seal(Address address, std::span<std::byte> page) const;
  void write(std::uint64_t offset, std::span<const logging::ConstBytes> parts);

  logging::Disk& disk_;
  const Options options_;
  const std::size_t slots_max_;
  std::vector<Slot> slots_;
  boost::unordered_flat_map<std::uint32_t, std::uint32_t> by_address_;
  std::size_t hand_ = 0;
  std::uint32_t pages_ = 0;
  Payload loading_;
  std::uint32_t loading_first_ = 0;
  Counts counts_;
};

}  // namespace mariner::bench
