// A layer: the one small interface between the SCSI disk above and whatever holds the bytes below.
//
// A volume is a stack of layers: the live volume, a view of the past, a writable view, and in
// front of any of them a layer that injects faults. All calls and all completions happen on the
// Executor's thread that owns the volume; a completion may run before the call returns. Ranges are
// in bytes, multiples of 512, inside the layer's size, never empty (the caller has checked).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "proto/error.h"
#include "proto/payload.h"
#include "proto/unique_function.h"
#include "proto/units.h"

namespace mariner::volume {

using ReadDone = UniqueFunction<void(Result<PayloadSlice>)>;
using Done = UniqueFunction<void(Result<void>)>;
// What a range is replaced by, of its length; nothing: it stays as it is.
using Change = UniqueFunction<std::optional<PayloadSlice>(const PayloadSlice& current)>;

enum class TrimMode {
  kUnmap,  // a hint: partial 4 KiB blocks at the edges may stay as they are
  kZero,   // every byte of the range reads as zero afterwards
};

// A piece of a layer's address space and whether anything is stored for it.
struct Allocation {
  ByteRange range;
  bool mapped = false;
};

using AllocationDone = UniqueFunction<void(Result<std::vector<Allocation>>)>;

class Layer;
// Of a moment: see Layer::snapshot().
using SnapshotDone = UniqueFunction<void(Result<std::shared_ptr<Layer>>)>;

class Layer {
 public:
  virtual ~Layer() = default;

  [[nodiscard]] virtual std::uint64_t size_bytes() const = 0;
  [[nodiscard]] virtual bool read_only() const = 0;

  // The bytes of `range`, each 4 KiB block as of some moment between the call and the completion
  // (beside writes that are under way, not the same one for every block), and after every
  // write whose completion ran before this call.
  virtual void read(ByteRange range, ReadDone done) = 0;

  // A hint: `range` will be read soon. What is not in memory may be fetched meanwhile.
  virtual void prefetch(ByteRange range) { static_cast<void>(range); }

  // Replaces `range` by `data` (same length), whole or not at all in every view. Durable when
  // `done` runs with success. The data must not change any more.
  virtual void write(ByteRange range, PayloadSlice data, Done done) = 0;

  // Like write() of `pattern` (512 or 4096 bytes) repeated over `range`, as one write.
  virtual void write_same(ByteRange range, PayloadSlice pattern, Done done) = 0;

  // Replaces `range` by what `change` makes of its bytes, with no write between the two. `range` is
  // short: a transfer at most. `change` runs once, unless it fails before; durable as write().
  virtual void update(ByteRange range, Change change, Done done) = 0;

  // Makes `range` read as zero and gives back its space, as one write. Durable as write().
  virtual void trim(ByteRange range, TrimMode mode, Done done) = 0;

  // Completes when everything acknowledged before is durable. (It is: completes at once.)
  virtual void flush(Done done) = 0;

  // What is stored in `range`, as of some moment between the call and the completion: in order,
  // without gaps; neighbours differ. `done` may run before this returns. Errors as read().
  virtual void allocation(ByteRange range, AllocationDone done) = 0;

  // A read-only layer of what this one holds at a moment between the call and the completion, after
  // every write whose completion ran before the call. The moment is kept readable as long as the
  // layer is held and the volume has it; a volume that is short of room, or gone, gives it up, and
  // everything fails with kOutsideWindow from then on. Nothing is copied. Errors as read().
  virtual void snapshot(SnapshotDone done) = 0;

  // Calls back when every write begun before this call is settled: for task management.
  virtual void settle(Done done) = 0;
};

}  // namespace mariner::volume
