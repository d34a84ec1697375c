// Applies a frozen table of pending writes to the image, in address order or in one that is given,
// in the background.
//
// The history is asked on the owner's thread, for a chunk at a time; writing and flushing the image
// happen on the worker. While one chunk is written, or a portion flushed, the next ones are got out
// of the past: the disks that they are read from and written to are both busy, and neither waits
// while what comes next is looked up, or what was written is flushed. Before a block that
// only the image holds (its base: base_map.h) is overwritten, its old contents are durable in the
// log and known as a before-image (design.md invariant 5); where such a block merely becomes zero,
// the image keeps it and readers ask the history, if they will still know to after a crash.
//
// Time passes between the history's answers and what is done with them. They hold all the same:
// - what a run of the table held at its moment is kept until this has applied it (history.h), and
//   bytes that the log has moved meanwhile are an error;
// - that only the image holds a block stays true, because nobody else changes the image while this
//   runs (Storage punches nothing then), and a before-image too many does no harm;
// - that it is not the only one stays true as well: a block becomes base when the log gives up its
//   newest version because the image holds that. What is applied here was logged before it was
//   committed, and so before the question; the newest version is one that the image lacks.
//
// The image is flushed after each portion, so that what waits can leave the table step by step and
// no flush is long. A portion that fails leaves the table as it is, to be applied again; nothing
// that was looked up is kept for that.
//
// One run at a time. Owner's thread only.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "server/volume/base_map.h"
#include "server/volume/history.h"
#include "server/volume/image_writer.h"
#include "server/volume/pending_table.h"
#include "server/volume/worker.h"

namespace mariner::volume {

class ImageApplier {
 public:
  struct Parts {  // all outlive the applier
    logging::Disk& image;
    History& history;
    Worker& worker;
    // At least the blocks whose base the history has in the image, whenever a write is committed
    // that was logged after that: those are asked about. Null: only the history knows, and is asked
    // about everything; nothing is left in the image under zeros then.
    BaseMap* base;
  };

  explicit ImageApplier(Parts parts) : parts_(parts) {}
  ~ImageApplier();  // not running

  struct Flushed {
    // These parts of the table. Without an order it is one, from the beginning on, and the last
    // time, before `done`, it ends above everything.
    std::span<const BlockRange> ranges;
    BlockCount written;  // zeros count as one block, whatever their length
  };
  struct Job {
    // Must not change meanwhile, but that what was flushed may leave it.
    std::shared_ptr<const PendingTable> table;
    // What of the table is applied, one after the other; they do not overlap, outlive the run, and
    // the table need not have all of them. Empty: all of it in address order.
    std::span<const BlockRange> order{};
    // The page cache keeps nothing of what is written: for much that nobody is known to read soon.
    bool past_cache = false;
    // A portion is durable in the image. `done` waits until whoever hears of it has called `heard`,
    // in the same turn or later.
    UniqueFunction<void(const Flushed&, UniqueFunction<void()> heard)> flushed;
    // Asked after each but the last of that. False: the run ends here, with success. Asked before,
    // too: false: nothing is got ahead. Null: it never ends early.
    UniqueFunction<bool()> goes_on{};
    // Asked before `bytes` come out of the past. False: the run rests until resume(). Null: it
    // never does.
    UniqueFunction<bool(std::uint64_t bytes)> may_fetch{};
    // The image's own disk has spoilt the run: it could not be read, written or flushed. Before
    // `done`, which has the error, too, or one of before.
    UniqueFunction<void(const Error&)> image_failed{};
    // With success when all that was to be is durable in the image. After an error, start
    // again with what is left in the table.
    Done done;
  };
  // Applies a table.
  void start(Job job);
  // About so many blocks go to the image between two flushes, from the next portion on.
  void set_portion(BlockCount portion);
  // How much the device has of it at a time, from the next chunk on; few at first.
  void set_begin(Begin begin) { begin_ = begin; }

  // A run that rests goes on.
  void resume();
  // Ends the run at the next step with kAborted; one that rests, when it is resumed.
  void stop() { stopping_ = true; }
  [[nodiscard]] bool running() const { return table_ != nullptr; }

 private:
  static constexpr std::uint64_t kChunkBlocks = History::kBytesBlocksMax;
  // Who walks a table of what memory holds keeps hosts waiting for no longer than it takes to get
  // so many runs together: few where they notice, because they wait for one write before they send
  // the next, and at most kChunkRuns. What has to be got out of the past is asked for many at a
  // time.
  static constexpr std::size_t kChunkRunsMin = 32;  // and as many for each write that comes with it
  static constexpr std::size_t kChunkRuns = 256;
  static constexpr std::size_t kOrderedChunkRuns = 1024;
  // Beside the one that is written. Each is 8 MiB of what came out of the past.
  static constexpr std::size_t kChunksAheadMax = 3;
  static constexpr std::size_t kQuestionsMax = 2;  // at a time: one is read, one is looked up
  static constexpr std::size_t kCapturesAtOnce = 256;
  // Of a run of zeros that may have its base in the image: the answer may be as long.
  static constexpr std::uint64_t kZeroBlocksMax = 65536;  // 256 MiB

  class ChunkBuilder;
  struct Capture;

  // A run of the table with what the base map says of it.
  struct Run {
    PendingTable::Run pending;
    bool beside_base = false;  // its base may be in the image
    bool base_stored = false;  // and that is known after a crash, too
  };
  // What goes to the image in one piece.
  struct Chunk {
    std::vector<Run> runs;  // in address order
    // Of each run, in order: what it held at its moment, if it is of the past, and what its base
    // is, if that may be in the image.
    std::vector<History::Lookup> lookups;
    std::vector<PastRun> found;  // the answers
    std::uint64_t blocks = 0;
    std::uint64_t past_blocks = 0;  // of them, those that come out of the past
    bool answered = true;           // nothing is to be asked any more
    bool ends_portion = false;
    bool is_last = false;
    Lbn end;  // without an order: behind all of it
  };

  void go_on();
  [[nodiscard]] bool may_begin_next();
  [[nodiscard]] bool may_apply() const;
  void begin_next();
  void was_all();
  void ask();
  [[nodiscard]] std::optional<PendingTable::Run> next_run();
  [[nodiscard]] Chunk gather();
  [[nodiscard]] std::size_t chunk_runs() const;
  void add_lookups(Chunk& chunk) const;
  [[nodiscard]] bool beside_base(BlockRange range) const;
  void apply(Chunk chunk);
  [[nodiscard]] std::shared_ptr<Capture> next_capture();
  void capture_next();
  void log_before_images(const std::shared_ptr<Capture>& capture);
  void write_chunk();
  void was_overwritten(const std::vector<ImageChange>& changes);
  void flush();
  void flushed();
  void break_off(const Error& error);
  void break_off_for_image(const Error& error);
  void fail(const Error& error);
  void finish();

  const Parts parts_;
  std::shared_ptr<const PendingTable> table_;  // null: not running
  std::span<const BlockRange> order_;          // empty: there is none
  bool past_cache_ = false;
  Begin begin_ = Begin::kFew;
  UniqueFunction<void(const Flushed&, UniqueFunction<void()>)> flushed_;
  UniqueFunction<bool()> goes_on_;
  UniqueFunction<bool(std::uint64_t)> may_fetch_;
  UniqueFunction<void(const Error&)> image_failed_;
  Done done_;
  BlockCount portion_{kChunkBlocks};
  bool stopping_ = false;
  bool ending_ = false;  // all is done that was to be
  Result<void> result_;
  bool going_on_ = false;  // in go_on()

  // Where the table goes on, of the part of the order that is at hand.
  std::size_t ordered_ = 0;
  Lbn next_;
  std::uint64_t portion_left_ = 0;  // blocks to be gathered until a flush

  std::deque<Chunk> ahead_;  // to be applied next, each when it is answered
  std::size_t looking_ = 0;  // so many of them are being asked about
  bool resting_ = false;     // the last one is, when it may be

  bool writing_ = false;  // a chunk is on its way to the image, or a portion is flushed:
  Chunk chunk_;
  std::vector<ImageChange> changes_;
  std::vector<BlockRange> to_capture_;
  std::size_t next_to_capture_ = 0;
  std::vector<BlockRange> portion_ranges_;
  BlockCount portion_written_;
  std::size_t not_heard_ = 0;  // portions
};

}  // namespace mariner::volume
