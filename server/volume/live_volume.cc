#include "server/volume/live_volume.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::volume {

using replication::Stamp;
using replication::WriteKind;
using replication::WriteRequest;

namespace {

// One block filled with the pattern, which divides it.
Payload block_of(const PayloadSlice& pattern) {
  Payload block = Payload::allocate(kBlockBytes);
  const std::span<const std::byte> bytes = pattern.bytes();
  CHECK(!bytes.empty() && kBlockBytes % bytes.size() == 0);
  for (std::size_t at = 0; at < kBlockBytes; at += bytes.size()) {
    std::memcpy(block.data() + at, bytes.data(), bytes.size());
  }
  return block;
}

}  // namespace

LiveVolume::~LiveVolume() { CHECK_MSG(idle(), "a live volume is destroyed in use"); }

void LiveVolume::grow(std::uint64_t size_bytes) {
  CHECK(size_bytes >= size_bytes_);
  size_bytes_ = size_bytes;
}

void LiveVolume::end_reading() {
  if (--reading_ > 0 || !readers_stopped_) return;
  if (when_unread_) std::exchange(when_unread_, {})();
}

void LiveVolume::stop_readers(UniqueFunction<void()> then) {
  CHECK(!readers_stopped_);
  readers_stopped_ = true;
  if (reading_ == 0) return then();
  when_unread_ = std::move(then);
}

void LiveVolume::let_readers() {
  readers_stopped_ = false;
  for (UniqueFunction<void()>& each : std::exchange(waiting_readers_, {})) {
    --operations_;
    each();
  }
}

void LiveVolume::wait_to_read(UniqueFunction<void()> again) {
  ++operations_;
  waiting_readers_.push_back(std::move(again));
}

void LiveVolume::read(ByteRange range, ReadDone done) {
  if (readers_stopped_) {
    return wait_to_read(
        [this, range, done = std::move(done)]() mutable { read(range, std::move(done)); });
  }
  const auto& coordinator = parts_.replicator.coordinator();
  const BlockRange blocks = range.covering_blocks();
  const std::size_t skip = range.offset - blocks.first.byte_offset();
  ++operations_;
  ++reading_;
  auto finish = [this, skip, length = range.length,
                 done = std::move(done)](Result<PayloadSlice> result) mutable {
    --operations_;
    end_reading();
    if (result) {
      result->offset += skip;
      result->length = length;
    }
    done(std::move(result));
  };
  if (coordinator.acknowledged() <= coordinator.settled()) {
    return parts_.current.read(blocks, std::move(finish));
  }
  // An acknowledged write is not settled yet: an earlier one is still on its way.
  parts_.replicator.settle([this, blocks, finish = std::move(finish)](SequenceNumber) mutable {
    parts_.current.read(blocks, std::move(finish));
  });
}

void LiveVolume::submit(WriteRequest request, Done done) {
  parts_.replicator.submit(std::move(request),
                           [this, done = std::move(done)](Result<Stamp> stamp) mutable {
                             --operations_;
                             if (!stamp) return done(stamp.error());
                             done({});
                           });
}

void LiveVolume::write_whole(WriteRequest request, Done done) {
  ++operations_;
  const BlockRange extent = request.extent;
  if (locks_.idle()) return submit(std::move(request), std::move(done));
  locks_.shared(extent, [this, ticket = unplaced_.begin(), request = std::move(request),
                         done = std::move(done)]() mutable {
    submit(std::move(request), std::move(done));
    unplaced_.end(ticket);
  });
}

void LiveVolume::write(ByteRange range, PayloadSlice data, Done done) {
  CHECK(data.length == range.length);
  if (range.block_aligned()) {
    WriteRequest request;
    request.extent = range.covering_blocks();
    request.payload = std::move(data);
    return write_whole(std::move(request), std::move(done));
  }
  // Copied because the log takes whole, aligned blocks, and the edges come from elsewhere.
  write_partial(
      range,
      [range, data = std::move(data)](const Payload& head, const Payload& tail) {
        WriteRequest request;
        request.extent = range.covering_blocks();
        Payload merged = Payload::allocate(request.extent.count.bytes());
        if (head) std::memcpy(merged.data(), head.data(), kBlockBytes);
        if (tail) {
          std::memcpy(merged.data() + merged.size() - kBlockBytes, tail.data(), kBlockBytes);
        }
        std::memcpy(merged.data() + (range.offset - request.extent.first.byte_offset()),
                    data.bytes().data(), data.length);
        request.payload = {merged, 0, merged.size()};
        return request;
      },
      std::move(done));
}

void LiveVolume::in_pieces(ByteRange range, std::function<void(ByteRange, Done)> operation,
                           Done done) {
  const std::uint64_t end =
      std::min(range.end(), range.offset / kPieceBytes * kPieceBytes + kPieceBytes);
  if (end == range.end()) return operation(range, std::move(done));
  ++operations_;
  operation({range.offset, end - range.offset},
            [this, rest = ByteRange{end, range.end() - end}, operation,
             done = std::move(done)](Result<void> result) mutable {
              --operations_;
              if (!result) return done(std::move(result));
              in_pieces(rest, std::move(operation), std::move(done));
            });
}

void LiveVolume::write_same(ByteRange range, PayloadSlice pattern, Done done) {
  if (all_zero(pattern.bytes())) return trim(range, TrimMode::kZero, std::move(done));
  if (range.length > kPieceBytes) {
    return in_pieces(
        range,
        [this, pattern](ByteRange piece, Done each) {
          write_same(piece, pattern, std::move(each));
        },
        std::move(done));
  }
  if (range.block_aligned()) {
    WriteRequest request;
    request.kind = WriteKind::kRepeated;
    request.extent = range.covering_blocks();
    request.payload = {block_of(pattern), 0, kBlockBytes};
    return write_whole(std::move(request), std::move(done));
  }
  write_partial(
      range,
      [range, block = block_of(pattern)](const Payload& head, const Payload& tail) {
        const BlockRange extent = range.covering_blocks();
        const std::size_t skip = range.offset - extent.first.byte_offset();
        const std::size_t left = to_bytes(extent).end() - range.end();
        WriteRequest request;
        request.extent = extent;
        const BlockRange inner = range.inner_blocks();
        // Without a whole block inside, the edges are all there is.
        request.kind = inner.empty() ? WriteKind::kData : WriteKind::kRepeated;
        request.has_head = !inner.empty() && skip != 0;
        request.has_tail = !inner.empty() && left != 0;
        const std::size_t stored =
            inner.empty() ? extent.count.value
                          : 1u + (request.has_head ? 1u : 0u) + (request.has_tail ? 1u : 0u);
        Payload merged = Payload::allocate(stored * kBlockBytes);
        for (std::size_t i = 0; i < stored; ++i) {
          std::memcpy(merged.data() + i * kBlockBytes, block.data(), kBlockBytes);
        }
        if (head && skip != 0) std::memcpy(merged.data(), head.data(), skip);
        if (tail && left != 0) {
          std::memcpy(merged.data() + merged.size() - left, tail.data() + kBlockBytes - left, left);
        }
        request.payload = {merged, 0, merged.size()};
        return request;
      },
      std::move(done));
}

void LiveVolume::trim(ByteRange range, TrimMode mode, Done done) {
  if (parts_.logs_what_zeros_replace && range.length > kPieceBytes) {
    return in_pieces(
        range, [this, mode](ByteRange piece, Done each) { trim(piece, mode, std::move(each)); },
        std::move(done));
  }
  const BlockRange inner = range.inner_blocks();
  if (mode == TrimMode::kUnmap && inner.empty()) return done({});
  if (mode == TrimMode::kUnmap || range.block_aligned()) {
    WriteRequest request;
    request.kind = WriteKind::kZero;
    request.extent = inner;
    return write_whole(std::move(request), std::move(done));
  }
  write_partial(
      range,
      [range, inner](const Payload& head, const Payload& tail) {
        const BlockRange extent = range.covering_blocks();
        const std::size_t skip = range.offset - extent.first.byte_offset();
        const std::size_t left = to_bytes(extent).end() - range.end();
        WriteRequest request;
        request.extent = extent;
        request.kind = inner.empty() ? WriteKind::kData : WriteKind::kZero;
        request.has_head = !inner.empty() && skip != 0;
        request.has_tail = !inner.empty() && left != 0;
        const std::size_t stored =
            inner.empty() ? extent.count.value
                          : (request.has_head ? 1u : 0u) + (request.has_tail ? 1u : 0u);
        Payload merged = Payload::zeroed(stored * kBlockBytes);
        if (head && skip != 0) std::memcpy(merged.data(), head.data(), skip);
        if (tail && left != 0) {
          std::memcpy(merged.data() + merged.size() - left, tail.data() + kBlockBytes - left, left);
        }
        request.payload = {merged, 0, merged.size()};
        return request;
      },
      std::move(done));
}

void LiveVolume::read_edge(Lbn block, UniqueFunction<void(Result<Payload>)> done) {
  parts_.current.read({block, {1}}, [done = std::move(done)](Result<PayloadSlice> read) mutable {
    if (!read) return done(read.error());
    done(Payload::copy_of(read->bytes()));
  });
}

// Holds the covering blocks, waits for earlier writes, reads the edge blocks, and submits what
// `merge` makes of them. The lock is given back once the write has its place in the order.
void LiveVolume::write_partial(ByteRange range, Merge merge, Done done) {
  ++operations_;
  const BlockRange blocks = range.covering_blocks();
  struct State {
    Payload head;
    Payload tail;
    Merge merge;
    Done done;
  };
  auto state = std::make_shared<State>();
  state->merge = std::move(merge);
  state->done = std::move(done);
  const UnplacedWrites::Ticket ticket = unplaced_.begin();
  locks_.exclusive(blocks, [this, blocks, state, ticket](ExtentLocks::LockId lock) {
    const auto fail = [this, state, lock, ticket](const Error& error) {
      --operations_;
      locks_.unlock(lock);
      unplaced_.end(ticket);
      state->done(error);
    };
    const auto finish = [this, state, lock, ticket] {
      submit(state->merge(state->head, state->tail), std::move(state->done));
      locks_.unlock(lock);
      unplaced_.end(ticket);
    };
    parts_.replicator.settle([this, blocks, state, fail, finish](SequenceNumber) {
      read_edge(blocks.first, [this, blocks, state, fail, finish](Result<Payload> head) {
        if (!head) return fail(head.error());
        state->head = *head;
        if (blocks.count.value == 1) {
          state->tail = *head;
          return finish();
        }
        const Lbn last{blocks.end().value - 1};
        read_edge(last, [state, fail, finish](Result<Payload> tail) {
          if (!tail) return fail(tail.error());
          state->tail = *tail;
          finish();
        });
      });
    });
  });
}

// Holds the covering blocks, waits for earlier writes, reads them all, and submits what `change`
// makes of them.
void LiveVolume::update(ByteRange range, Change change, Done done) {
  ++operations_;
  const BlockRange blocks = range.covering_blocks();
  struct State {
    Change change;
    Done done;
  };
  auto state = std::make_shared<State>(State{std::move(change), std::move(done)});
  const UnplacedWrites::Ticket ticket = unplaced_.begin();
  locks_.exclusive(blocks, [this, range, blocks, state, ticket](ExtentLocks::LockId lock) {
    const auto end = [this, state, lock, ticket](Result<void> result) {
      --operations_;
      locks_.unlock(lock);
      unplaced_.end(ticket);
      state->done(std::move(result));
    };
    parts_.replicator.settle([this, range, blocks, state, lock, ticket, end](SequenceNumber) {
      parts_.current.read(
          blocks, [this, range, blocks, state, lock, ticket, end](Result<PayloadSlice> read) {
            if (!read) return end(read.error());
            const std::size_t skip = range.offset - blocks.first.byte_offset();
            PayloadSlice current = *read;
            current.offset += skip;
            current.length = range.length;
            std::optional<PayloadSlice> changed = state->change(current);
            if (!changed) return end({});
            CHECK(changed->length == range.length);
            WriteRequest request;
            request.extent = blocks;
            request.payload = *std::move(changed);
            if (!range.block_aligned()) {
              Payload merged = Payload::copy_of(read->bytes());
              std::memcpy(merged.data() + skip, request.payload.bytes().data(), range.length);
              request.payload = {merged, 0, merged.size()};
            }
            submit(std::move(request), std::move(state->done));
            locks_.unlock(lock);
            unplaced_.end(ticket);
          });
    });
  });
}

void LiveVolume::allocation(ByteRange range, AllocationDone done) {
  if (readers_stopped_) {
    return wait_to_read(
        [this, range, done = std::move(done)]() mutable { allocation(range, std::move(done)); });
  }
  ++operations_;
  ++reading_;
  auto finish = [this, done = std::move(done)](Result<std::vector<Allocation>> found) mutable {
    --operations_;
    end_reading();
    done(std::move(found));
  };
  const auto& coordinator = parts_.replicator.coordinator();
  if (coordinator.acknowledged() <= coordinator.settled()) {
    return allocation_at(parts_.history, range, coordinator.settled(), std::move(finish));
  }
  // As read(): what was acknowledged must show.
  parts_.replicator.settle([this, range, finish = std::move(finish)](SequenceNumber at) mutable {
    allocation_at(parts_.history, range, at, std::move(finish));
  });
}

void LiveVolume::snapshot(SnapshotDone done) {
  CHECK(parts_.open_snapshot != nullptr);
  if (readers_stopped_) {
    return wait_to_read([this, done = std::move(done)]() mutable { snapshot(std::move(done)); });
  }
  ++operations_;
  ++reading_;
  parts_.replicator.settle([this, done = std::move(done)](SequenceNumber at) mutable {
    --operations_;
    end_reading();
    done(parts_.open_snapshot(at));
  });
}

// Also of those that have no place in the order yet.
void LiveVolume::settle(Done done) {
  ++operations_;
  unplaced_.when_placed([this, done = std::move(done)]() mutable {
    parts_.replicator.settle([this, done = std::move(done)](SequenceNumber) mutable {
      --operations_;
      done({});
    });
  });
}

}  // namespace mariner::volume
