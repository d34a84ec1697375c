#include "replication/write_coordinator.h"

#include <utility>

#include "proto/check.h"

namespace mariner::replication {

WriteCoordinator::WriteCoordinator(const Start& start, const Limits& limits)
    : volume_(start.volume),
      epoch_(start.epoch),
      limits_(limits),
      last_(start.last),
      frontier_(start.frontier),
      acknowledged_(start.last),
      settled_(start.last) {
  CHECK(start.frontier <= start.last);
  CHECK(limits.writes_in_flight_max > 0);
  clock_->raise(start.floor);
}

bool WriteCoordinator::has_room(const WriteRequest& request) const {
  if (stamped_bytes_ >= granted_bytes_) return false;
  if (in_flight_.empty()) return true;  // one write always fits
  return in_flight_.size() < limits_.writes_in_flight_max &&
         bytes_in_flight_ + request.payload.length <= limits_.bytes_in_flight_max;
}

void WriteCoordinator::submit(RequestToken token, WriteRequest request, VersionTime now,
                              Actions& out) {
  if (closed_) {
    out.emplace_back(Answer{token, *closed_});
    return;
  }
  if (!waiting_.empty() || !has_room(request)) {
    waiting_.push_back({token, std::move(request)});
    return;
  }
  stamp(token, std::move(request), now, out);
}

void WriteCoordinator::stamp(RequestToken token, WriteRequest request, VersionTime now,
                             Actions& out) {
  last_ = last_.next();
  const Stamp stamp{epoch_, last_, clock_->next(now)};
  in_flight_.push_back({token, request.payload.length, stamp, false});
  bytes_in_flight_ += request.payload.length;
  stamped_bytes_ += lag_bytes(request);
  out.emplace_back(
      SendWrite{WriteMessage{volume_, stamp, std::move(request), settled_.value(), frontier_}});
}

WriteCoordinator::InFlight& WriteCoordinator::in_flight(SequenceNumber sequence) {
  CHECK(!in_flight_.empty());
  const std::uint64_t first = in_flight_.front().stamp.sequence.value;
  CHECK(sequence.value >= first && sequence.value - first < in_flight_.size());
  return in_flight_[sequence.value - first];
}

void WriteCoordinator::logged(SequenceNumber sequence, const Result<void>& result, VersionTime now,
                              Actions& out) {
  InFlight& write = in_flight(sequence);
  CHECK(!write.done);
  write.done = true;
  bytes_in_flight_ -= write.bytes;
  const RequestToken token = write.token;
  const Stamp stamp = write.stamp;
  while (!in_flight_.empty() && in_flight_.front().done) in_flight_.pop_front();
  if (result) {
    // Visible before it is answered: a read that follows the answer sees it.
    settled({sequence, sequence}, out);
    acknowledged_ = std::max(acknowledged_, sequence);
    out.emplace_back(Answer{token, stamp});
  } else {
    out.emplace_back(Answer{token, result.error()});
    out.emplace_back(SendVoid{VoidMessage{volume_, epoch_, sequence, sequence}});
  }
  notify_settlers(out);
  admit(now, out);
}

void WriteCoordinator::void_logged(SequenceNumber first, SequenceNumber last,
                                   const Result<void>& result, VersionTime now, Actions& out) {
  if (!result) {
    unsettled_ = true;
    close(Error{ErrorCode::kIo, "a failed write could not be voided in the log (" +
                                    result.error().message + "); writing stops until a restart"},
          out);
    return;
  }
  settled({first, last}, out);
  notify_settlers(out);
  admit(now, out);
}

void WriteCoordinator::settled(SequenceRange numbers, Actions& out) {
  if (settled_.settle(numbers)) out.emplace_back(Commit{settled_.value()});
}

void WriteCoordinator::storage_durable(SequenceNumber sequence) {
  CHECK(sequence <= settled_.value());
  frontier_ = std::max(frontier_, sequence);
}

void WriteCoordinator::grant(std::uint64_t bytes, VersionTime now, Actions& out) {
  granted_bytes_ = bytes;
  admit(now, out);
}

void WriteCoordinator::close(const Error& error, Actions& out) {
  if (!closed_) closed_ = error;
  while (!waiting_.empty()) {
    out.emplace_back(Answer{waiting_.front().token, *closed_});
    waiting_.pop_front();
    ++waited_total_;
  }
  notify_settlers(out);
}

void WriteCoordinator::admit(VersionTime now, Actions& out) {
  while (!waiting_.empty() && has_room(waiting_.front().request)) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    ++waited_total_;
    stamp(next.token, std::move(next.request), now, out);
  }
}

void WriteCoordinator::settle(RequestToken token, bool include_waiting, Actions& out) {
  settlers_.push_back(
      {token, last_, include_waiting ? waited_total_ + waiting_.size() : waited_total_});
  notify_settlers(out);
}

bool WriteCoordinator::answered(SequenceNumber until) const {
  return in_flight_.empty() || in_flight_.front().stamp.sequence > until;
}

void WriteCoordinator::notify_settlers(Actions& out) {
  while (!settlers_.empty()) {
    Settler& settler = settlers_.front();
    if (waited_total_ < settler.waiting_until) return;
    if (settler.waiting_until != 0) {
      // What waited is stamped now: its numbers count too.
      settler.until = last_;
      settler.waiting_until = 0;
    }
    if (settled_.value() < settler.until && !(unsettled_ && answered(settler.until))) return;
    out.emplace_back(Settled{settler.token, settled_.value()});
    settlers_.pop_front();
  }
}

}  // namespace mariner::replication
