#include "server/cluster/journal_history.h"

#include <algorithm>
#include <string>
#include <utility>

namespace mariner::cluster {

using volume::PastRun;

// What changed, on its way through.
struct JournalHistory::Filter {
  Portion portion;
  volume::Done done;
  Result<void> result;
  std::size_t waiting = 1;  // for the journal's answer, and for each portion of it

  void finished(const Result<void>& r) {
    if (!r && result) result = r;
    if (--waiting == 0) done(std::move(result));
  }
  void pass(const std::vector<PastRun>& runs, SequenceNumber since) {
    std::vector<BlockRange> kept;
    for (const PastRun& run : runs) {
      if (run.sequence <= since) continue;
      if (!kept.empty() && kept.back().end() == run.range.first) {
        kept.back().count = kept.back().count + run.range.count;
      } else {
        kept.push_back(run.range);
      }
    }
    if (!kept.empty()) portion(kept);
  }
};

JournalHistory::JournalHistory(LoggerPart& journal, SequenceNumber since)
    : journal_(journal),
      since_(since),
      held_(std::make_shared<Result<Hold>>(
          Error{ErrorCode::kUnavailable, "the journal is being asked to keep its beginning"})) {
  journal_.logged().history().hold(since, [held = std::weak_ptr(held_)](Result<Hold> hold) {
    if (const auto to = held.lock()) *to = std::move(hold);
  });
}

Result<void> JournalHistory::check(SequenceNumber at) const {
  if (!*held_) return held_->error();
  if (at > journal_.settled()) {
    return Error{ErrorCode::kUnavailable, "the journal has nothing behind #" +
                                              std::to_string(journal_.settled().value) + " yet, #" +
                                              std::to_string(at.value) + " was asked for"};
  }
  return {};
}

void JournalHistory::read(BlockRange range, SequenceNumber at, std::span<std::byte> to,
                          ReadDone done) {
  if (at <= since_) return done(away());
  if (Result<void> r = check(at); !r) return done(r.error());
  volume::History& history = journal_.logged().history();
  locate_all(history, {{range, at}},
             [&history, range, at, to, since = since_,
              done = std::move(done)](const Result<Located>& found) mutable {
               if (!found) return done(found.error());
               for (const PastRun& run : found->runs) {
                 if (run.sequence > since) continue;
                 return done(Error{
                     ErrorCode::kCorrupt,
                     "the journal was to have block " + std::to_string(run.range.first.value) +
                         " as of #" + std::to_string(at.value) +
                         ", but knows of no write to it since #" + std::to_string(since.value)});
               }
               history.read(range, at, to, std::move(done));
             });
}

void JournalHistory::changed(SequenceNumber from, SequenceNumber to, Portion portion,
                             volume::Done done) {
  if (from < since_) return done(away());
  if (Result<void> r = check(to); !r) return done(r);
  volume::History& history = journal_.logged().history();
  const auto filter = std::make_shared<Filter>(Filter{std::move(portion), std::move(done), {}});
  history.changed(
      from, to,
      [&history, to, since = since_, filter](std::span<const BlockRange> extents) {
        std::vector<Lookup> lookups;
        for (const BlockRange& extent : extents) {
          if (!extent.empty()) lookups.push_back({extent, to});
        }
        if (lookups.empty()) return;
        ++filter->waiting;
        locate_all(history, std::move(lookups), [since, filter](const Result<Located>& found) {
          if (!found) return filter->finished(found.error());
          filter->pass(found->runs, since);
          filter->finished({});
        });
      },
      [filter](const Result<void>& result) { filter->finished(result); });
}

}  // namespace mariner::cluster
