// What blocks hold at a moment that moves on through a stretch: read once for as long as nobody
// writes to them.
//
// What is not there is read with the blocks beside it, as libtsk asks for one after another. One
// thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "ifsck/overlay.h"
#include "proto/error.h"
#include "uvfs/block_timelines.h"
#include "uvfs/version_cache.h"

namespace mariner::uvfs {

class MovingBlocks {
 public:
  // Beyond them, all that is kept is forgotten: 32 MiB.
  static constexpr std::size_t kBlocksMax = 8 * 1024;
  static constexpr std::uint64_t kAhead = 16;  // blocks that are read together

  // `timelines` outlive it. At the first moment of their stretch.
  explicit MovingBlocks(BlockTimelines& timelines)
      : timelines_(timelines), cache_(timelines), at_(timelines.stretch().first) {}

  [[nodiscard]] SequenceNumber at() const { return at_; }
  // Not back.
  void move_to(SequenceNumber at);
  // Errors: of the past; kInvalidArgument: behind the volume's end; kLimit: of
  // BlockTimelines::load().
  [[nodiscard]] Result<void> read(BlockRange blocks, std::span<std::byte> to);
  // What is going to be read.
  [[nodiscard]] Result<void> prefetch(std::span<const BlockTimelines::Question> questions) {
    return cache_.prefetch(questions);
  }

 private:
  struct Kept {
    SequenceNumber end;  // from then on it is something else
    std::unique_ptr<ifsck::Overlay::Block> bytes;
  };
  // Null: it is to be read.
  [[nodiscard]] const ifsck::Overlay::Block* find(Lbn block) const;
  [[nodiscard]] Result<void> fetch(BlockRange blocks);

  BlockTimelines& timelines_;
  VersionCache cache_;
  SequenceNumber at_;
  std::unordered_map<std::uint64_t, Kept> kept_;
};

}  // namespace mariner::uvfs
