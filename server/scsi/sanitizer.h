// What a logical unit needs of its owner to be sanitized: whether it may be, and that its past
// goes.
//
// Owner's thread only.
#pragma once

#include "proto/error.h"
#include "server/volume/layer.h"

namespace mariner::scsi {

class Sanitizer {
 public:
  enum class Refusal {
    kNone,
    kLockedMark,  // a moment of the past is locked
    kInUse,       // a view shows the past, or a rollback goes to it
  };
  // A sanitize operation that did not come to its end: what may be done about it.
  enum class Left { kNothing, kRestricted, kUnrestricted };

  virtual ~Sanitizer() = default;

  // Without the permission the unit does not know the command.
  [[nodiscard]] virtual bool permitted() const = 0;
  // Why it cannot begin now.
  [[nodiscard]] virtual Refusal refusal() const = 0;

  // As it was set last; a restart does not change it.
  [[nodiscard]] virtual Left left() const = 0;
  // Durable on return.
  [[nodiscard]] virtual Result<void> set_left(Left left) = 0;

  // Nothing that the unit held before its present contents can be read any more when `done` runs
  // with success, nor after a restart. Nobody writes to the unit meanwhile.
  virtual void forget_past(volume::Done done) = 0;
};

}  // namespace mariner::scsi
