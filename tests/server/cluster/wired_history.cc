#include "tests/server/cluster/wired_history.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "proto/check.h"

namespace mariner::test {
namespace {

constexpr VolumeId kVolume{1};

// As the receiver of frames has it: a payload of its own.
Payload whole(const PayloadSlice& slice) {
  if (slice.length == 0) return {};
  Payload copy = Payload::allocate(slice.length);
  std::memcpy(copy.data(), slice.bytes().data(), slice.length);
  return copy;
}

}  // namespace

WiredHistory::WiredHistory(Executor& executor, volume::History& far, const Options& options)
    : executor_(executor), far_(far), options_(options), random_(options.seed), near_(kVolume) {
  connect();
}

WiredHistory::~WiredHistory() {
  *alive_ = false;
  session_.reset();
  near_.down();
}

void WiredHistory::connect() {
  ++connection_;
  session_ = std::make_unique<cluster::HistorySession>(cluster::HistorySession::Parts{
      [this](VolumeId) { return &far_; }, [](VolumeId) { return nullptr; },
      [this](const cluster::HistoryFrame& frame) {
        deliver(kBack, [this, frame] {
          auto answer = cluster::decode_answer(frame.header, whole(frame.payload));
          CHECK(answer.has_value());
          CHECK(near_.received(std::move(*answer)).has_value());
        });
        return true;
      },
      node_});
  near_.up([this](const cluster::HistoryFrame& frame) {
    deliver(kThere, [this, frame] {
      auto question = cluster::decode_question(frame.header, whole(frame.payload));
      CHECK(question.has_value());
      CHECK(session_->received(std::move(*question)).has_value());
    });
    return true;
  });
}

void WiredHistory::disconnect() {
  ++connection_;
  session_.reset();
  near_.down();
}

void WiredHistory::deliver(Way way, UniqueFunction<void()> arrives) {
  const auto now = executor_.monotonic_time();
  const std::chrono::nanoseconds delay(
      below(static_cast<std::uint64_t>(options_.delay_max.count())));
  last_[way] = std::max(last_[way], now + delay);
  executor_.after(last_[way] - now, [this, connection = connection_, alive = alive_,
                                     arrives = std::move(arrives)]() mutable {
    if (!*alive || connection != connection_) return;
    arrives();
    if (*alive && connection == connection_) maybe_break();
  });
}

void WiredHistory::maybe_break() {
  if (options_.breaks_in == 0 || below(options_.breaks_in) != 0) return;
  disconnect();
  executor_.after(std::chrono::microseconds(below(20'000)), [this, alive = alive_] {
    if (*alive) connect();
  });
}

}  // namespace mariner::test
