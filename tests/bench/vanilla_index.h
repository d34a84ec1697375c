// The usual index, as a rival: the two B+ trees of the version index over a plain file opened
// O_DIRECT, with a page cache and synchronous updates. The "vanilla" tree of dissertation 3.4.
//
// TL has key {sequence, block} and a value of 32 bytes, LT key {block, sequence} and 16 bytes. Both
// share the cache. Everything happens in the caller's call, so that begin_find() answers at once.
// An error of the disk ends the program.
#pragma once

#include <memory>
#include <string>

#include "logging/file_disk.h"
#include "tests/bench/index_engine.h"
#include "tests/bench/page_tree.h"

namespace mariner::bench {

struct VanillaOptions {
  std::string path;              // a file, or a device
  std::uint64_t file_bytes = 0;  // of the file, which is made if it is not there
  std::size_t block_bytes = 16384;
  std::size_t memory_bytes = 0;  // of the page cache
};

class VanillaIndex final : public IndexEngine {
 public:
  static Result<std::unique_ptr<VanillaIndex>> create(const VanillaOptions& options);

  [[nodiscard]] std::string name() const override;
  Result<void> load(const Next& next_by_block, const Next& next_by_time) override;
  void insert(const BenchVersion& version) override;
  std::optional<BenchVersion> find(std::uint64_t block, std::uint64_t sequence) override;
  void begin_find(std::uint64_t block, std::uint64_t sequence,
                  std::function<void(std::optional<BenchVersion>)> done) override {
    done(find(block, sequence));
  }
  void poll() override {}
  std::uint64_t scan(std::uint64_t first, std::uint64_t blocks) override;
  void commit() override { pages_.write_back(); }
  [[nodiscard]] EngineCounts counts() const override;

 private:
  VanillaIndex(const VanillaOptions& options, std::unique_ptr<logging::FileDisk> disk);

  const VanillaOptions options_;
  const std::unique_ptr<logging::FileDisk> disk_;
  PageCache pages_;
  PageTree by_time_;
  PageTree by_block_;
};

}  // namespace mariner::bench
