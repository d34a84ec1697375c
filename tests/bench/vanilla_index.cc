#include "tests/bench/vanilla_index.h"

#include <array>
#include <filesystem>
#include <utility>

#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::bench {
namespace {

using index::IndexKey;

constexpr std::size_t kByTimeBytes = 32;
constexpr std::size_t kByBlockBytes = 16;
// What is between others gets room for more, what is only appended to does not.
constexpr unsigned kByBlockFillPercent = 70;
constexpr unsigned kByTimeFillPercent = 100;

IndexKey time_key(const BenchVersion& version) { return {version.sequence, version.block}; }
IndexKey block_key(const BenchVersion& version) { return {version.block, version.sequence}; }

std::array<std::byte, kByTimeBytes> time_value(const BenchVersion& version) {
  std::array<std::byte, kByTimeBytes> value{};
  store_le(value.data(), version.place);
  store_le(value.data() + 8, version.block);
  return value;
}

std::array<std::byte, kByBlockBytes> block_value(const BenchVersion& version) {
  std::array<std::byte, kByBlockBytes> value{};
  store_le(value.data(), version.place);
  return value;
}

}  // namespace

Result<std::unique_ptr<VanillaIndex>> VanillaIndex::create(const VanillaOptions& options) {
  using logging::FileDisk;
  if (!std::filesystem::exists(options.path)) {
    const Result<void> created =
        FileDisk::create(options.path, FileDisk::Caching::kDirect, options.file_bytes);
    if (!created) return created.error();
  }
  Result<std::unique_ptr<FileDisk>> disk =
      FileDisk::open(options.path, FileDisk::Caching::kDirect, nullptr);
  if (!disk) return disk.error();
  return std::unique_ptr<VanillaIndex>(new VanillaIndex(options, std::move(*disk)));
}

VanillaIndex::VanillaIndex(const VanillaOptions& options, std::unique_ptr<logging::FileDisk> disk)
    : options_(options),
      disk_(std::move(disk)),
      pages_(*disk_, {.page_bytes = options.block_bytes, .bytes_max = options.memory_bytes}),
      by_time_(pages_, kByTimeBytes),
      by_block_(pages_, kByBlockBytes) {}

std::string VanillaIndex::name() const {
  return "vanilla, " + std::to_string(options_.block_bytes / 1024) + " KiB";
}

Result<void> VanillaIndex::load(const Next& next_by_block, const Next& next_by_time) {
  std::array<std::byte, kByBlockBytes> by_block{};
  by_block_.load(
      [&]() -> std::optional<PageTree::Record> {
        const std::optional<BenchVersion> version = next_by_block();
        if (!version) return std::nullopt;
        by_block = block_value(*version);
        return PageTree::Record{block_key(*version), by_block};
      },
      kByBlockFillPercent);
  std::array<std::byte, kByTimeBytes> by_time{};
  by_time_.load(
      [&]() -> std::optional<PageTree::Record> {
        const std::optional<BenchVersion> version = next_by_time();
        if (!version) return std::nullopt;
        by_time = time_value(*version);
        return PageTree::Record{time_key(*version), by_time};
      },
      kByTimeFillPercent);
  return disk_->flush();
}

void VanillaIndex::insert(const BenchVersion& version) {
  by_time_.insert(time_key(version), time_value(version));
  by_block_.insert(block_key(version), block_value(version));
}

std::optional<BenchVersion> VanillaIndex::find(std::uint64_t block, std::uint64_t sequence) {
  const std::optional<PageTree::Record> found =
      by_block_.find_last({.low = {block, 0}, .high = {block, sequence}});
  if (!found) return std::nullopt;
  return BenchVersion{block, found->key.low, load_le<std::uint64_t>(found->value.data())};
}

std::uint64_t VanillaIndex::scan(std::uint64_t first, std::uint64_t blocks) {
  if (blocks == 0) return 0;
  return by_block_.count({.low = {first, 0}, .high = {first + blocks - 1, UINT64_MAX}});
}

EngineCounts VanillaIndex::counts() const {
  const PageCache::Counts& disk = pages_.counts();
  return {.reads = disk.reads,
          .bytes_read = disk.bytes_read,
          .writes = disk.writes,
          .bytes_written = disk.bytes_written,
          .disk_bytes = pages_.file_bytes(),
          .memory_bytes = pages_.memory_bytes(),
          .node_bytes = by_time_.node_bytes() + by_block_.node_bytes()};
}

}  // namespace mariner::bench
