#include "server/volume/history.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "proto/check.h"

namespace mariner::volume {
namespace {

// One locate_all(): what is left to ask for, and what has been answered.
struct Asking {
  History& history;
  std::vector<History::Lookup> left;  // while it is not asked for
  History::Located found;
  History::LocateDone done;
  bool asking = false;
  bool again = false;

  // Answers that come at once must not pile up on the stack.
  static void ask(const std::shared_ptr<Asking>& self) {
    if (std::exchange(self->asking, true)) {
      self->again = true;
      return;
    }
    do {
      self->again = false;
      self->history.locate(self->left, [self](Result<History::Located> answer) {
        if (!answer) return self->done(answer.error());
        self->take(*std::move(answer));
        if (self->left.empty()) return self->done(std::move(self->found));
        ask(self);
      });
    } while (self->again);
    self->asking = false;
  }

  void take(History::Located answer) {
    CHECK(!answer.runs.empty());
    auto lookup = left.begin();
    for (const PastRun& run : answer.runs) {
      CHECK(lookup != left.end() && run.range.first == lookup->range.first);
      lookup->range = BlockRange::between(run.range.end(), lookup->range.end());
      if (lookup->range.empty()) ++lookup;
    }
    left.erase(left.begin(), lookup);
    found.newest = answer.newest;
    if (found.runs.empty()) {
      found.runs = std::move(answer.runs);
    } else {
      std::ranges::move(answer.runs, std::back_inserter(found.runs));
    }
  }
};

}  // namespace

void locate_all(History& history, std::vector<History::Lookup> lookups, History::LocateDone done) {
  if (lookups.empty()) return done(History::Located{});
  Asking::ask(std::make_shared<Asking>(Asking{
      .history = history, .left = std::move(lookups), .found = {}, .done = std::move(done)}));
}

void allocation_at(History& history, ByteRange range, SequenceNumber at, AllocationDone done) {
  locate_all(history, {{range.covering_blocks(), at}},
             [range, done = std::move(done)](Result<History::Located> found) mutable {
               if (!found) return done(found.error());
               std::vector<Allocation> out;
               for (const PastRun& run : found->runs) {
                 const ByteRange bytes = to_bytes(run.range);
                 const std::uint64_t start = std::max(bytes.offset, range.offset);
                 const std::uint64_t length = std::min(bytes.end(), range.end()) - start;
                 const bool mapped = run.source != PastRun::Source::kZero;
                 if (!out.empty() && out.back().mapped == mapped) {
                   out.back().range.length += length;
                 } else {
                   out.push_back({{start, length}, mapped});
                 }
               }
               done(std::move(out));
             });
}

}  // namespace mariner::volume
