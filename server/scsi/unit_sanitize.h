// SANITIZE of one logical unit (SBC-4 4.11 and 5.30): makes it hold zeros, or a pattern, and then
// nothing of its past.
//
// While it goes on, and after it has failed, the unit answers only what tells about it. Task
// management does not end it. Owner's thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "server/scsi/cdb.h"
#include "server/scsi/disk.h"
#include "server/scsi/sanitizer.h"
#include "server/scsi/target_device.h"

namespace mariner::scsi {

class UnitSanitize : public std::enable_shared_from_this<UnitSanitize> {
 public:
  // Without a sanitizer the unit does not know the command.
  explicit UnitSanitize(std::shared_ptr<Sanitizer> sanitizer);

  [[nodiscard]] bool permitted() const { return sanitizer_ != nullptr && sanitizer_->permitted(); }
  // How a command of this kind ends at present; nothing: as always.
  [[nodiscard]] std::optional<Sense> forbids(Operation operation) const;
  // Whether nobody may read or write, copies included.
  [[nodiscard]] bool blocks() const { return state_ != State::kIdle; }
  // What REQUEST SENSE reports; nothing while all is well.
  [[nodiscard]] std::optional<Sense> pollable() const;

  // A command to `disk`, whose medium is not write protected; `request` brings its parameter list.
  // Where the operation fails because the unit is lost to another node, its command hears that;
  // what is left of it is what Sanitizer::left() says.
  void execute(const Sanitize& command, const Command& request, std::shared_ptr<Disk> disk,
               CommandDone done);

 private:
  enum class State { kIdle, kRunning, kFailed };
  struct Work;

  void exit_failure_mode(SenseFormat format, CommandDone done);
  void erase(const std::shared_ptr<Work>& work);
  void overwrite(const std::shared_ptr<Work>& work);
  void end(const std::shared_ptr<Work>& work, const Result<void>& result);

  const std::shared_ptr<Sanitizer> sanitizer_;
  State state_ = State::kIdle;
  bool unrestricted_ = false;   // of the operation under way, or the one that failed
  std::uint16_t progress_ = 0;  // in 65,536ths
};

}  // namespace mariner::scsi
