#include "logging/track_recycler.h"

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
  write_next();
}

void TrackRecycler::write_next() {
  if (written_ == writes_.size()) {
    const std::uint64_t before = tracks_.oldest();
    tracks_.committed();
    writer_.retry();
    if (tracks_.oldest() < oldest_) {
      CHECK(tracks_.oldest() > before || !writes_.empty());
      return next_round();
    }
    return finish({});
  }
  const TrackList::Write& write = writes_[written_++];
  block_ = Payload::allocate(kBlockBytes);
  pack_list_page(write.page, disk_.superblock().log,
                 std::span<std::byte, kBlockBytes>(block_.data(), kBlockBytes));
  disk_.disk().async_write(write.block * kBlockBytes, {block_.bytes()}, Durability::kDurable,
                           [this](Result<void> result) {
                             if (result) return write_next();
                             tracks_.abandoned();
                             finish(std::move(result));
                           });
}

void TrackRecycler::finish(Result<void> result) {
  std::exchange(done_, nullptr)(std::move(result));
}

}  // namespace mariner::logging
