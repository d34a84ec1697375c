// The copy manager of a device (SAM-5, SPC-4 5.17): its third-party copy commands. Both ends of a
// copy belong to this server; who they are is for the owner to say.
//
// Owner's thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "server/scsi/cdb.h"
#include "server/scsi/copy_unit.h"
#include "server/scsi/token_copies.h"

namespace mariner::scsi {

class CopyManager {
 public:
  CopyManager(FindCopyUnit find, std::shared_ptr<RodTokens> tokens);

  // A command that is a ThirdPartyCopy, to `unit`.
  void execute(const CopyUnit& unit, const Decoded& decoded, const Command& command,
               CommandDone done);

  // Who asks for a copy, and how he is answered.
  struct Asker {
    NexusId from;
    SenseFormat format = SenseFormat::kFixed;
    std::optional<TaskTag> tag{};  // of the command
  };
  // Segment by segment. GOOD when all is durable, or why it was aborted.
  void copy(CopyList list, const Asker& asker, CommandDone done);

  // Task management: none of the copies that commands wait for (of this initiator; of the command
  // with this tag) writes any more, or none at all of anybody. `ended` runs when they have ended,
  // later than this returns; false: there were none. What they have given to a layer is covered by
  // its settle().
  bool abort_commands(const NexusId* of, std::optional<TaskTag> tag, UniqueFunction<void()> ended);
  bool reset(UniqueFunction<void()> ended);

 private:
  void run(const ExtendedCopy& copy, const CopyUnit& unit, const Command& command,
           CommandDone done);
  void run(const ReceiveCopyResults& results, const CopyUnit& unit, const Command& command,
           CommandDone done);
  void run(const PopulateToken& populate, const CopyUnit& unit, const Command& command,
           CommandDone done);
  void run(const WriteUsingToken& write, const CopyUnit& unit, const Command& command,
           CommandDone done);
  void run(const CopyOperationAbort& abort, const CopyUnit& unit, const Command& command,
           CommandDone done);
  void run(const ReceiveCopyInformation& receive, const CopyUnit& unit, const Command& command,
           CommandDone done);
  void run(const ReportRodTokens& report, const CopyUnit& unit, const Command& command,
           CommandDone done);

  const std::shared_ptr<CopyContext> context_;
};

}  // namespace mariner::scsi
