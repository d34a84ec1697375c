// POPULATE TOKEN and WRITE USING TOKEN carried out (SBC-4 4.28): what Windows calls offloaded data
// transfer.
//
// Owner's thread only.
#pragma once

#include <cstdint>
#include <memory>

#include "server/scsi/copy_engine.h"
#include "server/scsi/copy_ledger.h"
#include "server/scsi/copy_unit.h"
#include "server/scsi/rod_tokens.h"
#include "server/scsi/target_device.h"

namespace mariner::scsi {

// What the copies of one device share. Copies under way keep it.
struct CopyContext {
  FindCopyUnit find;
  std::shared_ptr<RodTokens> tokens;  // of the node
  std::shared_ptr<CopyEngine> engine;
  CopyLedger ledger;
};

// Copies that are carried out after their commands were answered, of one device; with more, the
// command ends with BUSY.
inline constexpr std::size_t kBackgroundCopiesMax = 64;
// After so long a WRITE USING TOKEN that is waited for ends with what it has done: hosts wait for a
// few seconds only, and go on from there.
inline constexpr std::chrono::seconds kForegroundMax{3};

// Makes a token of `unit` as of now, for RECEIVE ROD TOKEN INFORMATION.
void populate_token(const std::shared_ptr<CopyContext>& context, const CopyUnit& unit,
                    std::uint32_t list_id, const Command& command, CommandDone done);
// Writes what a token stands for to `unit`.
void write_using_token(const std::shared_ptr<CopyContext>& context, const CopyUnit& unit,
                       std::uint32_t list_id, const Command& command, CommandDone done);

}  // namespace mariner::scsi
