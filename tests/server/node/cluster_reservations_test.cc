#include "server/node/cluster_reservations.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/server/manager/memory_store.h"

namespace mariner::node {
namespace {

using namespace std::chrono_literals;
using manager::MemoryCluster;
using manager::MemoryStore;
using replication::NodeId;
using scsi::Reservations;

constexpr VolumeId kVolume{7};
const scsi::NexusId kHost{{"iqn.2026-11.org.example:a", {0x80, 1, 2, 3, 4, 5}}, 2};

// One node, with its own way to the store.
struct Member {
  Member(test::ManualExecutor& executor, MemoryCluster& cluster, NodeId self)
      : store(executor, cluster, {}),
        lease(store, executor, {.key = manager::alive_key(self), .value = "n"}, {}),
        reservations(store, executor, lease, self),
        options(reservations.options(kVolume)) {
    lease.start();
    executor.advance(1s);
  }
  void cut(bool is) {
    auto faults = store.faults();
    faults.partitioned = is;
    store.set_faults(faults);
  }

  MemoryStore store;
  manager::NodeLease lease;
  ClusterReservations reservations;
  scsi::ReservationOptions options;
};

class ClusterReservationsTest : public ::testing::Test {
 protected:
  static Reservations registered(std::uint64_t key, bool persists) {
    Reservations state;
    (void)state.apply({.action = scsi::PersistentReserveOut::Action::kRegister,
                       .action_key = key,
                       .persists = persists},
                      kHost);
    return state;
  }
  std::optional<ErrorCode> save(Member& member, const Reservations& state) {
    std::optional<Result<void>> result;
    member.options.save(state, [&](Result<void> r) { result = std::move(r); });
    executor_.advance(10s);
    EXPECT_TRUE(result.has_value());
    if (!result || result->has_value()) return std::nullopt;
    return result->error().code;
  }
  Result<Reservations> fetch(Member& member) {
    std::optional<Result<Reservations>> result;
    member.reservations.fetch(kVolume, [&](Result<Reservations> r) { result = std::move(r); });
    executor_.advance(10s);
    if (!result) return Error{ErrorCode::kAborted, "no answer yet"};
    return *std::move(result);
  }

  // The record names it as who coordinates.
  void elect(NodeId node, std::uint64_t epoch, NodeId wanted = {}) {
    manager::VolumeRecord record{kVolume, {epoch}, node, {3}, {{1}, {2}}};
    record.wanted = wanted;
    ASSERT_TRUE(cluster_.commit({.puts = {{manager::volume_key(kVolume), encode(record)}}}));
  }
  // ... and it has read what was kept.
  void begin(Member& member, NodeId node, std::uint64_t epoch) {
    elect(node, epoch);
    EXPECT_TRUE(fetch(member));
  }

  test::ManualExecutor executor_;
  MemoryCluster cluster_{executor_};
  Member one_{executor_, cluster_, NodeId{1}};
  Member two_{executor_, cluster_, NodeId{2}};
};

TEST_F(ClusterReservationsTest, WhatOneKeepsTheOtherReads) {
  EXPECT_TRUE(one_.options.saves_all);
  begin(one_, NodeId{1}, 4);
  EXPECT_EQ(fetch(two_)->registrations().size(), 0u);
  for (const bool persists : {true, false}) {
    const Reservations state = registered(0xA, persists);
    EXPECT_EQ(save(one_, state), std::nullopt);
    const Result<Reservations> read = fetch(two_);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->registrations(), state.registrations());
    EXPECT_EQ(read->persists(), persists);
    EXPECT_EQ(read->generation(), state.generation());
  }
}

TEST_F(ClusterReservationsTest, WithoutItsLeaseNobodySaves) {
  begin(one_, NodeId{1}, 4);
  EXPECT_EQ(save(one_, registered(0xA, true)), std::nullopt);
  one_.lease.stop([] {});
  executor_.advance(1s);
  EXPECT_EQ(save(one_, registered(0xB, true)), ErrorCode::kUnavailable);
  EXPECT_EQ(fetch(two_)->registrations()[0].key, 0xAu);
}

// A volume that is let go of on purpose: what was under way to the store when the next one has read
// it would be enforced by nobody, and its initiator be told that it is.
TEST_F(ClusterReservationsTest, WhoHasLetGoSavesNothingMore) {
  begin(one_, NodeId{1}, 4);
  EXPECT_EQ(save(one_, registered(0xA, true)), std::nullopt);
  elect(NodeId{}, 4);
  EXPECT_EQ(save(one_, registered(0xB, true)), ErrorCode::kUnavailable);
  begin(two_, NodeId{2}, 5);
  ASSERT_TRUE(one_.lease.held());
  EXPECT_EQ(save(one_, registered(0xC, true)), ErrorCode::kUnavailable);
  EXPECT_EQ(fetch(two_)->registrations()[0].key, 0xAu);
  EXPECT_EQ(save(two_, registered(0xD, true)), std::nullopt);
}

TEST_F(ClusterReservationsTest, WhatWasOfAnEarlierEpochIsNotSavedInALaterOne) {
  begin(one_, NodeId{1}, 4);
  begin(two_, NodeId{2}, 5);
  EXPECT_EQ(save(two_, registered(0xA, true)), std::nullopt);
  elect(NodeId{1}, 6);
  EXPECT_EQ(save(one_, registered(0xB, true)), ErrorCode::kUnavailable);
  // Nor while what was kept is being read.
  std::optional<Result<Reservations>> kept;
  one_.reservations.fetch(kVolume, [&](Result<Reservations> r) { kept = std::move(r); });
  std::optional<Result<void>> saved;
  one_.options.save(registered(0xC, true), [&](Result<void> r) { saved = std::move(r); });
  executor_.advance(10s);
  ASSERT_TRUE(kept && saved);
  EXPECT_EQ(saved->error().code, ErrorCode::kUnavailable);
  EXPECT_EQ((*kept)->registrations()[0].key, 0xAu);
  EXPECT_EQ(save(one_, registered(0xD, true)), std::nullopt);
}

TEST_F(ClusterReservationsTest, AWishForAnotherNodeDoesNotKeepFromSaving) {
  begin(one_, NodeId{1}, 4);
  for (const std::uint64_t key : {0xA, 0xB}) {
    elect(NodeId{1}, 4, NodeId{2});
    EXPECT_EQ(save(one_, registered(key, true)), std::nullopt);
    EXPECT_EQ(fetch(two_)->registrations()[0].key, key);
  }
}

// The node believes in its lease, the store does not any more.
TEST_F(ClusterReservationsTest, TheStoreSaysWhetherTheLeaseHolds) {
  begin(one_, NodeId{1}, 4);
  const std::string key = manager::alive_key(NodeId{1});
  ASSERT_TRUE(cluster_.commit({.deletes = {key}}).has_value());
  std::optional<Result<void>> result;
  ASSERT_TRUE(one_.lease.held());
  one_.options.save(registered(0xA, true), [&](Result<void> r) { result = std::move(r); });
  executor_.advance(10s);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(fetch(two_)->registrations().size(), 0u);
}

TEST_F(ClusterReservationsTest, ReadingIsTriedUntilTheStoreAnswers) {
  begin(one_, NodeId{1}, 4);
  EXPECT_EQ(save(one_, registered(0xA, true)), std::nullopt);
  two_.cut(true);
  std::optional<Result<Reservations>> result;
  two_.reservations.fetch(kVolume, [&](Result<Reservations> r) { result = std::move(r); });
  executor_.advance(20s);
  EXPECT_FALSE(result.has_value());
  two_.cut(false);
  executor_.advance(10s);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ((*result)->registrations()[0].key, 0xAu);
}

TEST_F(ClusterReservationsTest, WhatCannotBeUnderstoodIsAnError) {
  ASSERT_TRUE(cluster_.commit({.puts = {{reservations_key(kVolume), "\xff\xff"}}}).has_value());
  EXPECT_EQ(fetch(one_).error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace mariner::node
