#include "server/volume/image_applier.h"

#include <algorithm>
#include <utility>

#include "proto/check.h"

namespace mariner::volume {

using index::LocatedRun;

// Turns runs of the table into changes of the image, as one computation.
class ImageApplier::ChunkBuilder {
 public:
  ChunkBuilder(const Parts& parts, const index::VersionLookup& lookup)
      : parts_(parts), lookup_(lookup) {}

  void add(const PendingTable::Run& run) {
    switch (run.content.kind) {
      case PendingContent::Kind::kZero: return add_zero(run.range);
      case PendingContent::Kind::kMemory:
        return add_stored({run.range, run.content.payload, run.content.offset, run.content.repeated,
                           std::nullopt});
      case PendingContent::Kind::kHistory: break;
    }
    for (const LocatedRun& located : lookup_.locate(run.range, run.content.at)) {
      add_located(located);
    }
  }

  Chunk chunk;

 private:
  // The parts of `range` that only the image holds, by the index and the base map.
  [[nodiscard]] std::vector<BlockRange> uncaptured(BlockRange range) const {
    std::vector<BlockRange> out;
    if (parts_.base.empty()) return out;
    // The bits first: they cost less than the index, and most volumes have few of them set.
    bool any = false;
    parts_.base.visit(range, [&](BlockRange, bool in_image) { any |= in_image; });
    if (!any) return out;
    for (const LocatedRun& run : lookup_.locate(range, SequenceNumber{0})) {
      if (run.source != LocatedRun::Source::kBase) continue;
      parts_.base.visit(run.range, [&](BlockRange part, bool in_image) {
        if (in_image) out.push_back(part);
      });
    }
    return out;
  }

  void add_located(const LocatedRun& run) {
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
    add_stored({run.range, {}, 0, run.repeated, parts_.history.log_read_of(run, {})});
  }

  // Punches a hole, but for blocks of which the image holds the only copy.
  void add_zero(BlockRange range) {
    const auto punch = [&](BlockRange part) {
      if (!part.empty()) chunk.changes.push_back({part, {}, 0, false, {}});
    };
    Lbn at = range.first;
    for (const BlockRange& kept : uncaptured(range)) {
      punch(BlockRange::between(at, kept.first));
      at = kept.end();
    }
    punch(BlockRange::between(at, range.end()));
  }

  void add_stored(ImageChange change) {
    for (const BlockRange& only_here : uncaptured(change.range)) {
      chunk.to_capture.push_back(only_here);
    }
    chunk.changes.push_back(std::move(change));
  }

  const Parts& parts_;
  const index::VersionLookup& lookup_;
};

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
  auto chunk = std::make_shared<Chunk>();
  parts_.index.consult(
      [this, chunk](const index::VersionLookup& lookup) { *chunk = build_chunk(lookup); },
      [this, chunk](const Result<void>& looked) {
        if (!looked) return finish(looked.error());
        take_chunk(std::move(*chunk));
      });
}

ImageApplier::Chunk ImageApplier::build_chunk(const index::VersionLookup& lookup) const {
  ChunkBuilder builder(parts_, lookup);
  Chunk& chunk = builder.chunk;
  chunk.next = next_;
  const std::uint64_t blocks_max = std::min(kChunkBlocks, portion_left_);
  for (std::size_t runs = 0; runs < kChunkRuns && chunk.blocks < blocks_max; ++runs) {
    PendingTable::Run run = table_->next_run(chunk.next);
    chunk.more = !run.range.empty();
    if (!chunk.more) break;
    // A run of zeros costs one block whatever its length.
    if (run.content.kind == PendingContent::Kind::kZero) {
      ++chunk.blocks;
    } else {
      run.range.count.value = std::min(run.range.count.value, blocks_max - chunk.blocks);
      chunk.blocks += run.range.count.value;
    }
    chunk.next = run.range.end();
    builder.add(run);
  }
  return std::move(chunk);
}

void ImageApplier::take_chunk(Chunk chunk) {
  if (chunk.blocks == 0 && !chunk.more) return flush(Lbn{UINT64_MAX});
  next_ = chunk.next;
  portion_left_ -= chunk.blocks;
  changes_ = std::move(chunk.changes);
  to_capture_ = std::move(chunk.to_capture);
  capture_next();
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
