#include "server/volume/image_applier.h"

#include <algorithm>
#include <utility>

#include "proto/check.h"

namespace mariner::volume {

using index::LocatedRun;

ImageApplier::~ImageApplier() { CHECK_MSG(!running(), "an applier is destroyed while it runs"); }

void ImageApplier::start(std::shared_ptr<const PendingTable> table, Done done) {
  CHECK(!running());
  table_ = std::move(table);
  done_ = std::move(done);
  next_ = Lbn{0};
  stopping_ = false;
  next_chunk();
}

void ImageApplier::finish(Result<void> result) {
  table_.reset();
  changes_.clear();
  to_capture_.clear();
  std::exchange(done_, nullptr)(std::move(result));
}

void ImageApplier::next_chunk() {
  if (stopping_) {
    return finish(Error{ErrorCode::kAborted, "applying to the image was stopped"});
  }
  changes_.clear();
  to_capture_.clear();
  std::uint64_t blocks = 0;
  for (std::size_t runs = 0; runs < kChunkRuns && blocks < kChunkBlocks; ++runs) {
    PendingTable::Run run = table_->next_run(next_);
    if (run.range.empty()) break;
    // A run of zeros costs nothing whatever its length; all else counts.
    if (run.content.kind != PendingContent::Kind::kZero) {
      run.range.count.value = std::min(run.range.count.value, kChunkBlocks - blocks);
      blocks += run.range.count.value;
    }
    next_ = run.range.end();
    add_run(run);
  }
  if (changes_.empty() && table_->next_run(next_).range.empty()) return flush();
  capture_next();
}

std::vector<BlockRange> ImageApplier::uncaptured(BlockRange range) const {
  std::vector<BlockRange> out;
  if (parts_.base.empty()) return out;
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
      [parts = &parts_, changes] { return write_image(parts->image, parts->log_disks, *changes); },
      [this](Result<void> written) {
        if (!written) return finish(written.error());
        next_chunk();
      });
}

void ImageApplier::flush() {
  parts_.worker.run([image = &parts_.image] { return image->flush(); },
                    [this](Result<void> flushed) { finish(std::move(flushed)); });
}

}  // namespace mariner::volume
