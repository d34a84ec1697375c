#include "server/scsi/self_test.h"

#include <algorithm>
#include <utility>

#include "proto/check.h"
#include "server/scsi/unit_access.h"

namespace mariner::scsi {
namespace {

bool extended(SelfTest::Kind kind) {
  return kind == SelfTest::Kind::kBackgroundExtended || kind == SelfTest::Kind::kForegroundExtended;
}

// What a failed operation says of the unit.
Sense sense_of(const Error& error, bool reading) {
  if (error.code == ErrorCode::kIo || error.code == ErrorCode::kCorrupt) {
    return {SenseKey::kMediumError, reading ? asc::kUnrecoveredReadError : asc::kWriteError};
  }
  return {SenseKey::kHardwareError, asc::kInternalTargetFailure};
}

}  // namespace

SelfTest::SelfTest(Options options)
    : layer_(std::move(options.layer)),
      block_bytes_(options.block_bytes),
      clock_(std::move(options.clock)),
      shared_(options.shared),
      made_(clock_ ? clock_() : std::chrono::nanoseconds{0}) {}

void SelfTest::begin(Kind kind, Ended ended) {
  CHECK(!run_);
  const std::uint64_t blocks = std::max<std::uint64_t>(layer_->size_bytes() / kBlockBytes, 1);
  run_ = Run{.kind = kind,
             .number = ++runs_,
             .places = std::min(extended(kind) ? kExtendedPlaces : kShortPlaces, blocks),
             .ended = std::move(ended)};
  go_on();
}

// A loop, because completions may run before their calls return.
void SelfTest::go_on() {
  if (std::exchange(going_on_, true)) return;
  const auto alive = shared_from_this();  // whoever hears of the end may drop the unit
  while (run_ && !run_->waiting) next();
  going_on_ = false;
}

// The first and the last block are among the places.
ByteRange SelfTest::place() const {
  const std::uint64_t blocks = layer_->size_bytes() / kBlockBytes;
  if (blocks == 0) return {0, layer_->size_bytes() / block_bytes_ * block_bytes_};
  const std::uint64_t gaps = std::max<std::uint64_t>(run_->places - 1, 1);
  // Not done * (blocks - 1) / gaps: that may overflow.
  const std::uint64_t block =
      (blocks - 1) / gaps * run_->done + (blocks - 1) % gaps * run_->done / gaps;
  return {block * kBlockBytes, kBlockBytes};
}

void SelfTest::next() {
  if (run_->done > run_->places) return end({.kind = run_->kind, .outcome = Outcome::kPassed});
  run_->waiting = true;
  auto self = shared_from_this();
  const std::uint64_t number = run_->number;
  if (run_->done < run_->places) {
    layer_->read(place(), [self, number](const Result<PayloadSlice>& read) {
      self->completed(number, read ? std::nullopt : std::optional(read.error()));
    });
  } else {
    layer_->flush([self, number](const Result<void>& flushed) {
      self->completed(number, flushed ? std::nullopt : std::optional(flushed.error()));
    });
  }
}

void SelfTest::completed(std::uint64_t number, const std::optional<Error>& error) {
  if (!run_ || run_->number != number) return;
  run_->waiting = false;
  if (!error) {
    ++run_->done;
    return go_on();
  }
  Report report{.kind = run_->kind, .outcome = Outcome::kNotCompleted};
  const bool passing = error->code == ErrorCode::kBusy || error->code == ErrorCode::kLimit ||
                       error->code == ErrorCode::kAborted;
  if (shared_ && is_loss_of_access(*error)) {
    report.lost = *error;
  } else if (!passing) {
    const bool reading = run_->done < run_->places;
    report.outcome = reading ? Outcome::kReadingFailed : Outcome::kFlushingFailed;
    if (reading) report.first_failure = place().offset / block_bytes_;
    report.sense = sense_of(*error, reading);
  }
  end(std::move(report));
}

void SelfTest::abort(Outcome outcome) {
  if (run_) end({.kind = run_->kind, .outcome = outcome});
}

void SelfTest::end(Report report) {
  if (clock_) {
    const auto hours = std::chrono::duration_cast<std::chrono::hours>(clock_() - made_).count();
    report.hours = static_cast<std::uint16_t>(std::clamp<std::int64_t>(hours, 0, 0xFFFF));
  }
  Ended ended = std::move(run_->ended);
  run_.reset();
  if (report.kind != Kind::kDefault) {
    reports_.push_front(report);
    if (reports_.size() > kReportsMax) reports_.pop_back();
  }
  ended(report);
}

bool SelfTest::in_foreground() const {
  return run_ && run_->kind != Kind::kBackgroundShort && run_->kind != Kind::kBackgroundExtended;
}

std::uint16_t SelfTest::progress() const {
  CHECK(run_);
  return static_cast<std::uint16_t>(run_->done * 65536 / (run_->places + 1));
}

std::deque<SelfTest::Report> SelfTest::reports() const {
  std::deque<Report> reports = reports_;
  if (run_ && run_->kind != Kind::kDefault) {
    reports.push_front({.kind = run_->kind});
    if (reports.size() > kReportsMax) reports.pop_back();
  }
  return reports;
}

}  // namespace mariner::scsi
