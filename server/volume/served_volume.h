// What a target has of a volume, or of a writable view: the coordinator of its writes, and the
// layer that initiators write to.
//
// Writes go to a logger and, if the volume has an image, to its storage. Owner's thread only.
// Destroyed after close() and idle().
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "proto/executor.h"
#include "replication/local_replicator.h"
#include "replication/participant.h"
#include "server/volume/current_reader.h"
#include "server/volume/history.h"
#include "server/volume/live_volume.h"
#include "server/volume/snapshot.h"
#include "server/volume/volume_history.h"

namespace mariner::volume {

class ServedVolume {
 public:
  // Numbers that a crash may have left in use without a trace: void at each start.
  static constexpr std::uint64_t kVoidMargin = 4096;

  // Where the numbers go on. What a crash may have used is voided first, on record: until that is
  // done, no write is stamped.
  struct Beginning {
    replication::WriteCoordinator::Start start;
    std::vector<VolumeHistory::Hole> voids;
  };
  // Behind what the logger knows; no version time at or below `floor`.
  static Beginning begin_behind(const VolumeHistory& history, VolumeId volume, Epoch epoch,
                                VersionTime floor);

  struct Parts {  // all outlive it
    replication::LoggerParticipant& logger;
    replication::StorageParticipant* storage;  // null: there is no image
    CurrentReader& current;
    History& history;
    Executor& executor;
    OpenSnapshot open_snapshot{};
  };

  ServedVolume(std::uint64_t size_bytes, const Beginning& beginning,
               const replication::WriteCoordinator::Limits& limits, Parts parts);
  ~ServedVolume();  // idle() must hold
  ServedVolume(const ServedVolume&) = delete;
  ServedVolume& operator=(const ServedVolume&) = delete;

  [[nodiscard]] LiveVolume& live() { return live_; }
  [[nodiscard]] replication::LocalReplicator& replicator() { return replicator_; }
  [[nodiscard]] const replication::LocalReplicator& replicator() const { return replicator_; }

  // What the image holds durably, and how much may be on its way to it (Storage::granted_bytes).
  void storage_durable(SequenceNumber sequence) { replicator_.storage_durable(sequence); }
  void grant(std::uint64_t bytes);
  // Likewise how much the owner lets hosts write: the lesser counts.
  void pace(std::uint64_t bytes);

  // Refuses new writes, lets what is stamped complete.
  void close(const Error& error) { replicator_.close(error); }
  [[nodiscard]] bool idle() const { return replicator_.drained() && live_.idle() && voids_ == 0; }

 private:
  void log_void(const replication::VoidMessage& message);
  void update_grant();

  replication::LoggerParticipant& logger_;
  replication::LocalReplicator replicator_;
  LiveVolume live_;
  std::uint64_t granted_bytes_ = replication::WriteCoordinator::kUnlimited;
  std::uint64_t paced_bytes_ = replication::WriteCoordinator::kUnlimited;
  std::size_t voids_ = 0;
};

}  // namespace mariner::volume
