// A coordinator of a volume of two storage nodes, and its logs: what they are told, in words.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "replication/coordinator_role.h"

namespace mariner::replication {

inline constexpr VolumeId kVolume{1};
inline constexpr Epoch kEpoch{5};
inline constexpr NodeId kOne{1};
inline constexpr NodeId kTwo{2};
inline constexpr NodeId kLogger{3};
inline constexpr std::uint64_t kMargin = 8;
inline constexpr VersionTime kNow{100'000'000};
inline constexpr LogAway kAway{{100}, {104}, {5000}, {99}};
using Words = std::vector<std::string>;

class CoordinatorLogsTest : public ::testing::Test {
 protected:
  using Actions = CoordinatorRole::Actions;

  void make(std::optional<LogAway> away) {
    role_.emplace(CoordinatorRole::Start{kVolume, kEpoch, {kOne, kTwo}, kOne, kLogger, away},
                  CoordinatorRole::Options{.limits = {.writes_in_flight_max = kMargin},
                                           .void_margin = kMargin,
                                           .logger_patience = std::chrono::seconds(3),
                                           .return_near = 2});
  }
  static std::string to(NodeId node) { return " to " + std::to_string(node.value); }
  static std::string word(const CoordinatorRole::ToLog& log) {
    const auto& message = log.message;
    if (const auto* open = std::get_if<OpenLog>(&message)) {
      return "open log from " + std::to_string(open->begin.value) + to(log.node);
    }
    if (const auto* lost = std::get_if<VoidMessage>(&message)) {
      return "void " + std::to_string(lost->first.value) + "-" + std::to_string(lost->last.value) +
             to(log.node);
    }
    if (const auto* write = std::get_if<WriteMessage>(&message)) {
      const std::string number = std::to_string(write->stamp.sequence.value);
      if (write->write.kind != WriteKind::kRollback) return "log " + number + to(log.node);
      return "back to " + std::to_string(write->write.target.value) + " as " + number +
             to(log.node);
    }
    if (const auto* anew = std::get_if<BeginAnew>(&message)) {
      return "begin behind " + std::to_string(anew->at.value) + to(log.node);
    }
    return "other" + to(log.node);
  }
  static std::string word(const CoordinatorRole::Action& action) {
    if (const auto* log = std::get_if<CoordinatorRole::ToLog>(&action)) return word(*log);
    if (const auto* store = std::get_if<CoordinatorRole::ToStore>(&action)) {
      if (const auto* open = std::get_if<OpenStorage>(&store->message)) {
        return (open->away_since ? "open away since " + std::to_string(open->away_since->value)
                                 : "open") +
               to(store->node);
      }
      if (const auto* harden = std::get_if<Harden>(&store->message)) {
        return "harden " + std::to_string(harden->settled.value) + to(store->node);
      }
      if (const auto* lost = std::get_if<LogLost>(&store->message)) {
        return "lost since " + std::to_string(lost->since.value) + to(store->node);
      }
      return "";
    }
    if (const auto* fetch = std::get_if<CoordinatorRole::FetchLogged>(&action)) {
      return "fetch " + std::to_string(fetch->from.value) + "-" + std::to_string(fetch->to.value);
    }
    if (const auto* change = std::get_if<CoordinatorRole::ChangeLogs>(&action)) {
      if (!change->away) return "back with the logger";
      return "away since " + std::to_string(change->away->since.value) + ", used " +
             std::to_string(change->away->used.value);
    }
    if (const auto* gone = std::get_if<CoordinatorRole::DisconnectLogger>(&action)) {
      return "drop log " + std::to_string(gone->node.value) + ": " +
             std::string(error_code_name(gone->why.code));
    }
    if (const auto* gone = std::get_if<CoordinatorRole::Disconnect>(&action)) {
      return "drop image " + std::to_string(gone->node.value) + ": " +
             std::string(error_code_name(gone->why.code));
    }
    if (const auto* over = std::get_if<CoordinatorRole::HandOver>(&action)) {
      return "hand over" + to(over->to);
    }
    if (std::holds_alternative<CoordinatorRole::Ready>(action)) return "ready";
    if (const auto* answer = std::get_if<Answer>(&action)) {
      return (answer->result ? "done " : "failed ") + std::to_string(answer->token.value);
    }
    return "";
  }
  Words words() {
    Words words;
    for (const auto& action : out_) {
      if (std::string one = word(action); !one.empty()) words.push_back(std::move(one));
    }
    out_.clear();
    return words;
  }
  Words connect_log(NodeId node) {
    role_->logger_connected(node, out_);
    return words();
  }
  Words lose_log(NodeId node) {
    role_->logger_disconnected(node, kNow, out_);
    return words();
  }
  Words hear_log(NodeId node, FromLogger message) {
    role_->received(node, std::move(message), kNow, out_);
    return words();
  }
  Words logged(NodeId node, std::uint64_t through) {
    return hear_log(node, Logged{kVolume, kEpoch, {through}});
  }
  Words hear(NodeId node, const FromStorage& message) {
    role_->received(node, message, kNow, out_);
    return words();
  }
  Words hardened(NodeId node, std::uint64_t settled, std::optional<Error> failed = {}) {
    return hear(node, Hardened{kVolume, kEpoch, {settled}, std::move(failed)});
  }
  Words submit(std::uint64_t token) {
    WriteRequest request;
    request.kind = WriteKind::kZero;
    request.extent = {{0}, {1}};
    role_->submit({token}, std::move(request), kNow, out_);
    return words();
  }
  Words tick(std::chrono::nanoseconds now) {
    role_->tick(kNow, now, out_);
    return words();
  }
  static LogOpened opened(std::uint64_t last, std::uint64_t end,
                          std::vector<SequenceRange> holes = {}) {
    return {kVolume, kEpoch, {last}, std::move(holes), {5000}, {}, {end}};
  }
  void open_storages() {
    for (const NodeId node : {kOne, kTwo}) {
      role_->storage_connected(node, out_);
      // (What an image lacks of before the logger went lies beside it.)
      hear(node, StorageOpened{kVolume, kEpoch, role_->away() ? kAway.since : SequenceNumber{10},
                               SequenceNumber{10}});
      hear(node, CaughtUp{kVolume, kEpoch, role_->writes().settled()});
      hear(node, StorageProgress{kVolume, kEpoch, role_->settled(), {10}, 1u << 30});
    }
    words();
  }
  // With the logger; the next write is #19.
  void serve() {
    make(std::nullopt);
    connect_log(kLogger);
    hear_log(kLogger, opened(10, 10));
    logged(kLogger, 10 + kMargin);
    ASSERT_TRUE(role_->ready());
    open_storages();
  }
  // With journals that have the same; the next write is #113.
  void serve_away() {
    make(kAway);
    connect_log(kOne);
    connect_log(kTwo);
    hear_log(kOne, opened(100, 90));
    hear_log(kTwo, opened(100, 90));
    logged(kOne, 112);
    logged(kTwo, 112);
    ASSERT_TRUE(role_->ready());
    open_storages();
  }

  std::optional<CoordinatorRole> role_;
  Actions out_;
};

}  // namespace mariner::replication
