// As IndexedLoad, but with the usual index: B+ trees with a page cache, changed in place while the
// log waits (the dissertation's variant "TPIE", 4.6.8).
#pragma once

#include <memory>
#include <string>

#include "tests/bench/bench_log.h"
#include "tests/bench/vanilla_index.h"

namespace mariner::bench {

class VanillaLoad {
 public:
  struct Options {
    std::string folder;
    std::size_t memory_bytes = 0;
    std::uint64_t versions = 0;  // that it is filled with, one of each block, evenly over 1 TiB
  };

  // Indexes what `log` appends from now on. Fills the index: takes a while. `log` outlives it and
  // appends nothing after it.
  static Result<std::unique_ptr<VanillaLoad>> create(const Options& options, BenchLog& log);
  ~VanillaLoad();
  VanillaLoad(const VanillaLoad&) = delete;
  VanillaLoad& operator=(const VanillaLoad&) = delete;

  [[nodiscard]] VanillaIndex& index() { return *index_; }

 private:
  VanillaLoad() = default;

  std::string path_;
  std::unique_ptr<VanillaIndex> index_;
};

}  // namespace mariner::bench
