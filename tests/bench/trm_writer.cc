#include "tests/bench/trm_writer.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace mariner::bench {

void TrmWriter::up(std::size_t receiver) {
  if (std::exchange(receivers_[receiver].up, true)) return;
  ++up_;
  if (!begun_) return;
  // It is back, and has missed what came meanwhile.
  receivers_[receiver].left_out = false;
  receivers_[receiver].sent = receivers_[receiver].has = issued_;
}

void TrmWriter::down(std::size_t receiver) {
  if (!std::exchange(receivers_[receiver].up, false)) return;
  --up_;
  if (!begun_) return;
  ++left_out_;
  advance();
}

void TrmWriter::acknowledged(std::size_t receiver, std::uint64_t write) {
  Receiver& one = receivers_[receiver];
  one.has = std::max(one.has, write);
  if (one.left_out && one.has == one.sent) one.left_out = false;
  advance();
}

std::uint64_t TrmWriter::over() const {
  if (options_.answers != 0) return receivers_[options_.answers].has;
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (std::size_t i = 1; i <= options_.receivers; ++i) {
    const Receiver& each = receivers_[i];
    if (each.up && !each.left_out)
      least = std::min(least, each.sent == each.has ? issued_ : each.has);
  }
  return std::min(least, issued_);
}

void TrmWriter::advance() {
  const auto now = executor_.monotonic_time();
  for (const std::uint64_t now_over = over(); over_ < now_over; ++over_) {
    latency_.record(static_cast<std::uint64_t>((now - issued_at_.front()).count()));
    issued_at_.pop_front();
    ++completed_;
  }
  if (options_.file_bytes > 0 && over_ == file_end_ && issued_ == file_end_ && file_end_ > 0) {
    files_s_.push_back(std::chrono::duration<double>(now - file_began_).count());
    file_end_ = 0;
    executor_.after(options_.pause, [this] { fill_later(); });
    return;
  }
  if (options_.file_bytes == 0 || file_end_ > 0) fill_later();
}

void TrmWriter::begin() {
  begun_ = true;
  fill_later();
}

void TrmWriter::forget() {
  latency_ = {};
  files_s_.clear();
  completed_ = 0;
}

void TrmWriter::fill_later() {
  if (!begun_ || stopped_ || std::exchange(filling_, true)) return;
  executor_.defer([this] {
    filling_ = false;
    fill();
  });
}

void TrmWriter::fill() {
  if (options_.file_bytes > 0 && file_end_ == 0) {
    file_end_ = issued_ + (options_.file_bytes + options_.write_bytes - 1) / options_.write_bytes;
    file_began_ = executor_.monotonic_time();
  }
  // Who has not answered for too long is left out.
  for (std::size_t i = 1; i <= options_.receivers; ++i) {
    Receiver& each = receivers_[i];
    if (each.up && !each.left_out && i != options_.answers &&
        (each.sent - each.has) * options_.write_bytes > options_.lag_bytes_max) {
      each.left_out = true;
      ++left_out_;
    }
  }
  while (!stopped_ && issued_ - over_ + options_.aggregate <= options_.outstanding_max &&
         (options_.file_bytes == 0 || issued_ < file_end_)) {
    for (std::uint64_t i = 0; i < options_.aggregate; ++i) issue();
  }
}

void TrmWriter::issue() {
  const std::uint64_t write = ++issued_;
  const Payload payload = make_trm_payload(write, options_.write_bytes, options_.content);
  issued_at_.push_back(executor_.monotonic_time());
  for (std::size_t i = 1; i <= options_.receivers; ++i) {
    Receiver& each = receivers_[i];
    if (!each.up || each.left_out) continue;
    each.sent = write;
    sending_->send(i, write, payload);
  }
}

}  // namespace mariner::bench
