#include "logging/track_recycler.h"

#include <algorithm>
#include <string>
#include <utility>

#include "proto/check.h"

namespace mariner::logging {

TrackRecycler::~TrackRecycler() { CHECK_MSG(idle(), "a track recycler is destroyed in use"); }

void TrackRecycler::release(std::uint64_t oldest, Done done) {
  CHECK(idle());
  CHECK(oldest > tracks_.oldest() && oldest <= disk_.current_allocation());
  oldest_ = oldest;
  done_ = std::move(done);
  next_round();
}

// A round is what one call of TrackList::release() plans.
void TrackRecycler::next_round() {
  writes_ = tracks_.release(oldest_);
  written_ = 0;
  to_forget_.clear();
  forgotten_bytes_ = 0;
  write_next();
}

void TrackRecycler::write_next() {
  if (written_ == writes_.size()) {
    if (disk_.disk().can_forget()) to_forget_ = tracks_.released();
    return forget_next();
  }
  const TrackList::Write& write = writes_[written_++];
  block_ = Payload::allocate(kBlockBytes);
  pack_list_page(write.page, disk_.superblock().log,
                 std::span<std::byte, kBlockBytes>(block_.data(), kBlockBytes));
  disk_.disk().async_write(write.block * kBlockBytes, {block_.bytes()}, Durability::kDurable,
                           [this](Result<void> result) {
                             if (result) return read_back();
                             failed(std::move(result));
                           });
}

// The page decides where everything stands that is written from now on. A device that has put it
// elsewhere, or nowhere, is found out while the list as it was is still good.
void TrackRecycler::read_back() {
  found_ = Payload::allocate(kBlockBytes);
  disk_.disk().async_read(
      writes_[written_ - 1].block * kBlockBytes, found_.bytes(), [this](Result<void> result) {
        if (!result) return failed(std::move(result));
        if (std::ranges::equal(found_.bytes(), block_.bytes())) return write_next();
        failed(Error{ErrorCode::kCorrupt,
                     "log disk " + std::to_string(disk_.number()) +
                         ": a page of the allocation list is not where it was written; the disk "
                         "loses or misdirects writes, replace it"});
      });
}

void TrackRecycler::failed(Result<void> result) {
  tracks_.abandoned();
  finish(std::move(result));
}

void TrackRecycler::forget_next() {
  const std::uint64_t track_bytes = disk_.superblock().track_bytes();
  if (!to_forget_.empty() && forgotten_bytes_ == track_bytes) {
    to_forget_.pop_back();
    forgotten_bytes_ = 0;
  }
  if (to_forget_.empty() || writer_.short_of_tracks()) return commit();
  const std::uint64_t first =
      disk_.superblock().track_first_sector(to_forget_.back()) * disk_.superblock().sector_bytes;
  const ByteRange piece{first + forgotten_bytes_,
                        std::min(kForgetBytesMax, track_bytes - forgotten_bytes_)};
  forgotten_bytes_ += piece.length;
  disk_.disk().async_forget(piece, [this](const Result<void>& result) {
    // It was a favour to the device. One that refuses it is not asked again in this round.
    if (!result) return commit();
    forget_next();
  });
}

// The pages are durable and nothing touches the tracks any more: the writer may have them.
void TrackRecycler::commit() {
  const std::uint64_t before = tracks_.oldest();
  const std::vector<std::uint64_t> freed = tracks_.released();
  tracks_.committed();
  if (freed_) freed_(freed);
  writer_.retry();
  if (tracks_.oldest() < oldest_) {
    CHECK(tracks_.oldest() > before || !writes_.empty());
    return next_round();
  }
  finish({});
}

void TrackRecycler::finish(Result<void> result) {
  std::exchange(done_, nullptr)(std::move(result));
}

}  // namespace mariner::logging
