#include "server/scsi/copy_engine.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace mariner::scsi {
namespace {

constexpr std::uint64_t kPieceBytes = 1 << 20;
// How far it is asked at once what is stored.
constexpr std::uint64_t kLookBytes = 16 << 20;

// What abort() waits for.
struct Waiting {
  std::size_t jobs = 0;
  UniqueFunction<void()> ended;
};

}  // namespace

struct CopyEngine::Active {
  Job job;
  std::chrono::nanoseconds begun{0};
  std::size_t run = 0;
  std::uint64_t done = 0;                // bytes of the run
  std::deque<volume::Allocation> known;  // what is stored from there on, as far as was asked
  bool aborted = false;
  bool ended = false;
  bool stepping = false;  // so that what completes at once does not nest
  bool again = false;
  std::vector<std::shared_ptr<Waiting>> waiting;
};

void CopyEngine::start(Job job) {
  auto active = std::make_shared<Active>();
  active->job = std::move(job);
  active->begun = clock_();
  active_.push_back(active);
  go(active);
}

bool CopyEngine::abort(const Selection& selection, UniqueFunction<void()> ended) {
  auto waiting = std::make_shared<Waiting>();
  waiting->ended = std::move(ended);
  for (const auto& active : active_) {
    const Job& job = active->job;
    if (selection.from != nullptr && job.from != *selection.from) continue;
    if (selection.id && job.id != selection.id) continue;
    if (selection.tag && job.tag && job.tag != selection.tag) continue;
    if (job.background && !selection.background_too) continue;
    active->aborted = true;
    active->waiting.push_back(waiting);
    ++waiting->jobs;
  }
  return waiting->jobs > 0;
}

std::size_t CopyEngine::in_background() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(active_, [](const auto& active) { return active->job.background; }));
}

std::optional<CopyEngine::End> CopyEngine::forbidden(const Active& active) {
  if (active.aborted) return End::kAborted;
  const CopyUnit& destination = *active.job.runs[active.run].destination;
  if (destination.sanitize != nullptr && destination.sanitize->blocks()) return End::kFenced;
  if (!destination.disk->medium().present()) return End::kNoMedium;
  if (destination.reservations->state().conflicts(ReservationAccess::kWrites, active.job.from)) {
    return End::kFenced;
  }
  return std::nullopt;
}

void CopyEngine::go(const std::shared_ptr<Active>& active) {
  active->again = true;
  if (std::exchange(active->stepping, true)) return;
  while (std::exchange(active->again, false) && !active->ended) step(active);
  active->stepping = false;
}

void CopyEngine::step(const std::shared_ptr<Active>& active) {
  while (active->run < active->job.runs.size() && active->job.runs[active->run].bytes == 0) {
    ++active->run;
    active->job.moved(0, true);
  }
  if (active->run == active->job.runs.size()) return end(active, {});
  if (active->aborted) return end(active, {End::kAborted, std::nullopt});
  if (active->job.time_max && clock_() - active->begun >= *active->job.time_max) {
    return end(active, {End::kOutOfTime, std::nullopt});
  }
  if (active->known.empty()) return look(active);
  const Run& run = active->job.runs[active->run];
  const volume::Allocation& next = active->known.front();
  const std::uint64_t bytes =
      next.mapped ? std::min(kPieceBytes, next.range.length) : next.range.length;
  const ByteRange to{run.to + active->done, bytes};
  if (next.mapped) return copy_piece(active, {run.from + active->done, bytes}, to);
  zero_piece(active, to);
}

void CopyEngine::look(const std::shared_ptr<Active>& active) {
  const Run& run = active->job.runs[active->run];
  const std::uint64_t left = run.bytes - active->done;
  if (run.source == nullptr) {
    active->known.push_back({{run.from + active->done, left}, false});
    return go(active);
  }
  const ByteRange range{run.from + active->done, std::min(kLookBytes, left)};
  run.source->allocation(
      range, [self = shared_from_this(), active](Result<std::vector<volume::Allocation>> found) {
        if (!found) return self->end(active, {End::kUnreadable, found.error()});
        active->known.assign(found->begin(), found->end());
        self->go(active);
      });
}

void CopyEngine::copy_piece(const std::shared_ptr<Active>& active, ByteRange from, ByteRange to) {
  active->job.runs[active->run].source->read(
      from, [self = shared_from_this(), active, to](Result<PayloadSlice> read) {
        if (!read) return self->end(active, {End::kUnreadable, read.error()});
        if (const auto no = forbidden(*active)) return self->end(active, {*no, std::nullopt});
        active->job.runs[active->run].destination->disk->layer().write(
            to, *std::move(read), [self, active, to](const Result<void>& written) {
              if (!written) return self->end(active, {End::kUnwritable, written.error()});
              self->moved(active, to.length);
            });
      });
}

void CopyEngine::zero_piece(const std::shared_ptr<Active>& active, ByteRange to) {
  if (const auto no = forbidden(*active)) return end(active, {*no, std::nullopt});
  active->job.runs[active->run].destination->disk->layer().trim(
      to, volume::TrimMode::kZero,
      [self = shared_from_this(), active, to](const Result<void>& zeroed) {
        if (!zeroed) return self->end(active, {End::kUnwritable, zeroed.error()});
        self->moved(active, to.length);
      });
}

void CopyEngine::moved(const std::shared_ptr<Active>& active, std::uint64_t bytes) {
  active->done += bytes;
  ByteRange& known = active->known.front().range;
  known.offset += bytes;
  known.length -= bytes;
  if (known.length == 0) active->known.pop_front();
  const bool complete = active->done == active->job.runs[active->run].bytes;
  if (complete) {
    ++active->run;
    active->done = 0;
    active->known.clear();
  }
  active->job.moved(bytes, complete);
  go(active);
}

void CopyEngine::end(const std::shared_ptr<Active>& active, Ended how) {
  if (std::exchange(active->ended, true)) return;
  std::erase(active_, active);
  active->job.done(how);
  for (const auto& waiting : active->waiting) {
    if (--waiting->jobs == 0 && waiting->ended) waiting->ended();
  }
}

}  // namespace mariner::scsi
