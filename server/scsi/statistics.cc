#include "server/scsi/statistics.h"

#include <utility>

#include "proto/check.h"

namespace mariner::scsi {

Statistics::Statistics(MonotonicClock clock) : clock_(std::move(clock)), idle_since_(now()) {}

std::chrono::nanoseconds Statistics::now() const {
  return clock_ ? clock_() : std::chrono::nanoseconds{0};
}

Statistics::Medium* Statistics::medium(Traffic traffic) {
  switch (traffic) {
    case Traffic::kRead: return &reads_;
    case Traffic::kWrite: return &writes_;
    case Traffic::kVerify: return &verifications_;
    case Traffic::kNone: break;
  }
  return nullptr;
}

Statistics::Work Statistics::begin(Work work) {
  work.begun = true;
  work.at = now();
  if (under_way_++ == 0) idle_time_ += work.at - idle_since_;
  return work;
}

void Statistics::end(const Work& work, bool succeeded) {
  if (!work.begun) return;
  CHECK(under_way_ > 0);
  const std::chrono::nanoseconds at = now();
  if (--under_way_ == 0) idle_since_ = at;
  if (succeeded) {
    if (Medium* of = medium(work.traffic)) of->bytes += work.bytes;
  }
  if (!work.counted) return;
  Commands& commands = work.traffic == Traffic::kRead ? read_commands_ : write_commands_;
  ++commands.count;
  if (succeeded) commands.blocks += work.blocks;
  commands.time += at - work.at;
}

void Statistics::failed(Traffic traffic, const Error& error) {
  switch (error.code) {
    case ErrorCode::kIo:
    case ErrorCode::kCorrupt:
      if (Medium* of = medium(traffic)) {
        ++of->uncorrected_errors;
        return;
      }
      break;
    // Not failures: the initiator is told to come again, or what its bounds are.
    case ErrorCode::kBusy:
    case ErrorCode::kLimit:
    case ErrorCode::kAborted:
    case ErrorCode::kNoSpace:
    case ErrorCode::kReadOnly: return;
    default: break;
  }
  ++other_errors_;
}

std::chrono::nanoseconds Statistics::idle_time() const {
  return under_way_ == 0 ? idle_time_ + (now() - idle_since_) : idle_time_;
}

void Statistics::reset_commands() {
  read_commands_ = {};
  write_commands_ = {};
  idle_time_ = {};
  idle_since_ = now();
}

void Statistics::reset() {
  reset_reads();
  reset_writes();
  reset_verifications();
  reset_other_errors();
  reset_commands();
}

}  // namespace mariner::scsi
