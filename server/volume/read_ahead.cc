#include "server/volume/read_ahead.h"

#include <algorithm>

#include "proto/check.h"

namespace mariner::volume {

// Of several that end near it, which may have begun by accident, the longest one.
ReadAhead::Stream& ReadAhead::stream_of(BlockRange range) {
  Stream* oldest = streams_.data();
  Stream* longest = nullptr;
  for (Stream& stream : streams_) {
    const std::uint64_t at = range.first.value;
    const std::uint64_t next = stream.next.value;
    const bool near = (at > next ? at - next : next - at) <= kNearBlocks;
    if (stream.reads > 0 && near && (longest == nullptr || stream.blocks > longest->blocks)) {
      longest = &stream;
    }
    if (stream.last_read < oldest->last_read) oldest = &stream;
  }
  if (longest != nullptr) return *longest;
  *oldest = {.next = range.first, .asked = range.first};
  return *oldest;
}

BlockRange ReadAhead::read(BlockRange range, Lbn end) {
  CHECK(!range.empty());
  if (range.count.value < kReadBlocksMin) return {};
  Stream& stream = stream_of(range);
  stream.last_read = ++reads_;
  ++stream.reads;
  // What is read twice is no progress.
  if (range.end() > stream.next) {
    stream.blocks += (range.end() - stream.next).value;
    stream.next = range.end();
  }
  if (stream.reads < kReadsMin) return {};
  const BlockCount window{std::clamp(stream.blocks, kBlocksMin, kBlocksMax)};
  // By halves, so that what comes next is under way while the reader uses the rest.
  if (stream.asked >= stream.next + BlockCount{window.value / 2}) return {};
  const Lbn from = std::max(stream.asked, stream.next);
  const Lbn to = std::min(stream.next + window, end);
  if (from >= to) return {};
  stream.asked = to;
  return BlockRange::between(from, to);
}

}  // namespace mariner::volume
