#include "server/node/reservation_store.h"

#include <gtest/gtest.h>

#include "tests/server/node/node_parts.h"

namespace mariner::node {
namespace {

using scsi::NexusId;
using scsi::PersistentReserveOut;
using scsi::Reservations;

const NexusId kA{{"iqn.2026-11.org.example:a", {0x80, 1, 2, 3, 4, 5}}, 1};
const NexusId kB{{"iqn.2026-11.org.example:b", {0x80, 1, 2, 3, 4, 6}}, 1};

Reservations some() {
  Reservations state;
  (void)state.apply(
      {.action = PersistentReserveOut::Action::kRegister, .action_key = 0xA, .persists = true}, kA);
  (void)state.apply({.action = PersistentReserveOut::Action::kRegister,
                     .action_key = UINT64_MAX,
                     .persists = true,
                     .all_target_ports = true,
                     .target_ports = {1, 2}},
                    kB);
  (void)state.apply({.action = PersistentReserveOut::Action::kReserve, .type = 5, .key = 0xA}, kA);
  return state;
}

TEST(ReservationStore, ThereAndBack) {
  const Reservations state = some();
  const Result<Reservations> back = from_meta(to_meta(state));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->registrations(), state.registrations());
  EXPECT_EQ(back->reservation(), state.reservation());
  EXPECT_TRUE(back->persists());
  EXPECT_EQ(from_meta({}).value(), Reservations{});
}

TEST(ReservationStore, DamageIsFound) {
  meta::Reservations saved = to_meta(some());
  saved.mutable_registrations(0)->mutable_nexus()->set_isid("short");
  EXPECT_EQ(from_meta(saved).error().code, ErrorCode::kCorrupt);
  saved = to_meta(some());
  saved.set_type(2);
  EXPECT_EQ(from_meta(saved).error().code, ErrorCode::kCorrupt);
  saved = to_meta(some());
  saved.mutable_registrations(1)->set_key(0);
  EXPECT_EQ(from_meta(saved).error().code, ErrorCode::kCorrupt);
}

TEST(ReservationStore, KeepsThoseOfEachUnitUntilItGoes) {
  testing::NodeParts parts;
  ServedVolume& volume = parts.create("db1");
  const std::string unit = MetaStore::unit_of_volume(volume.meta.id());
  const auto options = reservation_options(parts.store(), unit);
  ASSERT_TRUE(options);
  EXPECT_EQ(options->restored, Reservations{});
  bool saved = false;
  options->save(some(), [&](const Result<void>& r) { saved = r.has_value(); });
  EXPECT_TRUE(saved);
  parts.stop();
  parts.start();
  EXPECT_EQ(reservation_options(parts.store(), unit)->restored.registrations(),
            some().registrations());
  EXPECT_EQ(reservation_options(parts.store(), MetaStore::unit_of_view("db1"))->restored,
            Reservations{});
  ASSERT_TRUE(parts.remove("db1"));
  EXPECT_EQ(reservation_options(parts.store(), unit)->restored, Reservations{});
}

TEST(ReservationStore, WhatPersistsNoLongerIsRemoved) {
  testing::NodeParts parts;
  const auto options = reservation_options(parts.store(), "volume/x");
  options->save(some(), [](const Result<void>&) {});
  options->save(Reservations{}, [](const Result<void>&) {});
  EXPECT_EQ(reservation_options(parts.store(), "volume/x")->restored, Reservations{});
}

}  // namespace
}  // namespace mariner::node
