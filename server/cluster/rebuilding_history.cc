#include "server/cluster/rebuilding_history.h"

#include <algorithm>
#include <utility>

#include "server/cluster/base_capture.h"
#include "server/cluster/both_answers.h"
#include "server/volume/block_set.h"

namespace mariner::cluster {

using volume::PastRun;

namespace {

Error no_other_image() {
  return {ErrorCode::kUnavailable,
          "the log has given up the beginning of the volume, and no other node has an image of it: "
          "this one cannot be built anew"};
}

Error not_known_yet() {
  return {ErrorCode::kUnavailable,
          "an earlier version may have built this node's image: what it holds of the beginning of "
          "the volume is being looked at"};
}

// Each run of an answer with the lookup that it answers.
template <typename Runs, typename Visitor>
void visit_answers(const std::vector<volume::History::Lookup>& lookups, Runs& runs,
                   Visitor visitor) {
  auto lookup = lookups.begin();
  for (auto& run : runs) {
    const bool last = run.range.end() == lookup->range.end();
    visitor(*lookup, run);
    if (last) ++lookup;
  }
}

// Of blocks that are zeros the base is to be captured, if it is something else.
bool is_to_be_built(const PastRun& then, const PastRun& base) {
  return then.source != PastRun::Source::kZero || base.source == PastRun::Source::kBase;
}

// Whether somebody acts on what only this image may hold.
bool needs_base(const std::vector<volume::History::Lookup>& lookups,
                const std::vector<PastRun>& runs) {
  bool needs = false;
  visit_answers(lookups, runs, [&](const volume::History::Lookup& asked, const PastRun& run) {
    const bool acts = asked.with_bytes || asked.at.value == 0;
    needs = needs || (acts && run.source == PastRun::Source::kBase);
  });
  return needs;
}

}  // namespace

// A search for what is stored.
struct RebuildingHistory::Scan {
  Lbn next;
  SequenceNumber at;
  Portion portion;
  volume::Done done;
  bool scanning = false;
  bool again = false;
};

// An answer whose base comes from elsewhere.
struct RebuildingHistory::Fetch {
  Located located;
  LocateDone done;
  std::vector<std::pair<std::size_t, SequenceNumber>> to_fetch;  // runs, and as of when
  Result<void> result;
  std::size_t waiting = 1;

  void finished(const Result<void>& r) {
    if (!r && result) result = r;
    if (--waiting > 0) return;
    if (!result) return done(result.error());
    done(std::move(located));
  }
};

RebuildingHistory::RebuildingHistory(volume::History& below, volume::Base* other, BlockCount blocks,
                                     Holds holds)
    : below_(below),
      other_(other),
      reader_(other == nullptr ? nullptr : std::make_unique<volume::HistoryReader>(below, *other)),
      blocks_(blocks),
      holds_(std::move(holds)) {}

// All of the answer at once, while it is built: what is fetched of a base must be known when that
// is asked for, too.
void RebuildingHistory::locate(std::vector<Lookup> lookups, LocateDone done) {
  const HeldBase held = holds_();
  if (held == HeldBase::kAll) return below_.locate(std::move(lookups), std::move(done));
  if (held == HeldBase::kUnknown) {
    return below_.locate(lookups, [lookups, done = std::move(done)](Result<Located> found) mutable {
      if (found && needs_base(lookups, found->runs)) return done(not_known_yet());
      done(std::move(found));
    });
  }
  locate_all(below_, lookups,
             [this, lookups, done = std::move(done)](Result<Located> found) mutable {
               if (!found) return done(found.error());
               const auto whole = std::make_shared<Fetch>();
               whole->done = std::move(done);
               take(lookups, *std::move(found), *whole);
               for (const auto& [run, at] : std::exchange(whole->to_fetch, {}))
                 fetch(whole, run, at);
               whole->finished({});
             });
}

// Who asks for the base of blocks is about to write to them. If that is the base, because it is
// fetched at the same time, nothing is to be captured.
void RebuildingHistory::take(const std::vector<Lookup>& lookups, Located found, Fetch& whole) {
  using Source = PastRun::Source;
  whole.located.newest = found.newest;
  std::vector<PastRun>& out = whole.located.runs;
  volume::BlockSet fetched;
  visit_answers(lookups, found.runs, [&](const Lookup& asked, const PastRun& run) {
    if (asked.with_bytes && run.source == Source::kBase) fetched.add(run.range);
  });
  visit_answers(lookups, found.runs, [&](const Lookup& asked, PastRun& run) {
    if (run.source == Source::kBase && asked.with_bytes) {
      whole.to_fetch.emplace_back(out.size(), asked.at);
    } else if (run.source == Source::kBase && asked.at.value == 0) {
      return fetched.visit(run.range, [&](BlockRange part, bool is_written) {
        out.push_back({part, is_written ? Source::kZero : Source::kBase, false, run.sequence});
      });
    }
    out.push_back(std::move(run));
  });
}

void RebuildingHistory::fetch(const std::shared_ptr<Fetch>& whole, std::size_t run,
                              SequenceNumber at) {
  ++whole->waiting;
  if (reader_ == nullptr) return whole->finished(no_other_image());
  const BlockRange range = whole->located.runs[run].range;
  Payload bytes = Payload::allocate(range.count.bytes());
  reader_->read(range, at, bytes.bytes(), [whole, run, bytes](const Result<void>& read) {
    if (read) {
      PastRun& fetched = whole->located.runs[run];
      fetched.source = PastRun::Source::kLog;
      fetched.bytes = PayloadSlice{bytes, 0, bytes.size()};
    }
    whole->finished(read);
  });
}

void RebuildingHistory::read(BlockRange range, SequenceNumber at, std::span<std::byte> to,
                             ReadDone done) {
  const HeldBase held = holds_();
  if (held == HeldBase::kAll) return below_.read(range, at, to, std::move(done));
  if (held == HeldBase::kNone && reader_ != nullptr) {
    return reader_->read(range, at, to, [done = std::move(done)](const Result<void>& read) mutable {
      if (!read) return done(read.error());
      done(std::vector<BlockRange>{});
    });
  }
  below_.read(range, at, to,
              [held, done = std::move(done)](Result<std::vector<BlockRange>> in_base) mutable {
                const bool needs = in_base && !in_base->empty();
                if (!needs) return done(std::move(in_base));
                done(held == HeldBase::kNone ? no_other_image() : not_known_yet());
              });
}

void RebuildingHistory::changed(SequenceNumber from, SequenceNumber to, Portion portion,
                                volume::Done done) {
  if (holds_() != HeldBase::kNone || from.value != 0) {
    return below_.changed(from, to, std::move(portion), std::move(done));
  }
  scan(std::make_shared<Scan>(Scan{Lbn{0}, to, std::move(portion), std::move(done)}));
}

// Answers that come at once must not pile up on the stack: a large volume has many parts.
void RebuildingHistory::scan(const std::shared_ptr<Scan>& scanned) {
  if (std::exchange(scanned->scanning, true)) {
    scanned->again = true;
    return;
  }
  do {
    scanned->again = false;
    const BlockRange range{scanned->next,
                           {std::min(blocks_.value - scanned->next.value, kScanBlocks)}};
    if (range.empty()) return scanned->done({});
    scanned->next = range.end();
    locate_all(below_, ask_both(range, scanned->at),
               [this, scanned, range](const Result<Located>& found) {
                 if (!found) return scanned->done(found.error());
                 const auto some = select_both(found->runs, range, is_to_be_built);
                 if (!some.empty()) scanned->portion(some);
                 scan(scanned);
               });
  } while (scanned->again);
  scanned->scanning = false;
}

// What this image holds (`bytes`) is nobody's base.
void RebuildingHistory::log_before_image(BlockRange range, PayloadSlice bytes, volume::Done done) {
  if (holds_() != HeldBase::kNone) {
    return below_.log_before_image(range, std::move(bytes), std::move(done));
  }
  if (other_ == nullptr) return done(no_other_image());
  capture_base(below_, *other_, range, std::move(done));
}

}  // namespace mariner::cluster
