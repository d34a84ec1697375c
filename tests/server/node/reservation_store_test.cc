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

// Of a name that is no UTF-8, which no login and no TransportID brings any more.
Reservations of_old() {
  const NexusId nexus{{"iqn.x\xFF\xC3", {0, 0, 0, 0, 0, 1}}, 1};
  Reservations state;
  (void)state.apply(
      {.action = PersistentReserveOut::Action::kRegister, .action_key = 0xA, .persists = true},
      nexus);
  (void)state.apply({.action = PersistentReserveOut::Action::kReserve, .type = 1, .key = 0xA},
                    nexus);
  return state;
}

TEST(ReservationStore, WhateverBytesANameHasTheyAreReadAgain) {
  for (const Reservations& state : {some(), of_old()}) {
    meta::Reservations read;
    ASSERT_TRUE(read.ParseFromString(to_meta(state).SerializeAsString()));
    const Result<Reservations> back = from_meta(read);
    ASSERT_TRUE(back);
    EXPECT_EQ(back->registrations(), state.registrations());
    EXPECT_EQ(back->reservation(), state.reservation());
  }
}

// As it was written when the field was a string: the same bytes.
TEST(ReservationStore, WhatWasStoredAsAStringIsRead) {
  const std::string nexus(
      "\x0A\x02"
      "a\xFF"
      "\x12\x06\x80\x01\x02\x03\x04\x05\x18\x01");
  const std::string key("\x19\x0A\0\0\0\0\0\0\0", 9);
  const std::string stored = "\x0A\x19\x0A\x0E" + nexus + key;
  ASSERT_EQ(nexus.size(), 14u);
  meta::Reservations read;
  ASSERT_TRUE(read.ParseFromString(stored));
  const Result<Reservations> back = from_meta(read);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->registrations(),
            (std::vector<scsi::Registration>{{{{"a\xFF", {0x80, 1, 2, 3, 4, 5}}, 1}, 0xA}}));
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
  reservation_options(parts.store(), unit)->save(of_old(), [](const Result<void>& r) {
    EXPECT_TRUE(r);
  });
  parts.stop();
  parts.start();
  EXPECT_EQ(reservation_options(parts.store(), unit)->restored.registrations(),
            of_old().registrations());
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
