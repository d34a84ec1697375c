#include "server/client/qcow2_image.h"

#include <algorithm>
#include <array>

#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::client {
namespace {

constexpr std::uint64_t kCluster = Qcow2Image::kClusterBytes;
constexpr std::uint32_t kClusterBits = 16;
static_assert(kCluster == 1u << kClusterBits);
constexpr std::uint64_t kTableEntries = kCluster / 8;
constexpr std::uint64_t kTableCovers = kTableEntries * kCluster;  // bytes of the volume: 512 MiB
constexpr std::uint64_t kCopied = std::uint64_t{1} << 63;         // its refcount is 1
constexpr std::uint32_t kRefcountOrder = 4;                       // 16 bits each
constexpr std::uint64_t kRefcountsOfBlock = kCluster / 2;
constexpr std::uint32_t kMagic = 0x514649FB;  // "QFI\xFB"
constexpr std::uint32_t kVersion = 3;
constexpr std::uint32_t kHeaderBytes = 104;
constexpr std::uint32_t kEndOfExtensionsBytes = 8;

std::uint64_t divide_up(std::uint64_t number, std::uint64_t by) { return (number + by - 1) / by; }

std::uint64_t offset_of(std::uint64_t entry) { return entry & ~kCopied; }

}  // namespace

Qcow2Image::Qcow2Image(OutputFile& file, std::uint64_t size_bytes)
    : file_(file),
      size_bytes_(size_bytes),
      l1_(divide_up(size_bytes, kTableCovers)),
      l2_(kTableEntries) {}

Result<void> Qcow2Image::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  CHECK(offset + bytes.size() <= size_bytes_);
  while (!bytes.empty()) {
    const std::uint64_t number = offset / kTableCovers;
    if (table_number_ != number) {
      if (Result<void> r = begin_table(number); !r) return r;
    }
    const auto part =
        bytes.first(std::min<std::uint64_t>(bytes.size(), (number + 1) * kTableCovers - offset));
    if (Result<void> r = write_within_table(offset, part); !r) return r;
    offset += part.size();
    bytes = bytes.subspan(part.size());
  }
  return {};
}

// Clusters that follow each other in the volume do so in the file: one write.
Result<void> Qcow2Image::write_within_table(std::uint64_t offset,
                                            std::span<const std::byte> bytes) {
  const std::uint64_t first = offset / kCluster;
  for (std::uint64_t i = first; i < divide_up(offset + bytes.size(), kCluster); ++i) {
    std::uint64_t& entry = l2_[i % kTableEntries];
    CHECK(entry == 0 || i == first);
    if (entry == 0) entry = kCopied | clusters_++ * kCluster;
  }
  return file_.write(offset_of(l2_[first % kTableEntries]) + offset % kCluster, bytes);
}

Result<void> Qcow2Image::begin_table(std::uint64_t number) {
  CHECK(!table_number_ || number > *table_number_);
  if (Result<void> r = end_table(); !r) return r;
  table_number_ = number;
  return {};
}

Result<void> Qcow2Image::end_table() {
  if (!table_number_) return {};
  const Result<Table> table = write_numbers(l2_);
  if (!table) return table.error();
  l1_[*table_number_] = kCopied | table->offset;
  std::ranges::fill(l2_, 0);
  table_number_.reset();
  return {};
}

// In clusters of their own, at the end of the file.
Result<Qcow2Image::Table> Qcow2Image::write_numbers(const std::vector<std::uint64_t>& numbers) {
  const Table table{clusters_ * kCluster, numbers.size()};
  std::vector<std::byte> bytes(divide_up(numbers.size() * 8, kCluster) * kCluster);
  for (std::size_t i = 0; i < numbers.size(); ++i) store_be(&bytes[i * 8], numbers[i]);
  clusters_ += bytes.size() / kCluster;
  if (Result<void> r = file_.write(table.offset, bytes); !r) return r.error();
  return table;
}

// The table, then the blocks: as many as count them all, themselves included.
Result<Qcow2Image::Table> Qcow2Image::write_refcounts() {
  std::uint64_t blocks = 0;
  std::uint64_t all = clusters_;
  while (blocks < divide_up(all, kRefcountsOfBlock)) {
    blocks = divide_up(all, kRefcountsOfBlock);
    all = clusters_ + divide_up(blocks * 8, kCluster) + blocks;
  }
  std::vector<std::uint64_t> offsets(blocks);
  for (std::uint64_t i = 0; i < blocks; ++i) offsets[i] = (all - blocks + i) * kCluster;
  const Result<Table> table = write_numbers(offsets);
  if (!table) return table;
  CHECK(clusters_ == all - blocks);
  std::vector<std::byte> block(kCluster);
  for (std::uint64_t i = 0; i < kRefcountsOfBlock; ++i) store_be(&block[i * 2], std::uint16_t{1});
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const std::uint64_t used = std::min(all - i * kRefcountsOfBlock, kRefcountsOfBlock);
    std::fill(block.begin() + static_cast<std::ptrdiff_t>(used * 2), block.end(), std::byte{0});
    if (Result<void> r = file_.write(clusters_++ * kCluster, block); !r) return r.error();
  }
  return table;
}

Result<void> Qcow2Image::write_header(const Table& l1, const Table& refcounts) {
  std::array<std::byte, kHeaderBytes + kEndOfExtensionsBytes> header{};
  store_be(&header[0], kMagic);
  store_be(&header[4], kVersion);
  // 8: no backing file
  store_be(&header[20], kClusterBits);
  store_be(&header[24], size_bytes_);
  // 32: not encrypted
  store_be(&header[36], static_cast<std::uint32_t>(l1.entries));
  store_be(&header[40], l1.offset);
  store_be(&header[48], refcounts.offset);
  store_be(&header[56], static_cast<std::uint32_t>(divide_up(refcounts.entries * 8, kCluster)));
  // 60: no snapshots; 72: no features
  store_be(&header[96], kRefcountOrder);
  store_be(&header[100], kHeaderBytes);
  return file_.write(0, header);
}

Result<void> Qcow2Image::finish() {
  if (Result<void> r = end_table(); !r) return r;
  const Result<Table> l1 = write_numbers(l1_);
  if (!l1) return l1.error();
  const Result<Table> refcounts = write_refcounts();
  if (!refcounts) return refcounts.error();
  return write_header(*l1, *refcounts);
}

}  // namespace mariner::client
