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
                       std::size_t window_bytes)
    : tracks_(tracks), source_(source), pace_(pace), buffer_(Payload::allocate(window_bytes)) {
  CHECK(window_bytes >= kBytesMin && window_bytes % kBlockBytes == 0);
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
  const PackTrack& from = tracks_[track];
  std::uint64_t begin = offset / kBlockBytes * kBlockBytes;
  std::uint64_t kept = 0;
  if (track == track_ && begin > begin_ && begin <= end_) {
    const std::uint64_t room = end_ + buffer_.size() - (offset + bytes);
    kept = std::min<std::uint64_t>({kBehindBytes, room / kBlockBytes * kBlockBytes, end_ - begin_});
    kept = std::max(kept, end_ - begin);
    std::memmove(buffer_.data(), buffer_.data() + (end_ - begin_ - kept), kept);
    begin = end_ - kept;
  }
  const std::uint64_t used_blocks = (from.used + kBlockBytes - 1) / kBlockBytes;
  const std::uint64_t end =
      std::min({begin + buffer_.size(), used_blocks * kBlockBytes, from.bytes});
  end_ = begin_ = 0;  // in case that it fails
  const std::span<std::byte> to = buffer_.bytes().subspan(kept, end - begin - kept);
  if (const Result<void> read = source_.read(track, begin + kept, to); !read) return read.error();
  track_ = track;
  begin_ = begin;
  end_ = end;
  return {};
}

}  // namespace mariner::logging
