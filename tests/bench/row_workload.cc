#include "tests/bench/row_workload.h"

#include "proto/check.h"
#include "tests/bench/index_workload.h"

namespace mariner::bench {

RowWorkload::RowWorkload(const Options& options) : options_(options), random_(options.seed) {
  if (is_tpcc(options.pattern)) {
    tpcc_ = std::make_unique<TpccTrace>(
        TpccTrace::Options{.warehouses = options.warehouses, .seed = options.seed});
  } else {
    CHECK(options.rows > 0);
  }
}

std::optional<RowWorkload::Pattern> RowWorkload::pattern_of(std::string_view name) {
  if (name == "insert") return Pattern::kInsert;
  if (name == "update") return Pattern::kUpdate;
  if (name == "clustered") return Pattern::kClustered;
  if (name == "sequential") return Pattern::kSequential;
  if (name == "tpcc") return Pattern::kTpcc;
  if (name == "tpcc-reads") return Pattern::kTpccReads;
  return std::nullopt;
}

void RowWorkload::initial_rows(const std::function<void(index::IndexKey)>& visit) const {
  if (tpcc_) return tpcc_->initial_rows(visit);
  for (std::uint64_t row = 0; row < options_.rows; ++row) visit({row * kKeyStep, 0});
}

std::uint64_t RowWorkload::random_key() { return scaled(random_(), options_.rows * kKeyStep); }

RowWorkload::Access RowWorkload::next() {
  switch (options_.pattern) {
    case Pattern::kInsert: return {Kind::kInsert, {random_key(), 0}};
    case Pattern::kUpdate: return {Kind::kUpdate, {scaled(random_(), options_.rows) * kKeyStep, 0}};
    case Pattern::kClustered:
      if (left_ == 0) {
        at_ = random_key();
        left_ = kClusterRows;
      }
      --left_;
      return {Kind::kInsert, {at_++, 0}};
    case Pattern::kSequential: return {Kind::kInsert, {at_++, 0}};
    case Pattern::kTpcc:
      while (true) {
        const Access access = tpcc_->next();
        if (access.kind != Kind::kRead) return access;
      }
    case Pattern::kTpccReads: return tpcc_->next();
  }
  return {};
}

}  // namespace mariner::bench
