// SANITIZE for one volume: whether it is permitted, and how its past is given up.
//
// What is promised: when it has succeeded, nothing older than the erasure can be read any more, by
// any command, view, rollback or token, now or after a restart, and the image holds nothing of it.
// What is not: the bytes in the log. They stay in its tracks, where nobody asks for them, until the
// tracks have been given up and are written over; and what the file system or the drive keeps of
// discarded blocks is theirs.
//
// Owner's thread only.
#pragma once

#include <cstdint>
#include <memory>

#include "server/node/log.h"
#include "server/node/log_space.h"
#include "server/node/meta_store.h"
#include "server/node/view_set.h"
#include "server/node/volume_set.h"
#include "server/scsi/sanitizer.h"

namespace mariner::node {

class VolumeSanitizer final : public scsi::Sanitizer {
 public:
  struct Parts {  // all outlive it; the sets may be made after it
    const std::unique_ptr<VolumeSet>& volumes;
    const std::unique_ptr<ViewSet>& views;
    const std::unique_ptr<LogSpace>& log_space;
    MetaStore& store;
    Executor& executor;
    Log& log;
  };
  VolumeSanitizer(std::uint32_t volume, Parts parts) : volume_(volume), parts_(parts) {}

  [[nodiscard]] bool permitted() const override;
  [[nodiscard]] Refusal refusal() const override;
  [[nodiscard]] Left left() const override;
  [[nodiscard]] Result<void> set_left(Left left) override;
  void forget_past(volume::Done done) override;

 private:
  [[nodiscard]] ServedVolume* served() const { return parts_.volumes->find(volume_); }
  Result<void> drop_marks();

  const std::uint32_t volume_;
  const Parts parts_;
  SequenceNumber last_rollback_;  // when the present began to be erased
};

}  // namespace mariner::node
