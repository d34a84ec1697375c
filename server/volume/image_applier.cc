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
  order_ = job.order;
  past_cache_ = job.past_cache;
  flushed_ = std::move(job.flushed);
  goes_on_ = std::move(job.goes_on);
  may_fetch_ = std::move(job.may_fetch);
  image_failed_ = std::move(job.image_failed);
  done_ = std::move(job.done);
  stopping_ = false;
  ending_ = false;
  result_ = {};
  ordered_ = 0;
  next_ = order_.empty() ? Lbn{0} : order_.front().first;
  portion_left_ = portion_.value;
  go_on();
}

void ImageApplier::set_portion(BlockCount portion) {
  CHECK(portion.value > 0);
  portion_ = portion;
}

void ImageApplier::fail(const Error& error) {
  if (result_) result_ = error;
}

void ImageApplier::finish() {
  table_.reset();
  flushed_ = nullptr;
  goes_on_ = nullptr;
  may_fetch_ = nullptr;
  image_failed_ = nullptr;
  ahead_.clear();
  resting_ = false;
  chunk_ = {};
  changes_.clear();
  to_capture_.clear();
  portion_ranges_.clear();
  portion_written_ = {};
  std::exchange(done_, nullptr)(std::move(result_));
}

// Begins what can be begun, and ends the run when nothing is under way any more and nothing is to
// be begun. Of chunks that need no question one is got ahead, and the next when that is written:
// whoever writes waits meanwhile.
void ImageApplier::go_on() {
  if (std::exchange(going_on_, true)) return;
  for (bool again = true; again;) {
    again = false;
    if (!result_ || ending_) break;
    if (stopping_) {
      if (looking_ == 0 && !resting_) ahead_.clear();
      if (!writing_ && ahead_.empty()) fail({ErrorCode::kAborted, kStopped});
    } else if (may_apply()) {
      Chunk next = std::move(ahead_.front());
      ahead_.pop_front();
      apply(std::move(next));
      again = true;
    } else if (may_begin_next()) {
      const bool ahead = writing_;
      begin_next();
      again = !ahead || ahead_.empty() || !ahead_.back().answered;
    }
  }
  going_on_ = false;
  if (!writing_ && looking_ == 0 && not_heard_ == 0 && (!result_ || ending_)) finish();
}

// What comes behind a flush only if the run is going to go on.
bool ImageApplier::may_begin_next() {
  if (resting_ || looking_ == kQuestionsMax || ahead_.size() == kChunksAheadMax) return false;
  if (!writing_ && ahead_.empty()) return true;
  if (!writing_ && looking_ > 0) return false;  // a run begins, and goes on, with one question
  if ((ahead_.empty() ? chunk_ : ahead_.back()).is_last) return false;
  const bool flushes = (writing_ && chunk_.ends_portion) ||
                       std::ranges::any_of(ahead_, [](const Chunk& c) { return c.ends_portion; });
  return !flushes || !goes_on_ || goes_on_();
}

bool ImageApplier::may_apply() const {
  return !stopping_ && !writing_ && !ahead_.empty() && ahead_.front().answered;
}

void ImageApplier::begin_next() {
  Chunk next = gather();
  if (next.runs.empty()) return was_all();
  ahead_.push_back(std::move(next));
  // What is in memory, and has no base in the image, needs no question.
  if (ahead_.back().lookups.empty()) return;
  ahead_.back().answered = false;
  const std::uint64_t past = BlockCount{ahead_.back().past_blocks}.bytes();
  resting_ = may_fetch_ && past > 0 && !may_fetch_(past);
  if (!resting_) ask();
}

// Of the order, nothing more is in the table.
void ImageApplier::was_all() {
  if (!writing_ && ahead_.empty()) {
    ending_ = true;
    return;
  }
  Chunk& last = ahead_.empty() ? chunk_ : ahead_.back();
  last.is_last = last.ends_portion = true;
  last.end = Lbn{UINT64_MAX};
}

void ImageApplier::resume() {
  if (!std::exchange(resting_, false)) return;
  if (stopping_) {
    ahead_.pop_back();
  } else {
    ask();
  }
  go_on();
}

// About the last one. It stays where it is until it is answered.
void ImageApplier::ask() {
  ++looking_;
  Chunk* const chunk = &ahead_.back();
  locate_all(parts_.history, std::exchange(chunk->lookups, {}),
             [this, chunk](Result<History::Located> found) {
               --looking_;
               chunk->answered = true;
               if (found) {
                 chunk->found = std::move(found->runs);
               } else if (!ending_) {
                 fail(found.error());
               }
               go_on();
             });
}

bool ImageApplier::beside_base(BlockRange range) const {
  if (parts_.base == nullptr) return true;
  return !parts_.base->empty() && parts_.base->may_hold_base(range);
}

// What the table has next, up to where that part of the order ends; nothing: that was all.
std::optional<PendingTable::Run> ImageApplier::next_run() {
  for (;;) {
    PendingTable::Run run = table_->next_run(next_);
    if (order_.empty()) return run.range.empty() ? std::nullopt : std::optional(std::move(run));
    if (ordered_ == order_.size()) return std::nullopt;
    const BlockRange part = run.range.intersect(order_[ordered_]);
    if (!part.empty()) return PendingTable::Run{part, std::move(run.content)};
    if (++ordered_ < order_.size()) next_ = order_[ordered_].first;
  }
}

std::size_t ImageApplier::chunk_runs() const {
  const double many = kChunkRunsMin * parts_.history.writes_at_once();
  return static_cast<std::size_t>(std::clamp(many, double{kChunkRunsMin}, double{kChunkRuns}));
}

ImageApplier::Chunk ImageApplier::gather() {
  Chunk chunk;
  const std::uint64_t blocks_max = std::min(kChunkBlocks, portion_left_);
  const std::size_t runs_max = order_.empty() ? chunk_runs() : kOrderedChunkRuns;
  while (chunk.runs.size() < runs_max && chunk.blocks < blocks_max) {
    std::optional<PendingTable::Run> run = next_run();
    if (!run) break;
    std::uint64_t& count = run->range.count.value;
    const bool zeros = run->content.kind == PendingContent::Kind::kZero;
    if (!zeros) count = std::min(count, blocks_max - chunk.blocks);
    const bool base = beside_base(run->range);
    if (zeros && base) count = std::min(count, kZeroBlocksMax);
    // A run of zeros costs one block whatever its length.
    chunk.blocks += zeros ? 1 : count;
    next_ = run->range.end();
    const bool stored = parts_.base != nullptr && parts_.base->is_stored(run->range);
    chunk.runs.push_back({*std::move(run), base, stored});
  }
  portion_left_ -= chunk.blocks;
  chunk.is_last = !next_run();
  chunk.ends_portion = chunk.is_last || portion_left_ == 0;
  if (chunk.ends_portion) portion_left_ = portion_.value;
  chunk.end = chunk.is_last ? Lbn{UINT64_MAX} : next_;
  if (!order_.empty()) {
    std::ranges::sort(chunk.runs, {}, [](const Run& run) { return run.pending.range.first; });
  }
  add_lookups(chunk);
  return chunk;
}

void ImageApplier::add_lookups(Chunk& chunk) const {
  for (const Run& run : chunk.runs) {
    const BlockRange range = run.pending.range;
    if (run.pending.content.kind == PendingContent::Kind::kHistory) {
      chunk.lookups.push_back({range, run.pending.content.at, true});
      chunk.past_blocks += range.count.value;
    }
    if (run.beside_base) chunk.lookups.push_back({range, SequenceNumber{0}});
  }
}

void ImageApplier::apply(Chunk chunk) {
  writing_ = true;
  chunk_ = std::move(chunk);
  ChunkBuilder builder(chunk_.found);
  for (Run& run : chunk_.runs) {
    if (!order_.empty()) portion_ranges_.push_back(run.pending.range);
    builder.add(std::move(run));
  }
  changes_ = std::move(builder.changes);
  to_capture_ = std::move(builder.to_capture);
  next_to_capture_ = 0;
  chunk_.runs.clear();
  chunk_.found.clear();
  capture_next();
}

// The chunk, or the portion, did not get into the image.
void ImageApplier::break_off(const Error& error) {
  writing_ = false;
  fail(error);
  go_on();
}

void ImageApplier::break_off_for_image(const Error& error) {
  if (image_failed_) image_failed_(error);
  break_off(error);
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
        if (!read) return break_off_for_image(read.error());
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
                                      if (!capture->result)
                                        return break_off(capture->result.error());
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
  const bool notice = chunk_runs() < kChunkRuns;
  const Begin begin = begin_ == Begin::kFew && notice ? Begin::kFewAndYield : begin_;
  parts_.worker.run(
      [parts = &parts_, changes, past_cache = past_cache_, begin] {
        return past_cache ? write_image_past_cache(parts->image, *changes)
                          : write_image_and_begin(parts->image, *changes, begin);
      },
      [this, changes](const Result<void>& written) {
        if (written) was_overwritten(*changes);
        for (const ImageChange& change : *changes) change.payload.prefetch();
        changes->clear();  // memory is used again by the thread that it is freed on
        if (!written) return break_off_for_image(written.error());
        portion_written_ = portion_written_ + BlockCount{chunk_.blocks};
        if (chunk_.ends_portion && !stopping_) return flush();
        writing_ = false;
        go_on();
      });
}

void ImageApplier::was_overwritten(const std::vector<ImageChange>& changes) {
  if (parts_.base == nullptr || parts_.base->empty()) return;
  for (const ImageChange& change : changes) parts_.base->overwritten(change.range);
}

void ImageApplier::flush() {
  parts_.worker.run([image = &parts_.image] { return image->flush(); },
                    [this](const Result<void>& result) {
                      if (!result) return break_off_for_image(result.error());
                      flushed();
                    });
}

void ImageApplier::flushed() {
  if (order_.empty()) portion_ranges_.push_back(BlockRange::between(Lbn{0}, chunk_.end));
  const std::vector<BlockRange> ranges = std::exchange(portion_ranges_, {});
  ++not_heard_;
  flushed_({ranges, std::exchange(portion_written_, {})}, [this] {
    --not_heard_;
    if (!writing_) go_on();
  });
  ending_ = chunk_.is_last || (goes_on_ && !goes_on_());
  writing_ = false;
  go_on();
}

}  // namespace mariner::volume
