// A coordinator of a volume of two storage nodes and a logger, which a test speaks for.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "replication/coordinator_role.h"
#include "tests/replication/role_actions.h"

namespace mariner::replication {

inline constexpr VolumeId kVolume{1};
inline constexpr Epoch kEpoch{5};
inline constexpr NodeId kOwn{1};
inline constexpr NodeId kOther{2};
inline constexpr NodeId kLogger{3};
inline constexpr std::uint64_t kMargin = 8;
inline constexpr VersionTime kNow{100'000};
inline constexpr std::uint32_t kLaps = 3;

inline WriteRequest request() {
  WriteRequest request;
  request.kind = WriteKind::kZero;
  request.extent = {{0}, {1}};
  return request;
}

class CoordinatorRoleTest : public ::testing::Test {
 protected:
  using Actions = CoordinatorRole::Actions;
  Actions hear(FromLogger message) {
    Actions out;
    role_.received(kLogger, std::move(message), kNow, out);
    return out;
  }
  Actions hear(NodeId node, const FromStorage& message) {
    Actions out;
    role_.received(node, message, kNow, out);
    return out;
  }
  Actions logger_connected() {
    Actions out;
    role_.logger_connected(kLogger, out);
    return out;
  }
  void logger_disconnected() {
    Actions out;
    role_.logger_disconnected(kLogger, kNow, out);
  }
  Actions storage_connected(NodeId node) {
    Actions out;
    role_.storage_connected(node, out);
    return out;
  }
  Actions submit(std::uint64_t token) {
    Actions out;
    role_.submit({token}, request(), kNow, out);
    return out;
  }
  Actions flush() {
    Actions out;
    role_.flush(out);
    return out;
  }
  Actions tick(std::chrono::nanoseconds now) {
    Actions out;
    role_.tick(kNow, now, out);
    return out;
  }
  static LogOpened opened(std::uint64_t last, std::vector<SequenceRange> holes = {}) {
    return {kVolume, kEpoch, {last}, std::move(holes), {5000}, {7}};
  }
  // The log is open, and everything before is settled: the next write is #19.
  void serve() {
    logger_connected();
    hear(opened(10));
    ASSERT_TRUE(only<CoordinatorRole::Ready>(hear(Logged{kVolume, kEpoch, {10 + kMargin}})));
  }
  // The storage node has everything.
  void open_storage(NodeId node, std::uint64_t durable = 10) {
    storage_connected(node);
    hear(node, StorageOpened{kVolume, kEpoch, {10}, {10}});
    hear(node, CaughtUp{kVolume, kEpoch, role_.writes().settled()});
    if (durable == 10) return;
    hear(node, StorageProgress{kVolume, kEpoch, role_.settled(), {durable}, 2 * kBlockBytes});
  }
  static std::vector<std::uint64_t> logged_again(const Actions& actions) {
    std::vector<std::uint64_t> numbers;
    for (const auto& action : actions) {
      const auto* log = std::get_if<CoordinatorRole::ToLog>(&action);
      if (log == nullptr) continue;
      if (const auto* write = std::get_if<WriteMessage>(&log->message)) {
        numbers.push_back(write->stamp.sequence.value);
      } else if (const auto* lost = std::get_if<VoidMessage>(&log->message)) {
        numbers.push_back(1000 + lost->first.value);
      }
    }
    return numbers;
  }
  static std::vector<std::uint64_t> answered(const Actions& actions) {
    std::vector<std::uint64_t> tokens;
    for (const auto& action : actions) {
      if (const auto* answer = std::get_if<Answer>(&action)) {
        tokens.push_back(answer->token.value + (answer->result ? 0 : 1000));
      }
    }
    return tokens;
  }

  CoordinatorRole role_{{kVolume, kEpoch, {kOwn, kOther}, kOwn, kLogger},
                        {.limits = {.writes_in_flight_max = kMargin},
                         .void_margin = kMargin,
                         .first_grant_bytes = 2 * kBlockBytes,
                         .storage_patience = std::chrono::seconds(1),
                         .laps_unhindered_max = kLaps}};
};

}  // namespace mariner::replication
