// A write of blocks that are full of a letter, or of zeros.
#pragma once

#include <cstring>

#include "replication/messages.h"

namespace mariner::test {

// `letter` 0: zeros.
inline replication::WriteMessage letter_write(std::uint64_t sequence, BlockRange extent,
                                              char letter) {
  replication::WriteMessage message;
  message.stamp = {Epoch{1}, SequenceNumber{sequence}, VersionTime{sequence}};
  message.write.extent = extent;
  if (letter == 0) {
    message.write.kind = replication::WriteKind::kZero;
  } else {
    Payload payload = Payload::allocate(extent.count.bytes());
    std::memset(payload.data(), letter, payload.size());
    message.write.payload = {payload, 0, payload.size()};
  }
  return message;
}

}  // namespace mariner::test
