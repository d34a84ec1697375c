#include "server/volume/local_history.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

#include "proto/check.h"
#include "proto/huge_pages.h"
#include "proto/sequence_text.h"

namespace mariner::volume {

using index::LocatedRun;

// One read() and what it still waits for.
struct LocalHistory::Reading {
  SequenceNumber at;
  std::vector<BlockRange> in_base;
  ReadDone done;
  Result<void> result;
  std::size_t waiting = 1;  // one for read() itself, so that nothing completes while it issues
};

// One locate(): what was asked for, and what the index has said of the first of that.
struct LocalHistory::Looking {
  std::vector<Lookup> lookups;
  std::vector<std::vector<LocatedRun>> found{};
  LocateDone done;

  [[nodiscard]] std::vector<index::VersionLookup::Asked> next() const {
    std::vector<index::VersionLookup::Asked> asked;
    const std::size_t end = std::min(found.size() + kLookupsEachTurn, lookups.size());
    for (std::size_t i = found.size(); i < end; ++i) {
      asked.push_back({lookups[i].range, lookups[i].at});
    }
    return asked;
  }
};

// An answer on its way, whose bytes are being read.
struct LocalHistory::Fetching {
  // Bytes that stand together in memory: in one huge page (proto/huge_pages.h), unless a run is
  // longer than that.
  static constexpr std::size_t kTogetherMax = kHugePageBytes;
  // Of the run that stands at `index`.
  struct Piece {
    std::size_t index;
    LocatedRun run;
    SequenceNumber at;
    std::size_t memory;  // which one
    std::size_t offset;
  };
  Located located;
  LocateDone done;
  std::vector<Piece> pieces;
  std::vector<Payload> memory;
  std::vector<std::size_t> memory_bytes;  // of each
  std::size_t under_way = 1;  // pieces that are read elsewhere, and all that are read in the log
  Result<void> result;

  [[nodiscard]] std::span<std::byte> bytes_of(const Piece& piece) {
    return memory[piece.memory].bytes().subspan(piece.offset, piece.run.range.count.bytes());
  }
  // Before it is appended. Of a repeated one the first block stands for all.
  void add(LocatedRun run, SequenceNumber at) {
    if (run.source != LocatedRun::Source::kLog) return;
    if (run.repeated) run.range.count = {1};
    const std::size_t bytes = run.range.count.bytes();
    if (memory_bytes.empty() || memory_bytes.back() + bytes > kTogetherMax) {
      memory_bytes.push_back(0);
    }
    pieces.push_back({located.runs.size(), run, at, memory_bytes.size() - 1, memory_bytes.back()});
    memory_bytes.back() += bytes;
  }
  // When all are added.
  void allocate() {
    for (const std::size_t bytes : memory_bytes) memory.push_back(Payload::allocate(bytes));
  }
};

LocalHistory::~LocalHistory() { CHECK_MSG(in_flight_ == 0, "a history is destroyed in use"); }

logging::LogRead LocalHistory::log_read_of(const LocatedRun& run, std::span<std::byte> to) const {
  return {run.location, parts_.volume, run.sequence, run.payload_block, to, run.base_ordinal};
}

// A base that is not stored anywhere is zeros.
void LocalHistory::append(const LocatedRun& run, std::vector<PastRun>& out) const {
  using Source = PastRun::Source;
  switch (run.source) {
    case LocatedRun::Source::kZero:
      out.push_back({run.range, Source::kZero, false, run.sequence});
      return;
    case LocatedRun::Source::kLog:
      out.push_back({run.range, Source::kLog, run.repeated, run.sequence});
      return;
    case LocatedRun::Source::kBase: break;
  }
  parts_.base.visit(run.range, [&](BlockRange part, bool stored) {
    out.push_back({part, stored ? Source::kBase : Source::kZero, false, {}});
  });
}

void LocalHistory::locate(std::vector<Lookup> lookups, LocateDone done) {
  const auto of_base = [](const Lookup& lookup) { return lookup.at.value == 0; };
  if (parts_.base.empty() && std::ranges::all_of(lookups, of_base)) {
    // As storage nodes ask for all that they are about to overwrite: nothing was ever a base.
    Located located;
    located.newest = parts_.index.newest().sequence;
    for (const Lookup& lookup : lookups) {
      located.runs.push_back({lookup.range, PastRun::Source::kZero, false, {}});
    }
    return done(std::move(located));
  }
  ++in_flight_;
  look(std::make_shared<Looking>(Looking{.lookups = std::move(lookups), .done = std::move(done)}));
}

// Some lookups a turn: each is a search in two trees, and hosts wait meanwhile.
void LocalHistory::look(const std::shared_ptr<Looking>& looking) {
  auto found = std::make_shared<std::vector<std::vector<LocatedRun>>>();
  parts_.index.consult(
      [this, looking, found](const index::VersionLookup& lookup) {
        const std::vector<index::VersionLookup::Asked> asked = looking->next();
        *found = lookup.locate_each(asked);
        for (std::size_t i = 0; i < asked.size(); ++i) {
          const auto& [range, at] = asked[i];
          std::vector<LocatedRun>& runs = (*found)[i];
          if (at.value == 0) runs = base_that_matters(lookup, range, std::move(runs));
        }
      },
      [this, looking, found](const Result<void>& looked) {
        if (!looked) {
          --in_flight_;
          return looking->done(looked.error());
        }
        std::ranges::move(*found, std::back_inserter(looking->found));
        if (looking->found.size() < looking->lookups.size()) {
          return parts_.index.store().in_next_turn([this, looking] { look(looking); });
        }
        fetch(*looking);
      });
}

// The bytes of what was found, where they are asked for.
void LocalHistory::fetch(Looking& looking) {
  const auto fetching = std::make_shared<Fetching>();
  fetching->located.newest = parts_.index.newest().sequence;
  fetching->done = std::move(looking.done);
  for (std::size_t i = 0; i < looking.found.size(); ++i) {
    const Lookup& asked = looking.lookups[i];
    for (const LocatedRun& run : looking.found[i]) {
      if (asked.with_bytes) fetching->add(run, asked.at);
      append(run, fetching->located.runs);
    }
  }
  fetching->allocate();
  fetch(fetching);
}

// The base that whoever is about to overwrite `range` must not lose. What is being given up counts
// as gone; and of what the image holds, a base that no moment shows any more does not count.
std::vector<LocatedRun> LocalHistory::base_that_matters(const index::VersionLookup& lookup,
                                                        BlockRange range,
                                                        std::vector<LocatedRun> base) const {
  if (parts_.index.is_forgetting()) base = lookup.base_to_be(range);
  const SequenceNumber as_of = parts_.index.base_matters_as_of();
  const auto in_image = [this](const LocatedRun& run) {
    bool any = false;
    if (run.source == LocatedRun::Source::kBase) {
      parts_.base.visit(run.range, [&](BlockRange, bool stored) { any = any || stored; });
    }
    return any;
  };
  if (as_of.value == 0 || std::ranges::none_of(base, in_image)) return base;
  std::vector<LocatedRun> out;
  for (const LocatedRun& then : lookup.locate(range, as_of)) {
    if (then.sequence > parts_.index.forgetting()) {
      out.push_back(then);
      continue;
    }
    for (const LocatedRun& run : base) {
      const LocatedRun part = index::part_of(run, then.range);
      if (!part.range.empty()) index::append_run(part, out);
    }
  }
  return out;
}

void LocalHistory::fetch(const std::shared_ptr<Fetching>& fetching) {
  std::vector<logging::LogRead> reads;
  reads.reserve(fetching->pieces.size());
  for (const Fetching::Piece& piece : fetching->pieces) {
    reads.push_back(log_read_of(piece.run, fetching->bytes_of(piece)));
  }
  parts_.reader.read_each(std::move(reads),
                          [this, fetching](const std::vector<Result<void>>& results) {
                            for (std::size_t i = 0; i < results.size(); ++i) {
                              take(fetching, i, results[i]);
                            }
                            took(fetching);
                          });
}

// What the log did not give stands elsewhere by now, or is lost.
void LocalHistory::take(const std::shared_ptr<Fetching>& fetching, std::size_t i,
                        const Result<void>& read) {
  const Fetching::Piece& piece = fetching->pieces[i];
  const PayloadSlice bytes{fetching->memory[piece.memory], piece.offset,
                           piece.run.range.count.bytes()};
  if (read) {
    fetching->located.runs[piece.index].bytes = bytes;
    return;
  }
  auto reading = std::make_shared<Reading>();
  reading->at = piece.at;
  reading->done = [this, fetching, bytes,
                   index = piece.index](const Result<std::vector<BlockRange>>& in_base) {
    if (in_base && in_base->empty()) {
      fetching->located.runs[index].bytes = bytes;
    } else if (fetching->result) {
      fetching->result =
          in_base ? Error{ErrorCode::kUnavailable, "the log gave up what was being read of it"}
                  : in_base.error();
    }
    took(fetching);
  };
  ++fetching->under_way;
  ++in_flight_;
  read_elsewhere(piece.run, fetching->bytes_of(piece), read.error(), reading);
}

void LocalHistory::took(const std::shared_ptr<Fetching>& fetching) {
  if (--fetching->under_way > 0) return;
  --in_flight_;
  if (!fetching->result) return fetching->done(fetching->result.error());
  fetching->done(std::move(fetching->located));
}

void LocalHistory::finished(const std::shared_ptr<Reading>& reading, const Result<void>& result) {
  if (!result && reading->result) reading->result = result;
  CHECK(reading->waiting > 0);
  if (--reading->waiting > 0) return;
  --in_flight_;
  if (!reading->result) return reading->done(reading->result.error());
  std::ranges::sort(reading->in_base);
  reading->done(std::move(reading->in_base));
}

void LocalHistory::read(BlockRange range, SequenceNumber at, std::span<std::byte> to,
                        ReadDone done) {
  CHECK(to.size() == range.count.bytes());
  auto reading = std::make_shared<Reading>();
  reading->at = at;
  reading->done = std::move(done);
  ++in_flight_;
  find(range, to, reading);
  finished(reading, {});
}

// Reads what the index names, in the moment in which it does.
void LocalHistory::find(BlockRange range, std::span<std::byte> to,
                        const std::shared_ptr<Reading>& reading) {
  ++reading->waiting;
  auto runs = std::make_shared<std::vector<LocatedRun>>();
  parts_.index.consult(
      [runs, range, at = reading->at](const index::VersionLookup& lookup) {
        *runs = lookup.locate(range, at);
      },
      [this, runs, range, to, reading](const Result<void>& looked) {
        if (looked) {
          for (const LocatedRun& run : *runs) {
            read_run(run,
                     to.subspan((run.range.first - range.first).bytes(), run.range.count.bytes()),
                     reading);
          }
        }
        finished(reading, looked);
      });
}

void LocalHistory::read_run(const LocatedRun& run, std::span<std::byte> to,
                            const std::shared_ptr<Reading>& reading) {
  switch (run.source) {
    case LocatedRun::Source::kZero: std::memset(to.data(), 0, to.size()); return;
    case LocatedRun::Source::kBase:
      parts_.base.visit(run.range, [&](BlockRange part, bool stored) {
        if (stored) return reading->in_base.push_back(part);
        std::memset(&to[(part.first - run.range.first).bytes()], 0, part.count.bytes());
      });
      return;
    case LocatedRun::Source::kLog: break;
  }
  ++reading->waiting;
  // A repeated run is one block: read it to the front, then copy it over the rest.
  const std::span<std::byte> stored = run.repeated ? to.first(kBlockBytes) : to;
  parts_.reader.read(log_read_of(run, stored), [this, reading, to, run](const Result<void>& r) {
    if (!r) return read_elsewhere(run, to, r.error(), reading);
    if (run.repeated) {
      for (std::size_t at = kBlockBytes; at < to.size(); at += kBlockBytes) {
        std::memcpy(to.data() + at, to.data(), kBlockBytes);
      }
    }
    finished(reading, r);
  });
}

// The log could not give `run`: `error`, unless the index says by now that it stands elsewhere.
void LocalHistory::read_elsewhere(const LocatedRun& run, std::span<std::byte> to,
                                  const Error& error, const std::shared_ptr<Reading>& reading) {
  auto now = std::make_shared<std::vector<LocatedRun>>();
  parts_.index.consult([now, range = run.range, at = reading->at](
                           const index::VersionLookup& lookup) { *now = lookup.locate(range, at); },
                       [this, now, run, to, error, reading](const Result<void>& looked) {
                         const auto is_same = [&](const LocatedRun& part) {
                           return part.source == run.source && part.location == run.location;
                         };
                         if (!looked || std::ranges::any_of(*now, is_same))
                           return finished(reading, error);
                         for (const LocatedRun& part : *now) {
                           read_run(part,
                                    to.subspan((part.range.first - run.range.first).bytes(),
                                               part.range.count.bytes()),
                                    reading);
                         }
                         finished(reading, {});
                       });
}

Result<void> LocalHistory::check_known(SequenceNumber from, SequenceNumber oldest) {
  if (from >= oldest) return {};
  return Error{ErrorCode::kOutsideWindow, "what changed behind #" + std::to_string(from.value) +
                                              " is no longer in the history, which begins at #" +
                                              std::to_string(oldest.value)};
}

void LocalHistory::changed(SequenceNumber from, SequenceNumber to, Portion portion, Done done) {
  const Result<void> known = check_known(from, parts_.index.given_up());
  if (!known && !parts_.index.is_kept(from)) return done(known.error());
  ++in_flight_;
  parts_.index.changed(from, to,
                       [this, portion = std::move(portion), done = std::move(done)](
                           const Result<std::vector<BlockRange>>& changed) mutable {
                         --in_flight_;
                         if (!changed) return done(changed.error());
                         portion(*changed);
                         done({});
                       });
}

// One versions(), some blocks a turn.
struct LocalHistory::Listing {
  std::vector<Since> blocks;
  SequenceNumber to;
  VersionsDone done;
  Versions out;
  std::size_t next = 0;  // block
  // What a look has found.
  std::vector<Version> found;
  std::size_t complete = 0;                        // blocks
  std::optional<SequenceNumber> complete_through;  // of the one behind them

  [[nodiscard]] bool full() const { return out.list.size() + found.size() >= kVersionsMax; }

  void look(const index::VersionLookup& lookup) {
    found.clear();
    complete = 0;
    complete_through.reset();
    while (complete < kListedAtATime && next + complete < blocks.size() && !full()) {
      const Since& since = blocks[next + complete];
      const auto changes = lookup.changes(since.block, since.after, to,
                                          kVersionsMax - out.list.size() - found.size());
      for (const index::IndexMoment& each : changes.list) found.push_back({since.block, each});
      if (changes.through < to) {
        complete_through = changes.through;
        return;
      }
      ++complete;
    }
  }
  // False: that was all, or as much as one answer has.
  bool take() {
    out.list.insert(out.list.end(), found.begin(), found.end());
    found.clear();
    next += complete;
    if (complete_through) blocks[next].after = *complete_through;
    out.more = next < blocks.size();
    return out.more && !full();
  }
};

void LocalHistory::versions(std::vector<Since> blocks, SequenceNumber to, VersionsDone done) {
  CHECK(blocks.size() <= kSinceMax);
  for (const Since& each : blocks) {
    const Result<void> known = check_known(each.after, parts_.index.oldest().sequence);
    if (!known) return done(known.error());
  }
  ++in_flight_;
  list(std::make_shared<Listing>(
      Listing{.blocks = std::move(blocks), .to = to, .done = std::move(done)}));
}

void LocalHistory::list(const std::shared_ptr<Listing>& listing) {
  parts_.index.consult(
      [listing](const index::VersionLookup& lookup) { listing->look(lookup); },
      [this, listing](const Result<void>& looked) {
        if (looked && listing->take()) {
          return parts_.index.store().in_next_turn([this, listing] { list(listing); });
        }
        --in_flight_;
        if (!looked) return listing->done(looked.error());
        listing->done(std::move(listing->out));
      });
}

void LocalHistory::hold(SequenceNumber at, HoldDone done) {
  if (!parts_.index.can_be_opened(at)) {
    return done(
        Error{ErrorCode::kOutsideWindow, sequence_text(at) + " is no longer in the history"});
  }
  const auto place = held_->insert(at);
  done(Hold(&*place, [held = held_, place](const void*) { held->erase(place); }));
}

void LocalHistory::log_before_image(BlockRange range, PayloadSlice bytes, Done done) {
  CHECK(range.count.value <= kBeforeImageBlocksMax);
  parts_.log.log_before_image(range, std::move(bytes), false, std::move(done));
}

void LocalHistory::moment(std::variant<VersionTime, SequenceNumber> asked, MomentDone done) {
  ++in_flight_;
  auto found = [this, done = std::move(done)](const Result<index::IndexMoment>& at) mutable {
    --in_flight_;
    if (!at) return done(at.error());
    index::StoredIndex& index = parts_.index;
    done(Moment{*at, index.oldest(), index.newest(), index.last_rollback(),
                index.is_kept(at->sequence)});
  };
  if (const auto* time = std::get_if<VersionTime>(&asked)) {
    parts_.index.moment_at(*time, std::move(found));
  } else {
    parts_.index.moment_of(std::get<SequenceNumber>(asked), std::move(found));
  }
}

void LocalHistory::summarize(const HistorySummary::Question& question, SummaryDone done) {
  ++in_flight_;
  volume::summarize(parts_.index, question,
                    [this, done = std::move(done)](Result<HistorySummary> summary) mutable {
                      --in_flight_;
                      done(std::move(summary));
                    });
}

std::optional<SequenceNumber> LocalHistory::oldest_held(SequenceNumber from) const {
  const auto oldest = held_->lower_bound(from);
  if (oldest == held_->end()) return std::nullopt;
  return *oldest;
}

}  // namespace mariner::volume
