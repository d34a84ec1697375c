#include "server/volume/image_applier.h"

#include <algorithm>
#include <span>
#include <utility>

#include "proto/check.h"

namespace mariner::volume {
namespace {

constexpr const char* kStopped = "applying to the image was stopped";

}  // namespace

// Turns runs of the table, with what the history answered, into changes of the image.
class ImageApplier::ChunkBuilder {
 public:
  explicit ChunkBuilder(const std::vector<PastRun>& found) : next_(found.begin()) {}

  void add(Run&& of) {
    PendingTable::Run& run = of.pending;
    keep_ = of.base_stored;
    const std::span<const PastRun> past = run.content.kind == PendingContent::Kind::kHistory
                                              ? take(run.range)
                                              : std::span<const PastRun>{};
    only_here_.clear();
    if (of.beside_base) {
      for (const PastRun& base : take(run.range)) {
        if (base.source == PastRun::Source::kBase) only_here_.push_back(base.range);
      }
    }
    switch (run.content.kind) {
      case PendingContent::Kind::kZero: return add_zero(run.range);
      case PendingContent::Kind::kMemory:
        return overwrite(
            {run.range, std::move(run.content.payload), run.content.offset, run.content.repeated});
      case PendingContent::Kind::kHistory: break;
    }
    for (const PastRun& part : past) {
      switch (part.source) {
        case PastRun::Source::kZero: add_zero(part.range); break;
        case PastRun::Source::kBase: break;  // the image holds it still
        case PastRun::Source::kLog:
          CHECK(part.bytes.length > 0);
          overwrite({part.range, part.bytes.payload, part.bytes.offset, part.repeated});
          break;
      }
    }
  }

  std::vector<ImageChange> changes;
  std::vector<BlockRange> to_capture;

 private:
  // The answer to the lookup of `range`, which is the next one.
  std::span<const PastRun> take(BlockRange range) {
    const auto first = next_;
    for (Lbn at = range.first; at < range.end(); ++next_) {
      CHECK(next_->range.first == at && next_->range.end() <= range.end());
      at = next_->range.end();
    }
    return {first, next_};
  }

  // The parts of `range`, which lies in the run at hand, that only the image holds.
  template <typename Visit>
  void visit_only_here(BlockRange range, Visit visit) const {
    auto it = std::ranges::upper_bound(only_here_, range.first, {}, &BlockRange::first);
    if (it != only_here_.begin()) --it;
    for (; it != only_here_.end() && it->first < range.end(); ++it) {
      const BlockRange part = it->intersect(range);
      if (!part.empty()) visit(part);
    }
  }

  // Punches a hole, but for blocks of which the image holds the only copy.
  void add_zero(BlockRange range) {
    if (!keep_) return overwrite({range});
    const auto punch = [&](BlockRange part) {
      if (!part.empty()) changes.push_back({part});
    };
    Lbn at = range.first;
    visit_only_here(range, [&](BlockRange kept) {
      punch(BlockRange::between(at, kept.first));
      at = kept.end();
    });
    punch(BlockRange::between(at, range.end()));
  }

  void overwrite(ImageChange change) {
    visit_only_here(change.range, [&](BlockRange part) { to_capture.push_back(part); });
    changes.push_back(std::move(change));
  }

  std::vector<PastRun>::const_iterator next_;
  std::vector<BlockRange> only_here_;  // of the run at hand
  bool keep_ = false;                  // ... may stay there
};

ImageApplier::~ImageApplier() { CHECK_MSG(!running(), "an applier is destroyed while it runs"); }

void ImageApplier::start(Job job) {
  CHECK(!running());
  CHECK(!job.table->empty());
  table_ = std::move(job.table);
  one_portion_ = job.one_portion;
  flushed_ = std::move(job.flushed);
  may_fetch_ = std::move(job.may_fetch);
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
  may_fetch_ = nullptr;
  changes_.clear();
  to_capture_.clear();
  std::exchange(done_, nullptr)(std::move(result));
}

void ImageApplier::next_chunk() {
  if (stopping_) return finish(Error{ErrorCode::kAborted, kStopped});
  if (portion_left_ == 0) return flush(next_);
  Chunk chunk = gather();
  if (chunk.runs.empty()) return flush(Lbn{UINT64_MAX});
  // What is in memory, and has no base in the image, needs no question.
  if (chunk.lookups.empty()) return take_chunk(std::move(chunk), {});
  if (may_fetch_ && chunk.past_blocks > 0 && !may_fetch_(BlockCount{chunk.past_blocks}.bytes())) {
    resting_ = std::move(chunk);
    return;
  }
  look_up(std::move(chunk));
}

void ImageApplier::resume() {
  if (resting_) look_up(*std::exchange(resting_, std::nullopt));
}

void ImageApplier::look_up(Chunk chunk) {
  if (stopping_) return finish(Error{ErrorCode::kAborted, kStopped});
  std::vector<History::Lookup> lookups = std::exchange(chunk.lookups, {});
  locate_all(parts_.history, std::move(lookups),
             [this, chunk = std::move(chunk)](const Result<History::Located>& found) mutable {
               if (!found) return finish(found.error());
               take_chunk(std::move(chunk), found->runs);
             });
}

bool ImageApplier::beside_base(BlockRange range) const {
  if (parts_.base == nullptr) return true;
  if (parts_.base->empty()) return false;
  bool any = false;
  parts_.base->visit(range, [&](BlockRange, bool in_image) { any |= in_image; });
  return any;
}

ImageApplier::Chunk ImageApplier::gather() const {
  Chunk chunk;
  chunk.next = next_;
  const std::uint64_t blocks_max = std::min(kChunkBlocks, portion_left_);
  while (chunk.runs.size() < kChunkRuns && chunk.blocks < blocks_max) {
    PendingTable::Run run = table_->next_run(chunk.next);
    if (run.range.empty()) break;
    std::uint64_t& count = run.range.count.value;
    const bool zeros = run.content.kind == PendingContent::Kind::kZero;
    if (!zeros) count = std::min(count, blocks_max - chunk.blocks);
    const bool base = beside_base(run.range);
    if (zeros && base) count = std::min(count, kZeroBlocksMax);
    // A run of zeros costs one block whatever its length.
    chunk.blocks += zeros ? 1 : count;
    chunk.next = run.range.end();
    if (run.content.kind == PendingContent::Kind::kHistory) {
      chunk.lookups.push_back({run.range, run.content.at, true});
      chunk.past_blocks += count;
    }
    if (base) chunk.lookups.push_back({run.range, SequenceNumber{0}});
    const bool stored = parts_.base != nullptr && parts_.base->is_stored(run.range);
    chunk.runs.push_back({std::move(run), base, stored});
  }
  return chunk;
}

void ImageApplier::take_chunk(Chunk chunk, const std::vector<PastRun>& found) {
  next_ = chunk.next;
  portion_left_ -= chunk.blocks;
  ChunkBuilder builder(found);
  for (Run& run : chunk.runs) builder.add(std::move(run));
  changes_ = std::move(builder.changes);
  to_capture_ = std::move(builder.to_capture);
  next_to_capture_ = 0;
  capture_next();
}

// Before-images of a chunk that are read, and then logged, together: they need no order.
struct ImageApplier::Capture {
  std::vector<BlockRange> ranges;
  Payload old;
  std::size_t waiting = 0;
  Result<void> result;
};

// The next ones that have not been logged, each as long as a record may be.
std::shared_ptr<ImageApplier::Capture> ImageApplier::next_capture() {
  auto capture = std::make_shared<Capture>();
  std::uint64_t blocks = 0;
  while (next_to_capture_ < to_capture_.size() && capture->ranges.size() < kCapturesAtOnce) {
    BlockRange& left = to_capture_[next_to_capture_];
    const BlockRange piece{left.first,
                           std::min(left.count, BlockCount{History::kBeforeImageBlocksMax})};
    if (blocks + piece.count.value > kChunkBlocks) break;
    blocks += piece.count.value;
    capture->ranges.push_back(piece);
    left = BlockRange::between(piece.end(), left.end());
    if (left.empty()) ++next_to_capture_;
  }
  if (blocks > 0) capture->old = Payload::allocate(BlockCount{blocks}.bytes());
  return capture;
}

// Logs the before-images of this chunk, then writes the chunk.
void ImageApplier::capture_next() {
  const std::shared_ptr<Capture> capture = next_capture();
  if (capture->ranges.empty()) return write_chunk();
  parts_.worker.run(
      [image = &parts_.image, capture]() -> Result<void> {
        std::span<std::byte> to = capture->old.bytes();
        for (const BlockRange& range : capture->ranges) {
          Result<void> read = image->read(range.first.byte_offset(), to.first(range.count.bytes()));
          if (!read) return read;
          to = to.subspan(range.count.bytes());
        }
        return {};
      },
      [this, capture](Result<void> read) {
        if (!read) return finish(std::move(read));
        log_before_images(capture);
      });
}

void ImageApplier::log_before_images(const std::shared_ptr<Capture>& capture) {
  capture->waiting = capture->ranges.size();
  std::size_t offset = 0;
  for (const BlockRange& range : capture->ranges) {
    const std::size_t length = range.count.bytes();
    parts_.history.log_before_image(range, {capture->old, offset, length},
                                    [this, capture](const Result<void>& logged) {
                                      if (!logged && capture->result) capture->result = logged;
                                      if (--capture->waiting > 0) return;
                                      if (!capture->result) return finish(capture->result);
                                      capture_next();
                                    });
    offset += length;
  }
}

// Also when nothing changes (the image holds it already): the worker's turn keeps a long row of
// such chunks from holding up the loop, or from recursing.
void ImageApplier::write_chunk() {
  auto changes = std::make_shared<std::vector<ImageChange>>(std::move(changes_));
  changes_.clear();
  parts_.worker.run(
      [parts = &parts_, changes] {
        Result<void> written = write_image(parts->image, *changes);
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
    if (end == Lbn{UINT64_MAX} || one_portion_) return finish({});
    portion_left_ = portion_.value;
    next_chunk();
  };
  if (!unflushed_) return flushed({});
  parts_.worker.run([image = &parts_.image] { return image->flush(); }, flushed);
}

}  // namespace mariner::volume
