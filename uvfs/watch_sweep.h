// Goes through a stretch from write to write, for those who have read bytes of the volume: each is
// told of the writes that change what it has read, and of no others; until then whatever it made of
// these bytes is as it was.
//
// One thread.
#pragma once

#include <cstddef>
#include <functional>
#include <queue>
#include <span>
#include <unordered_set>
#include <vector>

#include "proto/error.h"
#include "uvfs/block_timelines.h"
#include "uvfs/byte_watch.h"
#include "uvfs/moving_blocks.h"
#include "uvfs/stretch.h"

namespace mariner::uvfs {

class WatchSweep {
 public:
  using Watcher = ByteWatch::Watcher;

  // What blocks held at moments to come is asked for at once, for so many writes.
  static constexpr std::size_t kAhead = 1024;

  // `timelines` outlive it.
  explicit WatchSweep(BlockTimelines& timelines) : timelines_(timelines), blocks_(timelines) {}

  // At the moment that it is at.
  [[nodiscard]] MovingBlocks& blocks() { return blocks_; }
  // What it has read, instead of what it had.
  [[nodiscard]] Result<void> watch(Watcher watcher, std::vector<ByteRange> ranges) {
    return watch_.set(watcher, std::move(ranges));
  }

  // Calls `due` for those who are to read: ascending, each once. At the stretch's first moment with
  // none of them, as all are. Until it has an error. Errors: its, and of the past; kLimit.
  using Due = std::function<Result<void>(const Instant& at, std::span<const Watcher> watchers)>;
  [[nodiscard]] Result<void> run(const Due& due);

 private:
  // The next write to a block that is watched.
  struct Next {
    SequenceNumber at;
    Lbn block;
    friend auto operator<=>(const Next&, const Next&) = default;
  };
  using Queue = std::priority_queue<Next, std::vector<Next>, std::greater<>>;

  [[nodiscard]] Result<void> take_new_blocks();
  void push_next(Lbn block, SequenceNumber behind, Queue& to) const;
  [[nodiscard]] Result<void> look_ahead();
  // Moves there. The watchers whose bytes are others since.
  [[nodiscard]] Result<std::vector<Watcher>> move_to(SequenceNumber at,
                                                     std::span<const Lbn> written);

  BlockTimelines& timelines_;
  MovingBlocks blocks_;
  ByteWatch watch_;
  Queue queue_;
  std::unordered_set<std::uint64_t> queued_;
  std::size_t ahead_ = 0;  // writes that were asked for and are still to come
};

}  // namespace mariner::uvfs
