// FORMAT UNIT of one logical unit (SBC-3 5.3): from now on it reads as zeros, and nothing is stored
// for it.
//
// It is a write of everything and no more: one record of zeros, whole or not at all, that the
// history remembers like any other and that a rollback undoes. Who wants the past gone needs
// SANITIZE. There is no geometry to change, there are no defects, and no protection information.
//
// While it goes on the unit answers only INQUIRY, REPORT LUNS and REQUEST SENSE. The record is
// handed to the layer before execute() returns. Owner's thread only.
#pragma once

#include <memory>
#include <optional>

#include "server/scsi/cdb.h"
#include "server/scsi/disk.h"
#include "server/scsi/target_device.h"

namespace mariner::scsi {

class UnitFormat : public std::enable_shared_from_this<UnitFormat> {
 public:
  // Whether nobody may read or write, copies included.
  [[nodiscard]] bool running() const { return running_; }
  // How a command of this kind of this nexus ends at present; nothing: as always. A failure that
  // was not told yet to the nexus that asked for the format is told by this, once.
  [[nodiscard]] std::optional<Sense> forbids(Operation operation, const Nexus& nexus) {
    if (!running_ && !failure_) return std::nullopt;
    return look(operation, nexus);
  }
  // What REQUEST SENSE of this nexus reports; nothing while all is well. Tells a failure, too.
  [[nodiscard]] std::optional<Sense> take_pollable(const Nexus& nexus);

  // `request` is that command, to `disk`, whose medium is not write protected.
  // IMMED: answered when the list is found right, and what fails then is a deferred error
  // (SPC-4 4.5.5) of its nexus.
  void execute(const FormatUnit& command, const Command& request, std::shared_ptr<Disk> disk,
               CommandDone done);

 private:
  [[nodiscard]] std::optional<Sense> look(Operation operation, const Nexus& nexus);

  bool running_ = false;
  std::optional<Sense> failure_;  // that `asker_` has not been told of
  std::weak_ptr<Nexus> asker_;
};

}  // namespace mariner::scsi
