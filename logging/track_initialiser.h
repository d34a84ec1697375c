// Writes the log's tracks once with zeros, ahead of the log writer, in the background.
//
// A synchronous write to space that was preallocated but never written changes file-system
// metadata, which costs a journal commit; to space that was written once it does not. Progress is
// remembered in the superblock now and then; losing it costs time, never data. A writer that
// overtakes the initialiser writes into fresh space: slower, and correct. Where tracks stand in
// slots (slot_map.h), it is the slots that are written, but for those that are in use already; one
// that was given to a track which has not been begun is not in use.
//
// Owner's thread only. It never writes to a track that the log writer has taken.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "logging/log_disk.h"
#include "logging/log_writer.h"
#include "logging/slotted_disk.h"
#include "logging/track.h"
#include "proto/executor.h"
#include "proto/payload.h"

namespace mariner::logging {

class TrackInitialiser {
 public:
  // All outlive the initialiser; `superblock`, that of `disk`, is updated as it advances. The owner
  // lets may_write() answer the writer's track gate.
  TrackInitialiser(LogDisk& disk, Executor& executor, Superblock& superblock, LogWriter& writer,
                   SlottedDisk* slots = nullptr);
  ~TrackInitialiser();  // idle() must hold
  TrackInitialiser(const TrackInitialiser&) = delete;
  TrackInitialiser& operator=(const TrackInitialiser&) = delete;

  void start();
  // Whether the writer may take `track` now; if not, its retry() is called when it may.
  bool may_write(std::uint64_t track);
  // Stops after the write in flight.
  void stop();
  [[nodiscard]] bool idle() const { return !in_flight_; }
  [[nodiscard]] bool done() const {
    return superblock_.initialised_tracks >= superblock_.place_count();
  }

 private:
  static constexpr std::uint64_t kChunkBytes = 1u << 20;
  static constexpr std::uint64_t kTracksPerUpdate = 64;

  // A track that stands in a slot and has not been begun: the writer may begin it at any moment.
  struct Ahead {
    std::uint64_t allocation = 0;
    std::uint64_t track = 0;
    std::uint64_t slot = 0;
  };

  void next();
  // False: nothing is left, or not now.
  bool find_next();
  // False: not now, as what the slot is to be is not decided yet.
  bool find_slot();
  [[nodiscard]] std::vector<Ahead> given_ahead() const;
  void written(std::uint64_t bytes);
  void again_in(std::chrono::microseconds pause);
  void let_go();
  void finished_track();

  LogDisk& disk_;
  Executor& executor_;
  Superblock& superblock_;
  LogWriter& writer_;
  SlottedDisk* const slots_;
  // What slot superblock_.initialised_tracks, which is being written, is, if it is one.
  bool held_ = false;
  std::optional<Ahead> ahead_;
  Payload zeros_;
  std::uint64_t offset_ = 0;  // bytes written of track superblock_.initialised_tracks
  std::uint64_t last_update_ = 0;
  bool in_flight_ = false;
  bool writer_waits_ = false;
  bool stopping_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::logging
