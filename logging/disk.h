// A disk: the one interface under the log and the image, so that tests can put a faulty one there.
//
// Offsets, lengths and memory are multiples of alignment(). Blocking calls may come from any
// thread; asynchronous ones from the owning Executor's thread, where their completions run too,
// never before the call has returned. The memory stays valid until the completion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "proto/check.h"
#include "proto/error.h"
#include "proto/unique_function.h"
#include "proto/units.h"

namespace mariner::logging {

enum class Durability {
  kVolatile,  // may be lost by a power cut until the next flush()
  kDurable,   // on stable storage, with everything that a read of it needs, on completion
};

using ConstBytes = std::span<const std::byte>;

class Disk {
 public:
  using Completion = UniqueFunction<void(Result<void>)>;

  virtual ~Disk() = default;

  [[nodiscard]] virtual std::uint64_t size_bytes() const = 0;
  [[nodiscard]] virtual std::uint32_t alignment() const = 0;

  // All of `to`, or an error.
  virtual Result<void> read(std::uint64_t offset, std::span<std::byte> to) = 0;
  // The parts one after another from `offset`, in one write of the device where it allows it.
  virtual Result<void> write(std::uint64_t offset, std::span<const ConstBytes> parts,
                             Durability durability) = 0;
  // What goes to one place: its parts one after another from `offset`.
  struct Write {
    std::uint64_t offset = 0;
    std::vector<ConstBytes> parts;
  };
  // Several writes that do not overlap, in any order, as if with Durability::kVolatile; where there
  // is a page cache, past it: for much that nobody is known to read soon. After an error any of
  // them may have been done.
  virtual Result<void> write_past_cache(std::span<const Write> writes) {
    for (const Write& each : writes) {
      Result<void> written = write(each.offset, each.parts, Durability::kVolatile);
      if (!written) return written;
    }
    return {};
  }
  // Whether all of `range` has its place on the device already, so that a write past the cache goes
  // there and changes nothing else. False: not, or it is not known. Blocking.
  [[nodiscard]] virtual bool has_place(ByteRange range) {
    static_cast<void>(range);
    return false;
  }
  // Everything whose write completed before this call is durable on return.
  virtual Result<void> flush() = 0;
  // A hint: what was written to `range` will be flushed soon, and the device may begin.
  virtual void start_writeback(ByteRange range) { static_cast<void>(range); }
  // Until what was begun there has ended: for who does not want to fill the device's queue. An
  // error of those writes may be told here, and then no flush tells it again. Blocking.
  virtual Result<void> wait_for_writeback(ByteRange range) {
    static_cast<void>(range);
    return {};
  }
  // The range reads as zero afterwards and gives its space back where the device can.
  virtual Result<void> discard(ByteRange range) = 0;

  // Whether async_forget() does anything.
  [[nodiscard]] virtual bool can_forget() const { return false; }

  // Fills `to` if the bytes are in memory already and returns true; never waits for a device.
  virtual bool try_read(std::uint64_t offset, std::span<std::byte> to) {
    static_cast<void>(offset);
    static_cast<void>(to);
    return false;
  }

  virtual void async_read(std::uint64_t offset, std::span<std::byte> to, Completion done) = 0;
  // A hint: `range` will be read soon. Where there is a page cache, brings there what it lacks, as
  // far as the kernel has memory for it. Completes when that is under way, perhaps before this
  // returns; errors are left to the read.
  virtual void async_prefetch(ByteRange range, Completion done) {
    static_cast<void>(range);
    done({});
  }
  virtual void async_write(std::uint64_t offset, std::vector<ConstBytes> parts,
                           Durability durability, Completion done) = 0;
  // Everything whose write completed before this call is durable on completion. Not on every disk.
  virtual void async_flush(Completion done) {
    static_cast<void>(done);
    CHECK_MSG(false, "this disk flushes only while the caller waits");
  }
  // Transfers that were begun may not have reached the device before the end of the event loop's
  // turn, so that many go together. This sends them now.
  virtual void submit_now() {}
  // Nobody needs what the range holds: from now on reads of it may return anything, until it is
  // written again. Tells the device so, without changing the metadata of a file system. Requires
  // can_forget(); one at a time.
  virtual void async_forget(ByteRange range, Completion done) {
    static_cast<void>(range);
    static_cast<void>(done);
    CHECK_MSG(false, "this disk cannot forget");
  }
};

}  // namespace mariner::logging
