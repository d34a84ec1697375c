// Gives released tracks of one log disk back to the log writer: writes the allocation list's pages
// that say so.
//
// What a track held is gone from the moment of release(): the caller has made sure that nobody
// needs it, and that whatever must be known after a crash about its absence is durable already. The
// writer uses the tracks only when the pages are durable and have been read back.
//
// In between they are nobody's, and a device that can forget is told so: piece by piece, one at a
// time, and not while the writer is short of tracks. A crash there leaves free tracks.
//
// Owner's thread only.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "logging/log_disk.h"
#include "logging/log_writer.h"
#include "logging/track_list.h"
#include "proto/payload.h"
#include "proto/unique_function.h"

namespace mariner::logging {

class TrackRecycler {
 public:
  using Done = UniqueFunction<void(Result<void>)>;

  using Freed = UniqueFunction<void(std::span<const std::uint64_t> tracks)>;

  // All outlive it. `tracks`: that of `disk`. `freed`, if any, is told of tracks that are free from
  // then on.
  TrackRecycler(LogDisk& disk, TrackList& tracks, LogWriter& writer, Freed freed = nullptr)
      : disk_(disk), tracks_(tracks), writer_(writer), freed_(std::move(freed)) {}
  ~TrackRecycler();  // idle() must hold

  // Frees the allocations below `oldest`, which is above the oldest and at most the disk's
  // current one. One release at a time. After an error the list is as it was, or part of the way.
  void release(std::uint64_t oldest, Done done);
  [[nodiscard]] bool idle() const { return !done_; }

 private:
  void next_round();
  void write_next();
  void read_back();
  void failed(Result<void> result);
  void forget_next();
  void commit();
  void finish(Result<void> result);

  LogDisk& disk_;
  TrackList& tracks_;
  LogWriter& writer_;
  Freed freed_;
  std::uint64_t oldest_ = 0;
  std::vector<TrackList::Write> writes_;  // of this round
  std::size_t written_ = 0;
  Payload block_;
  Payload found_;                                              // what was read back
  static constexpr std::uint64_t kForgetBytesMax = 32u << 20;  // at once
  std::vector<std::uint64_t> to_forget_;                       // tracks of this round
  std::uint64_t forgotten_bytes_ = 0;                          // of the last of them
  Done done_;
};

}  // namespace mariner::logging
