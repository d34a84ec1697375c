// What the coordinator and the participants of a volume say to each other (design.md section 4).
//
// In one process these are function arguments; over a network each becomes a framed header, with
// the payload sent once to all.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "proto/payload.h"
#include "proto/units.h"

namespace mariner::replication {

enum class WriteKind : std::uint8_t {
  kData,      // payload replaces the extent, block by block
  kRepeated,  // [head] pattern [tail]: the pattern block fills the extent but for its edges
  kZero,      // [head] zeros [tail]
  kRollback,  // the volume reads as at `target` from here on; no extent, no payload
};

// One write as the initiator's side asks for it: whole blocks, payload in memory.
struct WriteRequest {
  WriteKind kind = WriteKind::kData;
  bool has_head = false;  // kRepeated, kZero: the payload's first block is the extent's first
  bool has_tail = false;  // ... and its last block the extent's last
  BlockRange extent;
  PayloadSlice payload;
  SequenceNumber target;  // kRollback
  VersionTime target_time;
  // kRollback, in this process: the extents that may have changed since the target.
  std::shared_ptr<const std::vector<BlockRange>> changed;
};

// What a write adds to the lag of an image, and takes of what a storage node has granted: its
// payload, and one block for what costs the same whatever its length.
[[nodiscard]] inline std::uint64_t lag_bytes(const WriteRequest& write) {
  const bool has_payload = write.kind == WriteKind::kData || write.kind == WriteKind::kRepeated;
  return write.payload.length + (has_payload ? 0 : kBlockBytes);
}

// Epoch, sequence number and version time: given once, by the coordinator.
struct Stamp {
  Epoch epoch;
  SequenceNumber sequence;
  VersionTime time;
};

// A stamped write, to every participant.
struct WriteMessage {
  VolumeId volume;
  Stamp stamp;
  WriteRequest write;
  SequenceNumber settled;   // all at or below are durable or void
  SequenceNumber frontier;  // all at or below are durable in every image
};

// Sequence numbers [first, last] never became durable, to every participant.
struct VoidMessage {
  VolumeId volume;
  Epoch epoch;
  SequenceNumber first;
  SequenceNumber last;
};

}  // namespace mariner::replication
