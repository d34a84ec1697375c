#include "tests/bench/vanilla_load.h"

#include <filesystem>
#include <utility>

namespace mariner::bench {
namespace {

constexpr std::uint64_t kVolumeBlocks = std::uint64_t{1} << 28;

}  // namespace

Result<std::unique_ptr<VanillaLoad>> VanillaLoad::create(const Options& options, BenchLog& log) {
  std::unique_ptr<VanillaLoad> made(new VanillaLoad);
  made->path_ = options.folder + "/load-index";
  std::filesystem::remove(made->path_);
  // Room for what it is filled with and as much again.
  const std::uint64_t bytes = ((options.versions * 256 + (std::uint64_t{4} << 30)) >> 20) << 20;
  // Sparse, as the other's.
  if (auto r = logging::FileDisk::create(made->path_, logging::FileDisk::Caching::kBuffered, bytes);
      !r) {
    return r.error();
  }
  auto index = VanillaIndex::create(
      {.path = made->path_, .file_bytes = bytes, .memory_bytes = options.memory_bytes});
  if (!index) return index.error();
  made->index_ = *std::move(index);
  const auto versions = [&options, next = std::uint64_t{1}]() mutable {
    std::optional<BenchVersion> version;
    if (next <= options.versions) {
      version = {(next - 1) * (kVolumeBlocks / (options.versions + 1)), next, next * 8};
      ++next;
    }
    return version;
  };
  if (auto r = made->index_->load(versions, versions); !r) return r.error();
  log.set_indexer(
      [index = made->index_.get()](std::span<const index::StoredIndex::Logged> records) {
        for (const auto& [record, location] : records) {
          for (std::uint64_t i = 0; i < record.extent.count.value; ++i) {
            index->insert({record.extent.first.value + i, record.sequence.value,
                           location.payload_sector() + i});
          }
        }
      },
      SequenceNumber{options.versions});
  return made;
}

VanillaLoad::~VanillaLoad() {
  index_.reset();
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace mariner::bench
