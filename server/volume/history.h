// The past of one volume, as its storage and its target see it: questions to whoever has the log
// and the indexes, in this process or on another machine.
//
// Each question could be a message. It names its moment, and its answer is bounded or comes in
// portions. Time passes before a question is looked into and again before its answer arrives, and
// questions overtake each other. So an answer tells what was so at some moment between the call and
// `done`, never what is so now; who acts on it must know by itself what may have changed since.
//
// What can be relied on: the contents of a settled moment never change while something keeps it: a
// hold, or a write that is not durable in every image yet (design.md, invariant 5). Where they
// stand does: they leave the base for the log before the storage overwrites them in its image, and
// move within the log when a track is given up. What is given up because the image holds it becomes
// base; by then the storage has reported it durable.
//
// kUnavailable: not now, ask again later. After an error what was asked for may have been done or
// not, and is not done later. Owner's thread only; `done` is called exactly once, maybe before the
// call returns, with everything passed to it valid until then.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "index/version_index.h"
#include "proto/error.h"
#include "proto/payload.h"
#include "proto/unique_function.h"
#include "proto/units.h"
#include "server/volume/history_summary.h"
#include "server/volume/layer.h"

namespace mariner::volume {

// What a run of blocks held at a moment.
struct PastRun {
  enum class Source : std::uint8_t {
    kZero,  // zeros: written as such, or nothing was ever written
    kLog,
    kBase,  // only the base holds it: the image, or what a writable view stands on
  };
  BlockRange range;
  Source source = Source::kZero;
  bool repeated = false;    // kLog: one block for all of the range
  SequenceNumber sequence;  // of the write; 0: the base held it, now or once (a before-image)
  // kLog, if they were asked for: the run's blocks, one block if it is repeated; verified.
  PayloadSlice bytes{};
};

class History {
 public:
  // A question of locate() asks for the bytes of so many blocks at most.
  static constexpr std::uint64_t kBytesBlocksMax = 2048;  // 8 MiB
  // A before-image has so many.
  static constexpr std::uint64_t kBeforeImageBlocksMax = 256;  // 1 MiB

  struct Lookup {
    BlockRange range;  // not empty
    // 0: the base, as who is about to overwrite it asks. One that no moment shows any more may be
    // answered with what came after it.
    SequenceNumber at;
    bool with_bytes = false;
  };
  struct Located {
    // Of one lookup after the other, each in order and without gaps, and of one moment.
    std::vector<PastRun> runs;
    // The newest write that the history had at the last of these moments.
    SequenceNumber newest;
  };
  using LocateDone = UniqueFunction<void(Result<Located>)>;
  using ReadDone = UniqueFunction<void(Result<std::vector<BlockRange>>)>;
  using Portion = UniqueFunction<void(std::span<const BlockRange>)>;
  // Keeps a moment for as long as it exists.
  using Hold = std::shared_ptr<const void>;
  using HoldDone = UniqueFunction<void(Result<Hold>)>;

  // What the history says of a moment that was asked for.
  struct Moment {
    index::IndexMoment at;         // the last write at or before it; 0: there was none
    index::IndexMoment oldest;     // the first that can be opened; 0: nothing was given up yet
    index::IndexMoment newest;     // that the history has
    SequenceNumber last_rollback;  // 0: there was none
    bool is_kept = false;          // it is before `oldest`, and can be opened all the same
  };
  using MomentDone = UniqueFunction<void(Result<Moment>)>;
  using SummaryDone = UniqueFunction<void(Result<HistorySummary>)>;

  // A block, and the moment behind which it is asked about.
  struct Since {
    Lbn block;
    SequenceNumber after;
  };
  // What changed a block: a write, or a rollback that gave it other contents.
  struct Version {
    Lbn block;
    index::IndexMoment at;
  };
  struct Versions {
    std::vector<Version> list;  // of one block after the other, as they were asked for; by number
    bool more = false;          // what is behind the last one is another question
  };
  using VersionsDone = UniqueFunction<void(Result<Versions>)>;
  static constexpr std::size_t kSinceMax = 2048;      // blocks of one question
  static constexpr std::size_t kVersionsMax = 32768;  // in one answer

  virtual ~History() = default;

  // What each lookup's blocks held. The answer may end early, behind one block at least, so that it
  // is not too long: the rest is another question (locate_all()).
  virtual void locate(std::vector<Lookup> lookups, LocateDone done) = 0;

  // Fills `to` (range.count blocks, 4 KiB-aligned) with the blocks as of `at`, but for those that
  // only the base holds: these are the answer, in order. After an error `to` holds anything.
  virtual void read(BlockRange range, SequenceNumber at, std::span<std::byte> to,
                    ReadDone done) = 0;

  // The extents that may differ between the moments `from` and `to`: they come in portions, in any
  // order and overlapping, then `done`. `from` may be older than what can be opened, for an image
  // that is behind: kOutsideWindow only when the log has given up writes behind it.
  virtual void changed(SequenceNumber from, SequenceNumber to, Portion portion, Done done) = 0;

  // What changed these blocks, which ascend, up to `to`. kOutsideWindow when the history begins
  // after one of the moments.
  virtual void versions(std::vector<Since> blocks, SequenceNumber to, VersionsDone done) = 0;

  // Keeps the moment `at`. kOutsideWindow when the history begins after it.
  virtual void hold(SequenceNumber at, HoldDone done) = 0;

  // Makes `bytes`, what the base holds for `range`, durable and known as its before-image. Where
  // there is one already, that stays.
  virtual void log_before_image(BlockRange range, PayloadSlice bytes, Done done) = 0;

  // The moment of a time or of a number, as the history has it by now: whether more can come before
  // it, only who stamps writes can tell. It may be before `oldest`.
  virtual void moment(std::variant<VersionTime, SequenceNumber> asked, MomentDone done) = 0;

  // How many of the last writes were made durable together, about: few where hosts wait for one
  // before they send the next, and notice what else their writes wait for. Very many where that is
  // not known.
  [[nodiscard]] virtual double writes_at_once() const {
    return std::numeric_limits<double>::infinity();
  }

  // What happened in a part of it. One on another machine lists fewer writes than were asked for,
  // and says so.
  virtual void summarize(const HistorySummary::Question& question, SummaryDone done) = 0;
};

// Asks until all is answered. The parts of the answer may be of several moments; `newest` is of the
// last one.
void locate_all(History& history, std::vector<History::Lookup> lookups, History::LocateDone done);

// The parts of `range` that are stored, as of `at`: in order, without gaps; neighbours differ.
void allocation_at(History& history, ByteRange range, SequenceNumber at, AllocationDone done);

}  // namespace mariner::volume
