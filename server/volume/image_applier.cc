#include "server/volume/image_applier.h"

#include <algorithm>
#include <utility>

#include "proto/check.h"

namespace mariner::volume {

using index::LocatedRun;

ImageApplier::~ImageApplier() { CHECK_MSG(!running(), "an applier is destroyed while it runs"); }

void ImageApplier::start(Job job) {
  CHECK(!running());
  CHECK(!job.table->empty());
  table_ = std::move(job.table);
  flushed_ = std::move(job.flushed);
  done_ = std::move(job.done);
  next_ = Lbn{0};
  stopping_ = false;
  portion_left_ = portion_.value;
  unflushed_ = false;
  next_chunk();
}

void ImageApplier::set_portion(BlockCount portion) {
  CHECK(portion.value > 0);
  portion_ = portion;
}

void ImageApplier::finish(Result<void> result) {
  table_.reset();
  flushed_ = nullptr;
  changes_.clear();
  to_capture_.clear();
  std::exchange(done_, nullptr)(std::move(result));
}

void ImageApplier::next_chunk() {
  if (stopping_) {
    return finish(Error{ErrorCode::kAborted, "applying to the image was stopped"});
  }
  if (portion_left_ == 0) return flush(next_);
  changes_.clear();
  to_capture_.clear();
  const std::uint64_t blocks_max = std::min(kChunkBlocks, portion_left_);
  std::uint64_t blocks = 0;
  bool more = true;
  for (std::size_t runs = 0; runs < kChunkRuns && blocks < blocks_max; ++runs) {
    PendingTable::Run run = table_->next_run(next_);
    more = !run.range.empty();
    if (!more) break;
    // A run of zeros costs one block whatever its length.
    if (run.content.kind == PendingContent::Kind::kZero) {
      ++blocks;
    } else {
      run.range.count.value = std::min(run.range.count.value, blocks_max - blocks);
      blocks += run.range.count.value;
    }
    next_ = run.range.end();
    add_run(run);
  }
  if (blocks == 0 && !more) return flush(Lbn{UINT64_MAX});
  portion_left_ -= blocks;
  capture_next();
}

std::vector<BlockRange> ImageApplier::uncaptured(BlockRange range) const {
  std::vector<BlockRange> out;
  if (parts_.base.empty()) return out;
  // The bits first: they cost less than the index, and most volumes have few of them set.
  bool any = false;
  parts_.base.visit(range, [&](BlockRange, bool in_image) { any |= in_image; });
  if (!any) return out;
  for (const LocatedRun& run : parts_.index.locate(range, SequenceNumber{0})) {
    if (run.source != LocatedRun::Source::kBase) continue;
    parts_.base.visit(run.range, [&](BlockRange part, bool in_image) {
      if (in_image) out.push_back(part);
    });
  }
  return out;
}

void ImageApplier::add_run(const PendingTable::Run& run) {
  switch (run.content.kind) {
    case PendingContent::Kind::kZero: return add_zero(run.range);
    case PendingContent::Kind::kMemory:
      return add_stored(
          {run.range, run.content.payload, run.content.offset, run.content.repeated, std::nullopt});
    case PendingContent::Kind::kHistory: break;
  }
  for (const LocatedRun& located : parts_.index.locate(run.range, run.content.at)) {
    add_located(located);
  }
}

void ImageApplier::add_located(const LocatedRun& run) {
  switch (run.source) {
    case LocatedRun::Source::kZero: return add_zero(run.range);
    case LocatedRun::Source::kBase:
      // The image holds it still, or the base is zero.
      parts_.base.visit(run.range, [&](BlockRange part, bool in_image) {
        if (!in_image) add_zero(part);
      });
      return;
    case LocatedRun::Source::kLog: break;
  }
  return add_stored({run.range, {}, 0, run.repeated, parts_.history.log_read_of(run, {})});
}

// Punches a hole, but for blocks of which the image holds the only copy.
void ImageApplier::add_zero(BlockRange range) {
  Lbn at = range.first;
  for (const BlockRange& kept : uncaptured(range)) {
    if (kept.first > at)
      changes_.push_back({BlockRange::between(at, kept.first), {}, 0, false, {}});
    at = kept.end();
  }
  if (at < range.end())
    changes_.push_back({BlockRange::between(at, range.end()), {}, 0, false, {}});
}

void ImageApplier::add_stored(ImageChange change) {
  for (const BlockRange& only_here : uncaptured(change.range)) to_capture_.push_back(only_here);
  changes_.push_back(std::move(change));
}

// Logs the before-images of this chunk one after another, then writes the chunk.
void ImageApplier::capture_next() {
  if (to_capture_.empty()) return write_chunk();
  BlockRange range = to_capture_.back();
  to_capture_.pop_back();
  if (range.count.value > logging::kRecordPayloadBlocksMax / 4) {
    const BlockCount piece{logging::kRecordPayloadBlocksMax / 4};
    to_capture_.push_back({range.first + piece, range.count - piece});
    range.count = piece;
  }
  Payload old = Payload::allocate(range.count.bytes());
  logging::Disk& image = parts_.image;
  parts_.worker.run(
      [&image, range, old]() mutable { return image.read(range.first.byte_offset(), old.bytes()); },
      [this, range, old](Result<void> read) {
        if (!read) return finish(read.error());
        parts_.log.log_before_image(range, {old, 0, old.size()}, false,
                                    [this](Result<void> logged) {
                                      if (!logged) return finish(logged.error());
                                      capture_next();
                                    });
      });
}

// Also when nothing changes (the image holds it already): the worker's turn keeps a long row of
// such chunks from holding up the loop, or from recursing.
void ImageApplier::write_chunk() {
  auto changes = std::make_shared<std::vector<ImageChange>>(std::move(changes_));
  changes_.clear();
  parts_.worker.run(
      [parts = &parts_, changes] {
        Result<void> written = write_image(parts->image, parts->log_disks, *changes);
        // The device begins now, so that little is left for the flush.
        if (written && !changes->empty()) {
          parts->image.start_writeback(to_bytes(
              BlockRange::between(changes->front().range.first, changes->back().range.end())));
        }
        return written;
      },
      [this](Result<void> written) {
        if (!written) return finish(written.error());
        unflushed_ = true;
        next_chunk();
      });
}

// Ends a portion; the last one ends above everything.
void ImageApplier::flush(Lbn end) {
  const auto flushed = [this, end](Result<void> result) {
    if (!result) return finish(std::move(result));
    unflushed_ = false;
    flushed_(end);
    if (end == Lbn{UINT64_MAX}) return finish({});
    portion_left_ = portion_.value;
    next_chunk();
  };
  if (!unflushed_) return flushed({});
  parts_.worker.run([image = &parts_.image] { return image->flush(); }, flushed);
}

}  // namespace mariner::volume
