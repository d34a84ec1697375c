// What builds and verifies a pack sees of the tracks: a window of about 1 MiB that moves along.
#pragma once

#include <cstddef>
#include <cstdint>
#include <future>
#include <span>

#include "logging/beside.h"
#include "logging/pack_source.h"
#include "proto/error.h"
#include "proto/payload.h"

namespace mariner::logging {

// kInvalidArgument when the tracks break a bound of pack_source.h or pack_table.h.
[[nodiscard]] Result<void> check_pack_tracks(std::span<const PackTrack> tracks);

// Calls the pause each time that so much work has been done.
class PackPace {
 public:
  static constexpr std::uint64_t kBytes = 256u << 10;

  explicit PackPace(const PackPause& pause) : pause_(pause) {}
  [[nodiscard]] Result<void> did(std::uint64_t bytes);

 private:
  const PackPause& pause_;
  std::uint64_t bytes_ = 0;
};

// Of one thread. Keeps references to everything that it is given.
class PackWindow {
 public:
  static constexpr std::size_t kBytes = 1u << 20;
  static constexpr std::size_t kBytesMin = std::size_t{2} * kBlockBytes;
  // As it moves on, the end of what it had stays: who looks ahead, over a header area at most, goes
  // back so far.
  static constexpr std::size_t kBehindBytes = 288u << 10;

  // `window_bytes`: a multiple of kBlockBytes, at least kBytesMin. What comes behind the window is
  // read by `beside` meanwhile, if there is one: then `source` is read by two threads at a time.
  PackWindow(std::span<const PackTrack> tracks, PackSource& source, PackPace& pace,
             std::size_t window_bytes = kBytes, Beside* beside = nullptr);
  ~PackWindow();
  PackWindow(const PackWindow&) = delete;
  PackWindow& operator=(const PackWindow&) = delete;

  // The track's bytes [offset, offset + bytes), at most window_bytes - kBlockBytes of them, within
  // its `used`; they stay until the next call. Reads when they are not in the window.
  [[nodiscard]] Result<std::span<const std::byte>> at(std::size_t track, std::uint64_t offset,
                                                      std::size_t bytes);

 private:
  // To where it has these bytes.
  Result<void> move_to(std::size_t track, std::uint64_t offset, std::size_t bytes);
  // Reads [from, to) of the track to `at` in the buffer, or takes what was read ahead of it, which
  // may end earlier, but not before `least`. Returns where it ends.
  Result<std::uint64_t> fill(std::size_t track, std::uint64_t from, std::uint64_t to,
                             std::uint64_t least, std::size_t at);
  void read_ahead();
  [[nodiscard]] std::uint64_t end_of(std::size_t track) const;

  const std::span<const PackTrack> tracks_;
  PackSource& source_;
  PackPace& pace_;
  Payload buffer_;
  std::size_t track_ = 0;  // the window is [begin_, end_) of it
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;

  // Read ahead: [ahead_begin_, ahead_end_) of ahead_track_, if reading_ is valid.
  Beside* const beside_;
  Payload ahead_;
  std::future<Result<void>> reading_;
  std::size_t ahead_track_ = 0;
  std::uint64_t ahead_begin_ = 0;
  std::uint64_t ahead_end_ = 0;
};

}  // namespace mariner::logging
