// LOG SENSE and LOG SELECT (SPC-4 6.7, 6.8, 7.3, SBC-3 6.4).
//
// Only what is really counted is there: bytes and failures of reads, writes and verifications (03h,
// 02h, 05h), failures of other kinds (06h), self-tests (10h), commands and their times (19h) and
// informational exceptions (2Fh). Not there: what a volume has none of (temperature, spindle,
// background scans of its own), and 0Ch, whose unit would be that of thresholds. There are no
// thresholds, and nothing is saved.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "server/scsi/maintenance.h"
#include "server/scsi/statistics.h"

namespace mariner::scsi {

struct LogState {
  const Statistics& statistics;
  const SelfTest& self_test;
  AdditionalSense exception = asc::kNone;  // the informational exception that is there, if any
};

// The answer to LOG SENSE, uncut; or what is wrong with the request.
[[nodiscard]] std::variant<Sense, std::vector<std::uint8_t>> log_sense(const LogSense& command,
                                                                       const LogState& state);

// What LOG SELECT asks for: returns the counters of one page, or of all, to their defaults.
struct LogReset {
  std::optional<std::uint8_t> page;  // otherwise all
  bool counters = false;
  bool reports = false;  // of the self-tests
};
[[nodiscard]] std::variant<Sense, LogReset> log_select(const LogSelect& command,
                                                       const Statistics& statistics);
void apply(const LogReset& reset, Statistics& statistics, SelfTest& self_test);

}  // namespace mariner::scsi
