// A version index in a file on a faulty disk, on an executor that a test turns.
#pragma once

#include <cstdint>
#include <memory>

#include "index/index_file.h"
#include "index/stored_index.h"
#include "proto/check.h"
#include "tests/support/faulty_disk.h"
#include "tests/support/index_answers.h"
#include "tests/support/manual_executor.h"

namespace mariner::test {

class IndexRig {
 public:
  explicit IndexRig(ManualExecutor& executor, VolumeId volume = VolumeId{1},
                    std::uint64_t disk_bytes = std::uint64_t{64} << 20)
      : executor_(executor), disk_(executor, {.size_bytes = disk_bytes}) {
    index::IndexShape shape;
    shape.block_bytes = 4096;
    CHECK(index::format_index_file(disk_, shape).has_value());
    index::BoscOptions options;
    options.memory_bytes = std::size_t{4} << 20;
    options.cache_bytes = std::size_t{64} << 10;
    store_ = *index::Bosc::open(executor, disk_, options);
    index_ = *index::StoredIndex::open(*store_, volume);
  }
  ~IndexRig() {
    store_->drain(nullptr);
    executor_.run_ready();
    store_.reset();  // before its functions
  }
  IndexRig(const IndexRig&) = delete;
  IndexRig& operator=(const IndexRig&) = delete;

  // With the next ordinal, if it has none.
  void insert(logging::Record record, const logging::LogLocation& location) {
    if (record.ordinal == 0) record.ordinal = ++ordinal_;
    index_->insert(record, location);
  }
  [[nodiscard]] index::StoredIndex& index() { return *index_; }
  [[nodiscard]] std::shared_ptr<index::StoredIndex> shared() { return index_; }
  [[nodiscard]] IndexAnswers answers() {
    return IndexAnswers(*index_, [this] { executor_.run_ready(); });
  }
  [[nodiscard]] FaultyDisk& disk() { return disk_; }
  [[nodiscard]] index::Bosc& store() { return *store_; }

 private:
  ManualExecutor& executor_;
  FaultyDisk disk_;
  std::unique_ptr<index::Bosc> store_;
  std::shared_ptr<index::StoredIndex> index_;
  std::uint64_t ordinal_ = 0;
};

}  // namespace mariner::test
