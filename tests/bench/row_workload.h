// The workloads of dissertation 3.4: which rows are inserted and updated, one after another.
//
// The index begins with `rows` rows whose keys are kKeyStep apart (the "incremental step C" of
// 3.4.3). kInsert: keys at random between them. kUpdate: rows of those, at random. kClustered:
// kClusterRows consecutive keys from a random one on. kSequential: keys that go up by one, from the
// smallest. kTpcc: what TpccTrace gives, without its reads; kTpccReads: with them.
//
// The dissertation's random updates are of rows that its random inserts brought; these are of rows
// that were there before, so that no run depends on one before it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string_view>

#include "index/leaf.h"
#include "tests/bench/tpcc_trace.h"

namespace mariner::bench {

class RowWorkload {
 public:
  using Kind = TpccTrace::Kind;
  using Access = TpccTrace::Access;
  enum class Pattern { kInsert, kUpdate, kClustered, kSequential, kTpcc, kTpccReads };

  static constexpr std::uint64_t kKeyStep = 1'000;
  static constexpr std::uint64_t kClusterRows = 32;

  struct Options {
    Pattern pattern = Pattern::kInsert;
    std::uint64_t rows = 0;        // at least 1; not of TPC-C
    std::uint64_t warehouses = 1;  // of TPC-C
    std::uint64_t seed = 1;
  };
  explicit RowWorkload(const Options& options);

  // "insert", "update", "clustered", "sequential", "tpcc", "tpcc-reads".
  [[nodiscard]] static std::optional<Pattern> pattern_of(std::string_view name);
  [[nodiscard]] static bool is_tpcc(Pattern pattern) {
    return pattern == Pattern::kTpcc || pattern == Pattern::kTpccReads;
  }

  // What is there before the first access, in the order of the keys.
  void initial_rows(const std::function<void(index::IndexKey)>& visit) const;
  [[nodiscard]] Access next();

 private:
  [[nodiscard]] std::uint64_t random_key();

  const Options options_;
  std::mt19937_64 random_;
  std::uint64_t at_ = 0;    // of a run of consecutive keys
  std::uint64_t left_ = 0;  // of a cluster
  std::unique_ptr<TpccTrace> tpcc_;
};

}  // namespace mariner::bench
