// The logger's part of one volume: turns its stamped writes into log records, and durable records
// into index entries.
//
// Invariant: a record is in the index only when it is on stable storage, and in the index before
// the coordinator hears of it. Owner's thread only.
#pragma once

#include <memory>

#include "index/version_index.h"
#include "logging/log_writer.h"
#include "replication/participant.h"

namespace mariner::volume {

// The log record of a stamped write.
logging::Record record_of(const replication::WriteMessage& message);

class VolumeLog final : public replication::LoggerParticipant {
 public:
  // All outlive it.
  VolumeLog(VolumeId volume, Epoch epoch, logging::LogWriter& writer, index::VersionIndex& index)
      : volume_(volume), epoch_(epoch), writer_(writer), index_(index) {}

  void log(const replication::WriteMessage& message,
           UniqueFunction<void(Result<void>)> done) override;
  void log_void(const replication::VoidMessage& message,
                UniqueFunction<void(Result<void>)> done) override;

  // Makes `bytes`, what the base holds for `range`, durable and indexed as a before-image; with
  // `replaces` in the place of earlier ones.
  void log_before_image(BlockRange range, PayloadSlice bytes, bool replaces,
                        UniqueFunction<void(Result<void>)> done);

  // Makes the image the base of `range`, durably and in the index: its before-images are void.
  void log_rebase(BlockRange range, UniqueFunction<void(Result<void>)> done);

  // Appends in flight: the owner waits for 0 before it destroys this.
  [[nodiscard]] std::size_t in_flight() const { return in_flight_; }

 private:
  void append(const logging::Record& record, PayloadSlice payload,
              logging::LogWriter::Urgency urgency, UniqueFunction<void(Result<void>)> done);

  const VolumeId volume_;
  const Epoch epoch_;
  logging::LogWriter& writer_;
  index::VersionIndex& index_;
  std::size_t in_flight_ = 0;
};

}  // namespace mariner::volume
