// The version index of the volume that a load on a log writes to, filled beforehand, so that its
// cost shows in the log's figures.
#pragma once

#include <memory>
#include <string>

#include "index/stored_index.h"
#include "logging/file_disk.h"
#include "tests/bench/bench_log.h"

namespace mariner::bench {

class IndexedLoad {
 public:
  struct Options {
    std::string folder;
    std::size_t memory_bytes = 0;
    std::uint64_t versions = 0;  // that it is filled with, one of each block, evenly over 1 TiB
  };

  // Indexes what `log` appends from now on; both share its ring. Fills the index: takes a while.
  // `log` and `loop` outlive it.
  static Result<std::unique_ptr<IndexedLoad>> create(const Options& options, node::EventLoop& loop,
                                                     BenchLog& log);
  ~IndexedLoad();  // runs the loop until nothing of the index is under way
  IndexedLoad(const IndexedLoad&) = delete;
  IndexedLoad& operator=(const IndexedLoad&) = delete;

  // Who writes waits while the index has no room.
  [[nodiscard]] bool has_room() const { return store_->has_room(); }
  void when_room(UniqueFunction<void()> then) { store_->when_room(std::move(then)); }
  [[nodiscard]] const index::Bosc& store() const { return *store_; }

 private:
  IndexedLoad(const Options& options, node::EventLoop& loop, BenchLog& log)
      : options_(options), loop_(loop), log_(log) {}
  Result<void> open();

  const Options options_;
  node::EventLoop& loop_;
  BenchLog& log_;
  std::string path_;
  std::unique_ptr<logging::FileDisk> disk_;
  std::unique_ptr<index::Bosc> store_;
  std::unique_ptr<index::StoredIndex> index_;
};

}  // namespace mariner::bench
