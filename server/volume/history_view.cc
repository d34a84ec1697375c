#include "server/volume/history_view.h"

#include <utility>

#include "proto/check.h"

namespace mariner::volume {
namespace {

Error read_only_error() {
  return Error{ErrorCode::kReadOnly,
               "a view of the past cannot be written; expose it with --writable"};
}

}  // namespace

HistoryView::~HistoryView() { CHECK_MSG(idle(), "a view is destroyed in use"); }

void HistoryView::read(ByteRange range, ReadDone done) {
  const BlockRange blocks = range.covering_blocks();
  const std::size_t skip = range.offset - blocks.first.byte_offset();
  Payload payload = Payload::allocate(blocks.count.bytes());
  const std::span<std::byte> to = payload.bytes();
  ++operations_;
  history_.read(blocks, at_, to,
                [this, payload = std::move(payload), skip, length = range.length,
                 done = std::move(done)](Result<void> result) mutable {
                  --operations_;
                  if (!result) return done(result.error());
                  done(PayloadSlice{std::move(payload), skip, length});
                });
}

void HistoryView::write(ByteRange, PayloadSlice, Done done) { done(read_only_error()); }
void HistoryView::write_same(ByteRange, PayloadSlice, Done done) { done(read_only_error()); }
void HistoryView::update(ByteRange, Change, Done done) { done(read_only_error()); }
void HistoryView::trim(ByteRange, TrimMode, Done done) { done(read_only_error()); }

void HistoryView::allocation(ByteRange range, AllocationDone done) {
  ++operations_;
  allocation_at(history_.history(), range, at_,
                [this, done = std::move(done)](Result<std::vector<Allocation>> found) mutable {
                  --operations_;
                  done(std::move(found));
                });
}

void HistoryView::snapshot(SnapshotDone done) {
  if (!open_snapshot_) return done(Error{ErrorCode::kNotFound, "nobody keeps moments here"});
  done(open_snapshot_(at_));
}

void HistoryCurrent::read(BlockRange range, ReadDone done) {
  Payload payload = Payload::allocate(range.count.bytes());
  const std::span<std::byte> to = payload.bytes();
  history_.read(
      range, settled_(), to,
      [payload = std::move(payload), done = std::move(done)](Result<void> result) mutable {
        if (!result) return done(result.error());
        const std::size_t size = payload.size();
        done(PayloadSlice{std::move(payload), 0, size});
      });
}

}  // namespace mariner::volume
