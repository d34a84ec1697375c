// Carries out EXTENDED COPY: reads from one logical unit and writes to another, or to the same,
// without the network. Both belong to this server; who they are is for the owner to say.
//
// Owner's thread only.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "server/scsi/disk.h"
#include "server/scsi/extended_copy.h"
#include "server/scsi/unit_reservations.h"

namespace mariner::scsi {

// A logical unit that a copy may use.
struct CopyUnit {
  std::shared_ptr<Disk> disk;
  std::shared_ptr<UnitReservations> reservations;
};
// The unit of which `target` is a designator, if this initiator may use it; null otherwise.
using FindCopyUnit = std::function<std::shared_ptr<CopyUnit>(const CopyTarget& target,
                                                             const InitiatorPort& initiator)>;

class CopyManager : public std::enable_shared_from_this<CopyManager> {
 public:
  // Copies whose status is remembered: the oldest goes.
  static constexpr std::size_t kRememberedMax = 64;

  explicit CopyManager(FindCopyUnit find) : find_(std::move(find)) {}

  // Segment by segment. GOOD when all is durable, or why it was aborted.
  void copy(CopyList list, const NexusId& from, SenseFormat format, CommandDone done);
  // Task management: none of the copies under way (of this initiator, or of all) writes any more.
  // What they have given to a layer is covered by its settle().
  void abort(const NexusId* of);
  // Of the last copy of this initiator with that identifier; null when none is known.
  [[nodiscard]] const CopyStatus* status(const NexusId& from, std::uint8_t id) const;

 private:
  struct Copy;
  struct Remembered {
    NexusId from;
    std::uint8_t id = 0;
    CopyStatus status;
  };

  [[nodiscard]] std::optional<Sense> prepare(Copy& copy);
  void next_segment(const std::shared_ptr<Copy>& copy);
  void next_piece(const std::shared_ptr<Copy>& copy);
  [[nodiscard]] static bool may_write(const Copy& copy);
  void end(const std::shared_ptr<Copy>& copy, const std::optional<Sense>& failure);
  [[nodiscard]] Remembered* remembered(const NexusId& from, std::uint8_t id);
  void remember(const Copy& copy);

  const FindCopyUnit find_;
  std::deque<Remembered> remembered_;
  std::vector<std::shared_ptr<Copy>> running_;  // bounded by the commands that the sessions admit
};

}  // namespace mariner::scsi
