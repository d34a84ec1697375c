#include "logging/pack_window.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "logging/pack_table.h"
#include "proto/check.h"
#include "proto/units.h"

namespace mariner::logging {
namespace {

constexpr std::uint32_t kSectorBytes = 512;

bool is_within_bounds(const PackTrack& track) {
  if (track.bytes > kPackTrackBytesMax || track.used > track.bytes) return false;
  std::uint64_t end = 0;
  for (const PackBlocks& blocks : track.payloads) {
    if (blocks.at < end || blocks.at % kSectorBytes != 0 || blocks.blocks == 0) return false;
    end = blocks.end();
  }
  return end <= track.used;
}

}  // namespace

Result<void> check_pack_tracks(std::span<const PackTrack> tracks) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < tracks.size(); ++i) {
    bytes += tracks[i].bytes;
    if (!is_within_bounds(tracks[i])) {
      return Error{
          ErrorCode::kInvalidArgument,
          "track " + std::to_string(i) + " of a pack has a length or payloads out of bounds"};
    }
  }
  if (tracks.size() > kPackTracksMax || bytes > kPackPlainBytesMax) {
    return Error{ErrorCode::kInvalidArgument, std::to_string(tracks.size()) + " tracks of " +
                                                  std::to_string(bytes) +
                                                  " bytes are too many for a pack"};
  }
  return {};
}

Result<void> PackPace::did(std::uint64_t bytes) {
  bytes_ += bytes;
  if (bytes_ < kBytes) return {};
  bytes_ = 0;
  return pause_ ? pause_() : Result<void>{};
}

PackWindow::PackWindow(std::span<const PackTrack> tracks, PackSource& source, PackPace& pace,
                       std::size_t window_bytes, Beside* beside)
    : tracks_(tracks),
      source_(source),
      pace_(pace),
      buffer_(Payload::allocate(window_bytes)),
      beside_(beside) {
  CHECK(window_bytes >= kBytesMin && window_bytes % kBlockBytes == 0);
  if (beside_ != nullptr) {
    CHECK(window_bytes > kBehindBytes);
    ahead_ = Payload::allocate(window_bytes - kBehindBytes);
  }
}

PackWindow::~PackWindow() {
  if (reading_.valid()) reading_.wait();
}

Result<std::span<const std::byte>> PackWindow::at(std::size_t track, std::uint64_t offset,
                                                  std::size_t bytes) {
  CHECK(track < tracks_.size() && offset + bytes <= tracks_[track].used);
  CHECK(bytes + kBlockBytes <= buffer_.size());
  if (const Result<void> paced = pace_.did(bytes); !paced) return paced.error();
  if (track != track_ || offset < begin_ || offset + bytes > end_) {
    if (const Result<void> moved = move_to(track, offset, bytes); !moved) return moved.error();
  }
  return std::span<const std::byte>(buffer_.bytes().subspan(offset - begin_, bytes));
}

Result<void> PackWindow::move_to(std::size_t track, std::uint64_t offset, std::size_t bytes) {
  std::uint64_t begin = offset / kBlockBytes * kBlockBytes;
  std::uint64_t kept = 0;
  if (track == track_ && begin > begin_ && begin <= end_) {
    const std::uint64_t room = end_ + buffer_.size() - (offset + bytes);
    kept = std::min<std::uint64_t>({kBehindBytes, room / kBlockBytes * kBlockBytes, end_ - begin_});
    kept = std::max(kept, end_ - begin);
    std::memmove(buffer_.data(), buffer_.data() + (end_ - begin_ - kept), kept);
    begin = end_ - kept;
  }
  const std::uint64_t most = std::min(begin + buffer_.size(), end_of(track));
  end_ = begin_ = 0;  // in case that it fails
  const Result<std::uint64_t> end = fill(track, begin + kept, most, offset + bytes, kept);
  if (!end) return end.error();
  track_ = track;
  begin_ = begin;
  end_ = *end;
  read_ahead();
  return {};
}

// Of what can be read of it.
std::uint64_t PackWindow::end_of(std::size_t track) const {
  const std::uint64_t used_blocks = (tracks_[track].used + kBlockBytes - 1) / kBlockBytes;
  return std::min(used_blocks * kBlockBytes, tracks_[track].bytes);
}

Result<std::uint64_t> PackWindow::fill(std::size_t track, std::uint64_t from, std::uint64_t to,
                                       std::uint64_t least, std::size_t at) {
  if (reading_.valid()) {
    // (What could not be read ahead is tried again.)
    const Result<void> read = reading_.get();
    if (read && track == ahead_track_ && from == ahead_begin_ && ahead_end_ >= least) {
      const std::uint64_t end = std::min(to, ahead_end_);
      std::memcpy(buffer_.data() + at, ahead_.data(), end - from);
      return end;
    }
  }
  const std::span<std::byte> into = buffer_.bytes().subspan(at, to - from);
  if (const Result<void> read = source_.read(track, from, into); !read) return read.error();
  return to;
}

void PackWindow::read_ahead() {
  if (beside_ == nullptr) return;
  ahead_track_ = track_;
  ahead_begin_ = end_;
  if (ahead_begin_ == end_of(track_)) {
    ahead_begin_ = 0;
    if (++ahead_track_ == tracks_.size()) return;
  }
  ahead_end_ = std::min<std::uint64_t>(ahead_begin_ + ahead_.size(), end_of(ahead_track_));
  if (ahead_end_ == ahead_begin_) return;
  const std::span<std::byte> to = ahead_.bytes().first(ahead_end_ - ahead_begin_);
  reading_ = beside_->begin([this, track = ahead_track_, from = ahead_begin_, to] {
    return source_.read(track, from, to);
  });
}

}  // namespace mariner::logging
