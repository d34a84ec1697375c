// REPORT SUPPORTED OPERATION CODES and REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS
// (SPC-4 6.36, 6.37).
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "server/scsi/cdb.h"

namespace mariner::scsi {

// The answer, uncut; or what is wrong with the request. `geometry` says what else the unit knows.
[[nodiscard]] std::variant<Sense, std::vector<std::uint8_t>> report_opcodes(
    const ReportOpcodes& command, const Geometry& geometry);

[[nodiscard]] std::vector<std::uint8_t> report_task_management(const ReportTaskManagement& command);

}  // namespace mariner::scsi
