// Matches the daemon's history with the hammer's journals.
//
// Two writes of the hammer that share a block were never outstanding at once, so the records of
// one extent appear in the history in the journal's order, and each record belongs to one write.
// Whatever does not match is a fault of the daemon and is reported in words.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "proto/admin.pb.h"
#include "proto/error.h"
#include "tests/hammer/journal.h"
#include "tests/hammer/model.h"

namespace mariner::hammer {

struct Match {
  std::vector<Settled> history;     // ascending; refers to the writes that were passed
  std::vector<std::string> faults;  // at most kFaultsMax
  static constexpr std::size_t kFaultsMax = 20;
};

// Reads the output of `mariner history show VOLUME --writes N --json`.
Result<api::History> read_history(const std::filesystem::path& path);

// Faults that are found: a record that no write explains; an acknowledged write without a record;
// a record of a write that was found absent after a crash; sequence or time that does not ascend;
// a version time before the write was issued or after it was acknowledged.
Match match_history(const api::History& history, std::span<const Write> writes);

// Whether the moment `sequence` is what a question for wall-clock time `asked_ns` must give: every
// write acknowledged by then is in, none issued after it is.
void check_moment(std::uint64_t sequence, std::uint64_t asked_ns, Match& match);

}  // namespace mariner::hammer
