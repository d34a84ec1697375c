// A volume's version index on disk that is filled and committed, for measuring what comes after:
// how long it takes to open it and to give it what the log has besides.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "index/stored_index.h"
#include "logging/file_disk.h"
#include "tests/bench/ring_loop.h"

namespace mariner::bench {

struct FilledIndexOptions {
  std::string path;
  std::uint64_t versions = 0;  // that it is filled with, one of each block, evenly over 1 TiB
  std::uint32_t block_bytes = 16384;
  std::size_t memory_bytes = 0;  // of the store
};

// Makes the file. Its frontier is `versions`. Blocking.
Result<void> make_filled_index(const FilledIndexOptions& options);

// The index, opened as at a start. Opening it blocks.
class OpenedIndex {
 public:
  static Result<std::unique_ptr<OpenedIndex>> open(const FilledIndexOptions& options);
  // Nothing that was inserted is committed, so that the file is as it was, if no sweep has begun.
  ~OpenedIndex();
  OpenedIndex(const OpenedIndex&) = delete;
  OpenedIndex& operator=(const OpenedIndex&) = delete;

  [[nodiscard]] index::StoredIndex& index() { return *index_; }
  [[nodiscard]] index::Bosc& store() { return *store_; }
  // How long StoredIndex::learn() took of the opening.
  [[nodiscard]] std::chrono::nanoseconds learning() const { return learning_; }
  // As StoredIndex::locate, waiting for it.
  Result<std::vector<index::LocatedRun>> locate(BlockRange range, SequenceNumber at);

 private:
  friend Result<void> make_filled_index(const FilledIndexOptions& options);
  OpenedIndex() = default;
  Result<void> open_parts(const FilledIndexOptions& options);

  std::unique_ptr<RingLoop> loop_;
  std::unique_ptr<logging::FileDisk> disk_;
  std::unique_ptr<index::Bosc> store_;
  std::unique_ptr<index::StoredIndex> index_;
  std::chrono::nanoseconds learning_{0};
};

}  // namespace mariner::bench
