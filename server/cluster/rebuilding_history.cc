#include "server/cluster/rebuilding_history.h"

#include <algorithm>
#include <utility>

namespace mariner::cluster {

using volume::PastRun;

namespace {

Error no_other_image() {
  return {ErrorCode::kUnavailable,
          "the log has given up the beginning of the volume, and no other node has an image of it: "
          "this one cannot be built anew"};
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
                                     Building building)
    : below_(below),
      reader_(other == nullptr ? nullptr : std::make_unique<volume::HistoryReader>(below, *other)),
      blocks_(blocks),
      building_(std::move(building)) {}

void RebuildingHistory::locate(std::vector<Lookup> lookups, LocateDone done) {
  const bool building = building_();
  if (!building && base_elsewhere_.empty()) {
    return below_.locate(std::move(lookups), std::move(done));
  }
  below_.locate(lookups,
                [this, lookups, building, done = std::move(done)](Result<Located> found) mutable {
                  if (!found) return done(found.error());
                  const auto whole = std::make_shared<Fetch>();
                  whole->done = std::move(done);
                  take(lookups, *std::move(found), building, *whole);
                  for (const auto& [run, at] : std::exchange(whole->to_fetch, {}))
                    fetch(whole, run, at);
                  whole->finished({});
                });
}

// What this image does not hold of a base is zeros to who would capture it. Who asks for the base
// of blocks is about to write to them: the base, if that is fetched at the same time, or something
// else.
void RebuildingHistory::take(const std::vector<Lookup>& lookups, Located found, bool building,
                             Fetch& whole) {
  whole.located.newest = found.newest;
  const auto visit = [&](auto visitor) {
    auto lookup = lookups.begin();
    for (PastRun& run : found.runs) {
      const bool last = run.range.end() == lookup->range.end();
      visitor(*lookup, run);
      if (last) ++lookup;
    }
  };
  volume::BlockSet fetched;
  visit([&](const Lookup& asked, const PastRun& run) {
    if (asked.with_bytes && run.source == PastRun::Source::kBase) fetched.add(run.range);
  });
  visit([&](const Lookup& asked, PastRun& run) {
    const bool of_base = asked.at.value == 0;
    if (run.source != PastRun::Source::kBase) {
      if (of_base) base_elsewhere_.remove(run.range);
      whole.located.runs.push_back(std::move(run));
      return;
    }
    if (building && of_base && !asked.with_bytes) {
      fetched.visit(run.range, [&](BlockRange part, bool base) {
        if (!base) base_elsewhere_.add(part);
      });
    }
    base_elsewhere_.visit(run.range, [&](BlockRange part, bool elsewhere) {
      const bool here = !building && !elsewhere;
      if (!here && asked.with_bytes) {
        whole.to_fetch.emplace_back(whole.located.runs.size(), asked.at);
      }
      whole.located.runs.push_back(
          {part, here ? PastRun::Source::kBase : PastRun::Source::kZero, false, run.sequence});
    });
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
  bool elsewhere = building_();
  base_elsewhere_.visit(range, [&](BlockRange, bool in) { elsewhere |= in; });
  if (!elsewhere) return below_.read(range, at, to, std::move(done));
  if (reader_ != nullptr) {
    return reader_->read(range, at, to, [done = std::move(done)](const Result<void>& read) mutable {
      if (!read) return done(read.error());
      done(std::vector<BlockRange>{});
    });
  }
  below_.read(range, at, to,
              [done = std::move(done)](Result<std::vector<BlockRange>> in_base) mutable {
                if (in_base && !in_base->empty()) return done(no_other_image());
                done(std::move(in_base));
              });
}

void RebuildingHistory::changed(SequenceNumber from, SequenceNumber to, Portion portion,
                                volume::Done done) {
  if (!building_() || from.value != 0) {
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
    locate_all(below_, {{range, scanned->at}}, [this, scanned](const Result<Located>& found) {
      if (!found) return scanned->done(found.error());
      std::vector<BlockRange> stored;
      for (const PastRun& run : found->runs) {
        if (run.source != PastRun::Source::kZero) stored.push_back(run.range);
      }
      if (!stored.empty()) scanned->portion(stored);
      scan(scanned);
    });
  } while (scanned->again);
  scanned->scanning = false;
}

void RebuildingHistory::log_before_image(BlockRange range, PayloadSlice bytes, volume::Done done) {
  if (!building_()) return below_.log_before_image(range, std::move(bytes), std::move(done));
  done(Error{ErrorCode::kAborted, "an image that is being built is nobody's base"});
}

}  // namespace mariner::cluster
