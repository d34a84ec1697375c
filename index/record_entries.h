// What a record of the log puts into the trees of its volume's index. Pure; any thread.
#pragma once

#include "index/kept_index.h"
#include "index/lt_index.h"
#include "logging/log_location.h"
#include "logging/record.h"

namespace mariner::index {

// Where the rollbacks stand in LT, behind all runs: key {this, sequence}, value the target, 8
// bytes.
inline constexpr std::uint64_t kRollbackKey = UINT64_MAX;

// Has entries in TL and LT: a write, zeros or a rollback.
[[nodiscard]] bool has_versions(const logging::Record& record);
// Has entries in BT: a before-image or a rebase.
[[nodiscard]] bool has_base(const logging::Record& record);

// The entries in LT of a record that has_versions(), and in BT of one that has_base().
void add_versions(const logging::Record& record, const logging::LogLocation& location,
                  LtIndex::Batch& to);
void add_base(const logging::Record& record, const logging::LogLocation& location,
              LtIndex::Batch& to);

// What the log has written again for kept moments.
[[nodiscard]] bool is_for_kept_moments(const logging::Record& record);
[[nodiscard]] KeptRun kept_run_of(const logging::Record& record,
                                  const logging::LogLocation& location);

}  // namespace mariner::index
