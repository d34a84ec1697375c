// Compares a LUN with what the journals say it must contain.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "proto/error.h"
#include "tests/hammer/initiator.h"
#include "tests/hammer/model.h"

namespace mariner::hammer {

struct VerifyReport {
  std::uint64_t cells = 0;
  std::uint64_t writes = 0;
  std::uint64_t present = 0;        // unacknowledged writes that are there, whole
  std::uint64_t absent = 0;         // unacknowledged writes that are not there at all
  std::uint64_t records = 0;        // of the history, matched
  std::vector<std::string> faults;  // at most kFaultsMax
  static constexpr std::size_t kFaultsMax = 20;
};

struct VerifyOptions {
  InitiatorOptions initiator;
  std::filesystem::path campaign;
  CellRange region;  // count 0: the whole LUN
};

// The volume itself, right after a round: every cell shows its newest acknowledged write, or an
// unacknowledged one that is there whole. Records what became of the unacknowledged ones.
Result<VerifyReport> verify_volume(const VerifyOptions& options);

struct ViewOptions {
  std::filesystem::path history;          // the daemon's list of writes, as JSON
  std::uint64_t sequence = 0;             // the moment that the LUN must equal
  std::optional<std::uint64_t> asked_ns;  // the wall-clock time that was asked for, if it was one
  // When the history was asked for: a later acknowledgement needs no record in it.
  std::optional<std::uint64_t> listed_ns;
};

// A LUN that shows the moment `sequence`: a view, or the volume after a rollback.
Result<VerifyReport> verify_moment(const VerifyOptions& options, const ViewOptions& view);

}  // namespace mariner::hammer
