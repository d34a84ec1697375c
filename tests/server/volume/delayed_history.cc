#include "tests/server/volume/delayed_history.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "proto/check.h"

namespace mariner::test {
namespace {

using volume::PastRun;

Error away() { return {ErrorCode::kUnavailable, "the logger is away"}; }

}  // namespace

DelayedHistory::~DelayedHistory() { CHECK_MSG(in_flight_ == 0, "questions are under way"); }

void DelayedHistory::later(UniqueFunction<void()> work) {
  const auto most = static_cast<std::uint64_t>(options_.delay_max.count());
  const std::uint64_t delay = below(below(kSlowIn) == 0 ? kSlow * most : most);
  executor_.after(std::chrono::nanoseconds(delay), std::move(work));
}

template <typename Answer>
void DelayedHistory::ask(UniqueFunction<void(UniqueFunction<void(Answer)>)> look,
                         UniqueFunction<void(Answer)> done) {
  ++in_flight_;
  Fate fate = Fate::kAnswered;
  if (options_.unavailable_in != 0 && below(options_.unavailable_in) == 0) {
    fate = below(2) == 0 ? Fate::kNotAsked : Fate::kNotAnswered;
  }
  later([this, fate, look = std::move(look), done = std::move(done)]() mutable {
    const auto answer =
        [this, fate,
         done = std::make_shared<UniqueFunction<void(Answer)>>(std::move(done))](Answer found) {
          later([this, fate, done, found = std::move(found)]() mutable {
            --in_flight_;
            (*done)(fate == Fate::kAnswered ? std::move(found) : Answer(away()));
          });
        };
    if (fate == Fate::kNotAsked) return answer(Answer(away()));
    look(answer);
  });
}

// Maybe cut short.
Result<volume::History::Located> DelayedHistory::as_message(Result<Located> found) {
  if (!found) return found;
  if (below(4) == 0) {
    found->runs.resize(1 + below(found->runs.size()));
    BlockCount& last = found->runs.back().range.count;
    if (below(2) == 0) last.value = 1 + below(last.value);
  }
  return found;
}

void DelayedHistory::locate(std::vector<Lookup> lookups, LocateDone done) {
  ask<Result<Located>>(
      [this, lookups = std::move(lookups)](LocateDone answer) mutable {
        far_.locate(std::move(lookups),
                    [this, answer = std::move(answer)](Result<Located> found) mutable {
                      answer(as_message(std::move(found)));
                    });
      },
      std::move(done));
}

void DelayedHistory::read(BlockRange range, SequenceNumber at, std::span<std::byte> to,
                          ReadDone done) {
  Payload message = Payload::allocate(range.count.bytes());
  ask<Result<std::vector<BlockRange>>>(
      [this, range, at, message](ReadDone answer) mutable {
        far_.read(range, at, message.bytes(), std::move(answer));
      },
      [range, to, message,
       done = std::move(done)](Result<std::vector<BlockRange>> in_base) mutable {
        if (!in_base) {
          std::memset(to.data(), 0xEE, to.size());  // it may have come in part
          return done(in_base.error());
        }
        const auto copy = [&](BlockRange part) {
          const std::size_t offset = (part.first - range.first).bytes();
          std::memcpy(to.data() + offset, message.data() + offset, part.count.bytes());
        };
        Lbn next = range.first;
        for (const BlockRange& part : *in_base) {
          copy(BlockRange::between(next, part.first));
          next = part.end();
        }
        copy(BlockRange::between(next, range.end()));
        done(std::move(in_base));
      });
}

void DelayedHistory::changed(SequenceNumber from, SequenceNumber to, Portion portion,
                             volume::Done done) {
  const auto extents = std::make_shared<std::vector<BlockRange>>();
  ask<Result<void>>(
      [this, from, to, extents](volume::Done answer) {
        far_.changed(
            from, to,
            [extents](std::span<const BlockRange> some) {
              extents->insert(extents->end(), some.begin(), some.end());
            },
            std::move(answer));
      },
      [this, extents, portion = std::move(portion),
       done = std::move(done)](const Result<void>& result) mutable {
        std::shuffle(extents->begin(), extents->end(), random_);
        for (std::span<const BlockRange> left(*extents); !left.empty();) {
          const std::size_t some = 1 + below(left.size());
          portion(left.first(some));
          left = left.subspan(some);
          if (!result && below(2) == 0) break;
        }
        done(result);
      });
}

void DelayedHistory::hold(SequenceNumber at, HoldDone done) {
  ask<Result<Hold>>([this, at](HoldDone answer) { far_.hold(at, std::move(answer)); },
                    std::move(done));
}

void DelayedHistory::log_before_image(BlockRange range, PayloadSlice bytes, volume::Done done) {
  ask<Result<void>>(
      [this, range, bytes = std::move(bytes)](volume::Done answer) mutable {
        far_.log_before_image(range, std::move(bytes), std::move(answer));
      },
      std::move(done));
}

void DelayedHistory::moment(std::variant<VersionTime, SequenceNumber> asked, MomentDone done) {
  ask<Result<Moment>>([this, asked](MomentDone answer) { far_.moment(asked, std::move(answer)); },
                      std::move(done));
}

void DelayedHistory::versions(std::vector<Since> blocks, SequenceNumber to, VersionsDone done) {
  ask<Result<Versions>>(
      [this, blocks = std::move(blocks), to](VersionsDone answer) mutable {
        far_.versions(std::move(blocks), to, std::move(answer));
      },
      std::move(done));
}

void DelayedHistory::summarize(const volume::HistorySummary::Question& question, SummaryDone done) {
  ask<Result<volume::HistorySummary>>(
      [this, question](SummaryDone answer) { far_.summarize(question, std::move(answer)); },
      std::move(done));
}

}  // namespace mariner::test
