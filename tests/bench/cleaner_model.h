// A log that goes round, as far as cleaning it is concerned: versions of blocks in tracks, which of
// them the protection window needs, and what is appended to keep them (design.md, invariant 5).
//
// Time is counted in host writes, each of one block: the write at time t replaces the block's
// current version. A version is needed while a moment from the horizon on shows it: while it is
// current, and then until the horizon has reached the time at which it was replaced. The image
// holds what is current `lag` writes after it was written, so a current version may leave the log
// then; when it is replaced, its contents are appended first, as a before-image. What stood there
// before the first write is in the image alone. What must always hold: each needed version stands
// in exactly one slot of the log, or it is current and the image holds it.
//
// What is not modelled: headers, records of several blocks, and the disk.
//
// One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace mariner::bench {

// Times are numbers of host writes; versions are numbered by block for those that stood before the
// first write, and behind those in the order of the writes.
using WriteTime = std::uint32_t;
using VersionId = std::uint32_t;

struct CleanerLogOptions {
  std::uint32_t tracks = 512;
  std::uint32_t track_blocks = 128;
  std::uint32_t volume_blocks = 13'107;
  WriteTime window = 55'705;
  WriteTime lag = 1'638;
};

// What a track is for; a cleaner gives the numbers, from 0.
using StreamId = std::uint32_t;
inline constexpr StreamId kStreamsMax = 10;

struct CleanerTrack {
  StreamId stream = 0;
  std::uint32_t used = 0;     // slots; 0: free
  std::uint32_t history = 0;  // of those, replaced versions that are needed
  std::uint32_t current = 0;  // of those, current versions
  bool complete = false;
  std::uint64_t ordinal = 0;    // in the order in which tracks were begun
  WriteTime image_has = 0;      // from when on the image holds what is current
  WriteTime last_replaced = 0;  // the last time at which something of it was replaced
};

class CleanerModel {
 public:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  struct Counts {
    std::uint64_t writes = 0;
    std::uint64_t before_images = 0;
    std::uint64_t moved = 0;
    std::uint64_t dropped = 0;  // current versions, to the image

    [[nodiscard]] double amplification() const {
      return writes == 0
                 ? 0
                 : 1 + static_cast<double>(before_images + moved) / static_cast<double>(writes);
    }
  };
  // Where each survivor goes: by when it was replaced; 0 if it is current.
  using StreamOfSurvivor = std::function<StreamId(WriteTime replaced)>;

  explicit CleanerModel(const CleanerLogOptions& options);

  // One host write. `stream` takes the new version, `before_image` the contents that are replaced,
  // if the image alone has them. A track must be free for each of the two.
  void write(std::uint32_t block, StreamId stream, StreamId before_image);

  // Moves what is needed of a complete track elsewhere and frees it. Current versions, which the
  // image must hold, are dropped to it, or moved as well.
  void clean(std::uint32_t track, bool drop_current, const StreamOfSurvivor& stream_of);
  // A complete track becomes one of another stream as it is, the youngest there.
  void adopt(std::uint32_t track, StreamId stream);
  // The horizon moves ahead of the window by one write. It must be behind now().
  void shorten() { expire(horizon_ + 1); }

  [[nodiscard]] WriteTime now() const { return now_; }
  // Moments from here on are kept.
  [[nodiscard]] WriteTime horizon() const { return horizon_; }
  [[nodiscard]] const std::vector<CleanerTrack>& tracks() const { return tracks_; }
  [[nodiscard]] std::uint32_t free_tracks() const {
    return static_cast<std::uint32_t>(free_.size());
  }
  [[nodiscard]] const CleanerLogOptions& options() const { return options_; }
  [[nodiscard]] std::uint64_t blocks() const { return slots_.size(); }
  [[nodiscard]] const Counts& counts() const { return counts_; }
  [[nodiscard]] std::uint64_t current_in_log() const { return current_in_log_; }
  // Complete, and the image holds what is current in it.
  [[nodiscard]] bool can_clean(const CleanerTrack& track) const {
    return track.complete && (track.current == 0 || track.image_has <= now_);
  }
  // The complete track of a stream that was begun first; kNone: it has none.
  [[nodiscard]] std::uint32_t oldest(StreamId stream) const;
  [[nodiscard]] std::uint32_t tracks_of(StreamId stream) const { return tracks_of_[stream]; }

  // What stands in the slot of a track that is in use, if it counts; kNone if it is dead.
  [[nodiscard]] VersionId held_in(std::uint32_t track, std::uint32_t slot) const;

 private:
  struct Version {
    std::uint32_t block = 0;
    std::uint32_t place = kNone;  // slot of the log
    WriteTime replaced = 0;       // 0: current
  };

  void append(VersionId id, StreamId stream);
  void begin_track(StreamId stream);
  void expire(WriteTime horizon);
  [[nodiscard]] CleanerTrack& track_of(std::uint32_t place) {
    return tracks_[place / options_.track_blocks];
  }
  [[nodiscard]] WriteTime written(VersionId id) const {
    return id < options_.volume_blocks ? 0 : id - options_.volume_blocks + 1;
  }

  const CleanerLogOptions options_;
  WriteTime now_ = 0;
  WriteTime horizon_ = 0;
  std::vector<Version> versions_;       // by id
  std::vector<VersionId> current_;      // by block
  std::vector<VersionId> replaced_at_;  // by time
  std::vector<VersionId> slots_;        // by place
  std::vector<CleanerTrack> tracks_;
  std::vector<std::uint32_t> free_;       // tracks
  std::vector<std::uint32_t> active_;     // by stream; kNone
  std::vector<std::uint32_t> tracks_of_;  // by stream
  std::uint64_t next_ordinal_ = 1;
  std::uint64_t current_in_log_ = 0;
  Counts counts_;
};

}  // namespace mariner::bench
