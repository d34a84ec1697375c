// The storage's current reads: from what is pending, the image, and the history beside them.
#include <array>
#include <cstring>
#include <utility>

#include "server/volume/storage.h"

namespace mariner::volume {

// A read of several sources: the buffer, and what it still waits for.
struct Storage::ReadOperation {
  Payload payload;
  ReadDone done;
  Result<void> result;
  std::size_t waiting = 1;
};

// The usual case without a copy: all of the range lies in one payload in memory.
bool Storage::read_from_memory(BlockRange range, ReadDone& done) {
  for (const Table* table : {&active_, &frozen_}) {
    if (!table->runs) continue;
    const PendingTable::Run run = table->runs->memory()->next_run(range.first);
    if (run.range.intersect(range).empty()) {
      if (table->runs->has_past(range)) return false;
      continue;  // nothing of it here
    }
    if (run.content.kind == PendingContent::Kind::kMemory && !run.content.repeated &&
        run.range.contains(range)) {
      done(PayloadSlice{run.content.payload, run.content.offset, range.count.bytes()});
      return true;
    }
    return false;
  }
  return false;
}

void Storage::read(BlockRange range, ReadDone done) {
  ++host_operations_;
  read_ahead(range);
  if (read_from_memory(range, done)) return;
  auto operation = std::make_shared<ReadOperation>();
  operation->payload = Payload::allocate(range.count.bytes());
  operation->done = std::move(done);
  ++reads_in_flight_;
  read_blocks(range, operation->payload.bytes(), operation);
  finished(operation, {});
}

// Of a reader in sequence.
void Storage::read_ahead(BlockRange range) {
  const Lbn end{parts_.image.size_bytes() >> kBlockShift};
  const BlockRange next = read_ahead_.read(range, end);
  // Who has several reads under way keeps the device busy by himself; one more stands before them.
  if (next.empty() || reads_in_flight_ > 0) return;
  // Where its last block is in memory, most of it will be: the kernel need not look for it.
  std::array<std::byte, kBlockBytes> last;
  if (parts_.image.try_read(next.end().byte_offset() - kBlockBytes, last)) return;
  prefetch(next);
}

// What is pending is in memory anyway.
void Storage::prefetch(BlockRange range) {
  ++reads_in_flight_;
  parts_.image.async_prefetch({range.first.byte_offset(), range.count.bytes()},
                              [this](const Result<void>&) { --reads_in_flight_; });
}

void Storage::read_blocks(BlockRange range, std::span<std::byte> to,
                          const std::shared_ptr<ReadOperation>& operation) {
  const auto part_of = [&](BlockRange part) {
    return to.subspan((part.first - range.first).bytes(), part.count.bytes());
  };
  visit_pending(range, [&](BlockRange part, const PendingContent* content) {
    if (content != nullptr) return read_pending(part, *content, part_of(part), operation);
    read_image(part, part_of(part), operation);
  });
}

// The newest of each part: as PendingTable::visit().
void Storage::visit_pending(
    BlockRange range, const std::function<void(BlockRange, const PendingContent*)>& visitor) const {
  const auto of_backlog = [&](BlockRange part, const PendingContent* frozen) {
    if (frozen != nullptr || backlog_.empty()) return visitor(part, frozen);
    backlog_.visit(part, visitor);
  };
  active_.runs->visit(range, [&](BlockRange part, const PendingContent* active) {
    if (active != nullptr) return visitor(part, active);
    if (!frozen_.runs) return of_backlog(part, nullptr);
    frozen_.runs->visit(part, of_backlog);
  });
}

void Storage::finished(const std::shared_ptr<ReadOperation>& operation,
                       const Result<void>& result) {
  if (!result && operation->result) operation->result = result;
  if (--operation->waiting > 0) return;
  --reads_in_flight_;
  if (!operation->result) return operation->done(operation->result.error());
  const std::size_t size = operation->payload.size();
  operation->done(PayloadSlice{std::move(operation->payload), 0, size});
}

void Storage::read_pending(BlockRange range, const PendingContent& content, std::span<std::byte> to,
                           const std::shared_ptr<ReadOperation>& operation) {
  switch (content.kind) {
    case PendingContent::Kind::kZero: std::memset(to.data(), 0, to.size()); return;
    case PendingContent::Kind::kMemory: {
      const std::byte* from = content.payload.data() + content.offset;
      const std::size_t piece = content.repeated ? kBlockBytes : to.size();
      for (std::size_t at = 0; at < to.size(); at += piece) std::memcpy(&to[at], from, piece);
      return;
    }
    case PendingContent::Kind::kHistory: break;
  }
  ++operation->waiting;
  history_.read(range, content.at, to,
                [this, range, to, operation, frozen = frozen_count_](const Result<void>& result) {
                  if (frozen != frozen_count_) return look_again(range, to, operation);
                  finished(operation, result);
                });
}

void Storage::look_again(BlockRange range, std::span<std::byte> to,
                         const std::shared_ptr<ReadOperation>& operation) {
  read_blocks(range, to, operation);
  finished(operation, {});
}

void Storage::read_image(BlockRange range, std::span<std::byte> to,
                         const std::shared_ptr<ReadOperation>& operation) {
  const std::uint64_t offset = range.first.byte_offset();
  bool beside_base = false;
  if (parts_.base != nullptr && !parts_.base->empty()) {
    parts_.base->visit(range, [&](BlockRange, bool in_image) { beside_base |= in_image; });
  }
  if (beside_base) return read_beside_base(range, to, operation);
  if (parts_.image.try_read(offset, to)) return;
  ++operation->waiting;
  parts_.image.async_read(
      offset, to, [this, range, to, operation, frozen = frozen_count_](const Result<void>& result) {
        // What was frozen meanwhile may be half written in the image: look again.
        if (result && frozen != frozen_count_) read_blocks(range, to, operation);
        finished(operation, result);
      });
}

// The image may hold the only copy of a base block that reads as zero by now.
void Storage::read_beside_base(BlockRange range, std::span<std::byte> to,
                               const std::shared_ptr<ReadOperation>& operation) {
  ++operation->waiting;
  locate_all(parts_.history, {{range, committed_}},
             [this, range, to, operation, at = committed_,
              frozen = frozen_count_](Result<History::Located> found) {
               if (frozen != frozen_count_) return look_again(range, to, operation);
               if (!found) return finished(operation, found.error());
               const auto located = std::make_shared<const History::Located>(*std::move(found));
               const auto read = [this, located, at, to, operation, frozen,
                                  range](const Result<void>& result) {
                 if (result && frozen != frozen_count_) return look_again(range, to, operation);
                 if (result) correct(*located, at, to, operation);
                 finished(operation, result);
               };
               const std::uint64_t offset = range.first.byte_offset();
               if (parts_.image.try_read(offset, to)) return read({});
               parts_.image.async_read(offset, to, read);
             });
}

// Puts right what the image has kept for the history's sake and reads as zero as of `at`. The
// zeros may have become a before-image, which took the place of what the image kept; the log does
// that only for the sake of a newer write.
void Storage::correct(const History::Located& located, SequenceNumber at, std::span<std::byte> to,
                      const std::shared_ptr<ReadOperation>& operation) {
  for (const PastRun& run : located.runs) {
    const std::span<std::byte> part = to.first(run.range.count.bytes());
    to = to.subspan(part.size());
    const bool before_image = run.source == PastRun::Source::kLog && run.sequence.value == 0;
    if (run.source == PastRun::Source::kZero) {
      std::memset(part.data(), 0, part.size());
    } else if (before_image && located.newest > at) {
      read_pending(run.range, content_as_of(at), part, operation);
    }
  }
}

}  // namespace mariner::volume
