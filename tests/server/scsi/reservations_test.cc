#include "server/scsi/reservations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace mariner::scsi {
namespace {

using enum ReservationType;
using Action = PersistentReserveOut::Action;

NexusId nexus(char name, std::uint8_t isid = 1, std::uint16_t target_port = 1) {
  return {{std::string("iqn.2026-11.org.example:") + name, {0x80, 0, 0, 0, 0, isid}}, target_port};
}
const NexusId kA = nexus('a');
const NexusId kB = nexus('b');
const NexusId kC = nexus('c');

class ReservationsTest : public ::testing::Test {
 protected:
  // "ok", "conflict" or "5/26/00"; what it makes known to whom is in told_.
  std::string apply(const ReserveOut& out, const NexusId& from) {
    told_.clear();
    const Reservations before = state_;
    const Reservations::Outcome outcome = state_.apply(out, from);
    if (const auto* effects = std::get_if<Reservations::Effects>(&outcome)) {
      for (const auto& [to, attention] : effects->attentions) {
        told_ += (told_.empty() ? "" : " ") + std::string(1, to.initiator.name.back());
        told_ += attention == Attention::kReservationsPreempted    ? ":reservations-preempted"
                 : attention == Attention::kReservationsReleased   ? ":released"
                 : attention == Attention::kRegistrationsPreempted ? ":preempted"
                                                                   : ":?";
      }
      return "ok";
    }
    EXPECT_EQ(state_, before) << "what is refused changes nothing";
    if (std::holds_alternative<Reservations::Conflict>(outcome)) return "conflict";
    const Sense& sense = std::get<Sense>(outcome);
    char text[32];
    const auto code = static_cast<unsigned>(sense.code);
    std::snprintf(text, sizeof text, "%x/%02x/%02x", static_cast<unsigned>(sense.key), code >> 8,
                  code & 0xFF);
    return text;
  }
  std::string do_register(const NexusId& from, std::uint64_t key, std::uint64_t action_key) {
    return apply({.action = Action::kRegister, .key = key, .action_key = action_key}, from);
  }
  std::string reserve(const NexusId& from, std::uint64_t key, ReservationType type) {
    return apply({.action = Action::kReserve, .type = code(type), .key = key}, from);
  }
  std::string release(const NexusId& from, std::uint64_t key, ReservationType type) {
    return apply({.action = Action::kRelease, .type = code(type), .key = key}, from);
  }
  std::string preempt(const NexusId& from, std::uint64_t key, std::uint64_t action_key,
                      ReservationType type) {
    return apply(
        {.action = Action::kPreempt, .type = code(type), .key = key, .action_key = action_key},
        from);
  }
  static std::uint8_t code(ReservationType type) { return static_cast<std::uint8_t>(type); }
  // Who may read and write: "a:rw b:r c:".
  std::string access() const {
    std::string out;
    for (const NexusId& of : {kA, kB, kC}) {
      out += (out.empty() ? "" : " ") + std::string(1, of.initiator.name.back()) + ":";
      if (!state_.conflicts(ReservationAccess::kReads, of)) out += "r";
      if (!state_.conflicts(ReservationAccess::kWrites, of)) out += "w";
      EXPECT_FALSE(state_.conflicts(ReservationAccess::kFree, of));
    }
    return out;
  }
  // a: 0xA, b: 0xB.
  void register_two() {
    ASSERT_EQ(do_register(kA, 0, 0xA), "ok");
    ASSERT_EQ(do_register(kB, 0, 0xB), "ok");
  }

  Reservations state_;
  std::string told_;
};

TEST_F(ReservationsTest, WithoutAReservationEverybodyMay) {
  register_two();
  EXPECT_EQ(access(), "a:rw b:rw c:rw");
}

// SPC-4 tables 44 and 54.
TEST_F(ReservationsTest, WhomEachTypeKeepsOut) {
  struct Case {
    ReservationType type;
    const char* access;
  };
  for (const auto& [type, expected] :
       {Case{kWriteExclusive, "a:rw b:r c:r"}, Case{kExclusiveAccess, "a:rw b: c:"},
        Case{kWriteExclusiveRegistrantsOnly, "a:rw b:rw c:r"},
        Case{kExclusiveAccessRegistrantsOnly, "a:rw b:rw c:"},
        Case{kWriteExclusiveAllRegistrants, "a:rw b:rw c:r"},
        Case{kExclusiveAccessAllRegistrants, "a:rw b:rw c:"}}) {
    state_ = {};
    register_two();
    EXPECT_EQ(reserve(kA, 0xA, type), "ok");
    EXPECT_EQ(access(), expected) << int{code(type)};
  }
}

TEST_F(ReservationsTest, ARegistrationNeedsTheRightKey) {
  EXPECT_EQ(do_register(kA, 5, 0xA), "conflict") << "not registered: no key is right but 0";
  EXPECT_EQ(do_register(kA, 0, 0), "ok") << "nothing to do";
  EXPECT_EQ(state_.generation(), 0u);
  EXPECT_EQ(do_register(kA, 0, 0xA), "ok");
  EXPECT_EQ(state_.generation(), 1u);
  EXPECT_EQ(do_register(kA, 0, 0xA1), "conflict");
  EXPECT_EQ(do_register(kA, 0xA, 0xA1), "ok");
  EXPECT_EQ(state_.find(kA)->key, 0xA1u);
  EXPECT_EQ(do_register(kA, 0xA1, 0), "ok");
  EXPECT_EQ(state_.find(kA), nullptr);
  EXPECT_EQ(state_.generation(), 3u);
}

TEST_F(ReservationsTest, TheExistingKeyMayBeIgnored) {
  const auto ignoring = [&](std::uint64_t action_key) {
    return apply(
        {.action = Action::kRegisterAndIgnoreExistingKey, .key = 77, .action_key = action_key}, kA);
  };
  EXPECT_EQ(ignoring(0xA), "ok");
  EXPECT_EQ(ignoring(0xA1), "ok");
  EXPECT_EQ(state_.find(kA)->key, 0xA1u);
  EXPECT_EQ(ignoring(0), "ok");
  EXPECT_EQ(state_.find(kA), nullptr);
  EXPECT_EQ(ignoring(0), "ok");
}

TEST_F(ReservationsTest, ANexusIsAnInitiatorPortAndATargetPort) {
  do_register(kA, 0, 0xA);
  EXPECT_EQ(state_.find(nexus('a', 2)), nullptr) << "another session";
  EXPECT_EQ(state_.find(nexus('a', 1, 2)), nullptr) << "another portal group";
}

TEST_F(ReservationsTest, AllTargetPortsAreRegisteredAsOneAfterAnother) {
  ReserveOut out{.action = Action::kRegister, .action_key = 0xB, .all_target_ports = true};
  out.target_ports = {1, 2, 3};
  EXPECT_EQ(apply(out, kB), "ok");
  EXPECT_EQ(state_.registrations().size(), 3u);
  EXPECT_EQ(state_.find(nexus('b', 1, 2))->key, 0xBu);
  EXPECT_EQ(reserve(kB, 0xB, kWriteExclusive), "ok");
  EXPECT_FALSE(state_.holds(nexus('b', 1, 2))) << "one nexus holds a reservation";
  EXPECT_TRUE(state_.conflicts(ReservationAccess::kWrites, nexus('b', 1, 2)));

  EXPECT_EQ(do_register(nexus('b', 1, 3), 0xB, 0xB3), "ok") << "of this one only";
  out.key = 0xB;
  out.action_key = 0xBB;
  EXPECT_EQ(apply(out, kB), "conflict") << "port 3 has another key";
  out.action = Action::kRegisterAndIgnoreExistingKey;
  EXPECT_EQ(apply(out, kB), "ok");
  EXPECT_EQ(state_.find(nexus('b', 1, 3))->key, 0xBBu);
  EXPECT_TRUE(state_.holds(kB)) << "another key, the same reservation";
  out.action_key = 0;
  EXPECT_EQ(apply(out, kB), "ok");
  EXPECT_TRUE(state_.registrations().empty());
  EXPECT_FALSE(state_.reservation());
}

TEST_F(ReservationsTest, SpecifiedPortsAreRegisteredThroughAllTargetPorts) {
  ReserveOut out{.action = Action::kRegister,
                 .action_key = 0xA,
                 .all_target_ports = true,
                 .target_ports = {1, 2},
                 .specifies_ports = true};
  out.ports = {kB.initiator};
  EXPECT_EQ(do_register(nexus('b', 1, 2), 0, 0xB), "ok");
  EXPECT_EQ(apply(out, kA), "5/26/00") << "b is registered through port 2";
  EXPECT_EQ(do_register(nexus('b', 1, 2), 0xB, 0), "ok");
  EXPECT_EQ(apply(out, kA), "ok");
  EXPECT_EQ(state_.registrations().size(), 4u);
  EXPECT_EQ(state_.find(nexus('b', 1, 2))->key, 0xAu);
}

TEST_F(ReservationsTest, OtherPortsAreRegisteredAllOrNone) {
  ReserveOut out{.action = Action::kRegister, .action_key = 0xA, .specifies_ports = true};
  out.ports = {kB.initiator, kC.initiator};
  EXPECT_EQ(apply(out, kA), "ok");
  EXPECT_EQ(state_.registrations().size(), 3u);
  EXPECT_EQ(state_.find(kC)->key, 0xAu);
  EXPECT_EQ(state_.generation(), 1u);

  const NexusId other = nexus('d');
  out.ports = {nexus('e').initiator, kB.initiator};
  EXPECT_EQ(apply(out, other), "5/26/00") << "b is registered";
  out.ports = {nexus('e').initiator, nexus('e').initiator};
  EXPECT_EQ(apply(out, other), "5/26/00");
  out.key = 0xA;
  out.ports = {nexus('e').initiator};
  EXPECT_EQ(apply(out, kA), "5/26/00") << "who is registered cannot";
  out.action = Action::kRegisterAndIgnoreExistingKey;
  EXPECT_EQ(apply(out, other), "5/26/00");
}

TEST_F(ReservationsTest, RegistrationsAreBounded) {
  for (std::size_t i = 0; i < Reservations::kRegistrationsMax; ++i) {
    NexusId id = kA;
    id.initiator.name += std::to_string(i);
    ASSERT_EQ(do_register(id, 0, 1), "ok");
  }
  EXPECT_EQ(do_register(kB, 0, 1), "5/55/04");
}

TEST_F(ReservationsTest, OnlyWhoIsRegisteredMayDoMore) {
  do_register(kA, 0, 0xA);
  for (const Action action : {Action::kReserve, Action::kRelease, Action::kClear, Action::kPreempt,
                              Action::kPreemptAndAbort, Action::kRegisterAndMove}) {
    ReserveOut out{.action = action, .type = 1, .key = 0xA, .action_key = 0xA};
    out.ports = {kC.initiator};
    out.target_port = 1;
    EXPECT_EQ(apply(out, kB), "conflict");
    out.key = 0xB;
    EXPECT_EQ(apply(out, kA), "conflict") << "the wrong key";
  }
}

TEST_F(ReservationsTest, ReservingAgainIsNoError) {
  register_two();
  EXPECT_EQ(reserve(kA, 0xA, kWriteExclusive), "ok");
  EXPECT_EQ(reserve(kA, 0xA, kWriteExclusive), "ok");
  EXPECT_EQ(reserve(kA, 0xA, kExclusiveAccess), "conflict");
  EXPECT_EQ(reserve(kB, 0xB, kWriteExclusive), "conflict");
  EXPECT_EQ(state_.generation(), 2u) << "not counted";
}

TEST_F(ReservationsTest, WhereAllRegistrantsHoldEachMayReserveAgain) {
  register_two();
  EXPECT_EQ(reserve(kA, 0xA, kWriteExclusiveAllRegistrants), "ok");
  EXPECT_EQ(reserve(kB, 0xB, kWriteExclusiveAllRegistrants), "ok");
  EXPECT_EQ(reserve(kB, 0xB, kWriteExclusive), "conflict");
  EXPECT_TRUE(state_.holds(kB));
}

TEST_F(ReservationsTest, ScopeAndTypeMustExist) {
  do_register(kA, 0, 0xA);
  EXPECT_EQ(apply({.action = Action::kReserve, .scope = 1, .type = 1, .key = 0xA}, kA), "5/24/00");
  for (const std::uint8_t type : std::initializer_list<std::uint8_t>{0, 2, 4, 9, 15}) {
    EXPECT_EQ(apply({.action = Action::kReserve, .type = type, .key = 0xA}, kA), "5/24/00");
  }
}

TEST_F(ReservationsTest, Releasing) {
  register_two();
  EXPECT_EQ(release(kA, 0xA, kWriteExclusive), "ok") << "there is none";
  reserve(kA, 0xA, kWriteExclusive);
  EXPECT_EQ(release(kB, 0xB, kWriteExclusive), "ok") << "not the holder: nothing happens";
  EXPECT_TRUE(state_.holds(kA));
  EXPECT_EQ(release(kA, 0xA, kExclusiveAccess), "5/26/04");
  EXPECT_EQ(release(kA, 0xA, kWriteExclusive), "ok");
  EXPECT_EQ(told_, "") << "nobody could rely on it";
  EXPECT_FALSE(state_.reservation());
  reserve(kA, 0xA, kExclusiveAccessRegistrantsOnly);
  EXPECT_EQ(release(kA, 0xA, kExclusiveAccessRegistrantsOnly), "ok");
  EXPECT_EQ(told_, "b:released");
}

TEST_F(ReservationsTest, TheReservationGoesWithItsHolder) {
  register_two();
  reserve(kA, 0xA, kWriteExclusiveRegistrantsOnly);
  EXPECT_EQ(do_register(kB, 0xB, 0), "ok");
  EXPECT_TRUE(state_.reservation());
  do_register(kB, 0, 0xB);
  EXPECT_EQ(do_register(kA, 0xA, 0), "ok");
  EXPECT_EQ(told_, "b:released");
  EXPECT_FALSE(state_.reservation());

  do_register(kA, 0, 0xA);
  reserve(kA, 0xA, kExclusiveAccess);
  do_register(kA, 0xA, 0);
  EXPECT_EQ(told_, "");
  EXPECT_FALSE(state_.reservation());
}

TEST_F(ReservationsTest, AReservationOfAllRegistrantsGoesWithTheLast) {
  register_two();
  reserve(kA, 0xA, kExclusiveAccessAllRegistrants);
  do_register(kA, 0xA, 0);
  EXPECT_TRUE(state_.holds(kB));
  EXPECT_EQ(access(), "a: b:rw c:");
  do_register(kB, 0xB, 0);
  EXPECT_FALSE(state_.reservation());
}

TEST_F(ReservationsTest, AChangedKeyKeepsTheReservation) {
  register_two();
  reserve(kA, 0xA, kWriteExclusive);
  do_register(kA, 0xA, 0xA1);
  EXPECT_TRUE(state_.holds(kA));
}

TEST_F(ReservationsTest, Clearing) {
  register_two();
  reserve(kA, 0xA, kExclusiveAccess);
  EXPECT_EQ(apply({.action = Action::kClear, .key = 0xB}, kB), "ok");
  EXPECT_EQ(told_, "a:reservations-preempted");
  EXPECT_TRUE(state_.registrations().empty());
  EXPECT_FALSE(state_.reservation());
  EXPECT_EQ(state_.generation(), 3u);
}

TEST_F(ReservationsTest, PreemptingTheHolderTakesItsPlace) {
  register_two();
  do_register(kC, 0, 0xC);
  reserve(kA, 0xA, kWriteExclusiveRegistrantsOnly);
  EXPECT_EQ(preempt(kB, 0xB, 0xA, kWriteExclusiveRegistrantsOnly), "ok");
  EXPECT_EQ(told_, "a:preempted");
  EXPECT_TRUE(state_.holds(kB));
  EXPECT_EQ(access(), "a:r b:rw c:rw");
  EXPECT_EQ(state_.generation(), 4u);
  EXPECT_EQ(preempt(kC, 0xC, 0xB, kExclusiveAccess), "ok");
  EXPECT_EQ(told_, "b:preempted");
  EXPECT_EQ(access(), "a: b: c:rw");
}

TEST_F(ReservationsTest, WhoIsLeftHearsOfAnotherType) {
  register_two();
  do_register(kC, 0, 0xC);
  reserve(kA, 0xA, kWriteExclusiveRegistrantsOnly);
  EXPECT_EQ(preempt(kB, 0xB, 0xA, kWriteExclusive), "ok");
  EXPECT_EQ(told_, "a:preempted c:released");
}

TEST_F(ReservationsTest, PreemptingOthersRemovesThem) {
  register_two();
  do_register(kC, 0, 0xB);
  reserve(kA, 0xA, kWriteExclusive);
  EXPECT_EQ(preempt(kA, 0xA, 0xB, kExclusiveAccess), "ok");
  EXPECT_EQ(told_, "b:preempted c:preempted");
  EXPECT_EQ(state_.reservation()->type, kWriteExclusive) << "it stays as it is";
  EXPECT_EQ(preempt(kA, 0xA, 0xB, kExclusiveAccess), "conflict") << "nobody has that key";
  EXPECT_EQ(preempt(kA, 0xA, 0, kExclusiveAccess), "5/26/00");
}

TEST_F(ReservationsTest, WithoutAReservationOnlyRegistrationsGo) {
  register_two();
  EXPECT_EQ(preempt(kA, 0xA, 0xB, kExclusiveAccess), "ok");
  EXPECT_FALSE(state_.reservation());
  EXPECT_EQ(state_.registrations().size(), 1u);
}

TEST_F(ReservationsTest, PreemptingAllRegistrants) {
  register_two();
  do_register(kC, 0, 0xC);
  reserve(kA, 0xA, kWriteExclusiveAllRegistrants);
  EXPECT_EQ(preempt(kB, 0xB, 0xC, kExclusiveAccess), "ok") << "one of them: the reservation stays";
  EXPECT_EQ(told_, "c:preempted");
  EXPECT_EQ(state_.reservation()->type, kWriteExclusiveAllRegistrants);
  EXPECT_EQ(preempt(kB, 0xB, 0, kExclusiveAccess), "ok");
  EXPECT_EQ(told_, "a:preempted");
  EXPECT_EQ(access(), "a: b:rw c:");
  EXPECT_EQ(state_.registrations().size(), 1u);
}

TEST_F(ReservationsTest, AHolderMayPreemptItselfForAnotherType) {
  register_two();
  reserve(kA, 0xA, kWriteExclusiveRegistrantsOnly);
  EXPECT_EQ(preempt(kA, 0xA, 0xA, kExclusiveAccess), "ok");
  EXPECT_EQ(state_.reservation()->type, kExclusiveAccess);
  EXPECT_TRUE(state_.holds(kA));
  EXPECT_EQ(told_, "b:released");
}

TEST_F(ReservationsTest, Moving) {
  register_two();
  reserve(kA, 0xA, kExclusiveAccess);
  ReserveOut out{.action = Action::kRegisterAndMove, .key = 0xA, .action_key = 0xC};
  out.ports = {kC.initiator};
  out.target_port = 1;
  EXPECT_EQ(apply(out, kA), "ok");
  EXPECT_TRUE(state_.holds(kC));
  EXPECT_EQ(state_.find(kC)->key, 0xCu);
  EXPECT_NE(state_.find(kA), nullptr);
  EXPECT_EQ(state_.generation(), 3u);
  EXPECT_EQ(apply(out, kA), "conflict") << "not the holder any more";

  out.key = 0xC;
  out.ports = {kA.initiator};
  out.action_key = 0xA2;
  out.unregister = true;
  EXPECT_EQ(apply(out, kC), "ok");
  EXPECT_TRUE(state_.holds(kA));
  EXPECT_EQ(state_.find(kA)->key, 0xA2u);
  EXPECT_EQ(state_.find(kC), nullptr);
}

TEST_F(ReservationsTest, WhatCannotBeMoved) {
  register_two();
  ReserveOut out{.action = Action::kRegisterAndMove, .key = 0xA, .action_key = 0xC};
  out.ports = {kC.initiator};
  out.target_port = 1;
  EXPECT_EQ(apply(out, kA), "conflict") << "there is no reservation";
  reserve(kA, 0xA, kExclusiveAccess);
  out.ports = {kA.initiator};
  EXPECT_EQ(apply(out, kA), "5/26/00") << "to itself";
  out.ports = {kC.initiator};
  out.action_key = 0;
  EXPECT_EQ(apply(out, kA), "5/26/00");
  release(kA, 0xA, kExclusiveAccess);
  reserve(kA, 0xA, kExclusiveAccessAllRegistrants);
  out.action_key = 0xC;
  EXPECT_EQ(apply(out, kA), "conflict");
}

TEST_F(ReservationsTest, TheLastRegistrationSaysWhetherAllPersists) {
  apply({.action = Action::kRegister, .action_key = 0xA, .persists = true}, kA);
  EXPECT_TRUE(state_.persists());
  reserve(kA, 0xA, kWriteExclusive);
  EXPECT_TRUE(state_.persists());
  do_register(kB, 0, 0xB);
  EXPECT_FALSE(state_.persists());
}

TEST_F(ReservationsTest, WhatIsRestoredIsInForce) {
  register_two();
  reserve(kA, 0xA, kExclusiveAccess);
  const Reservations restored = Reservations::restored(
      {.registrations = state_.registrations(), .reservation = state_.reservation()});
  EXPECT_TRUE(restored.persists());
  EXPECT_EQ(restored.generation(), 0u);
  state_ = restored;
  EXPECT_EQ(access(), "a:rw b: c:");
}

TEST_F(ReservationsTest, WhatIsRestoredIsAsItWasKept) {
  register_two();
  const Reservations restored = Reservations::restored(
      {.registrations = state_.registrations(), .persists = false, .generation = 7});
  EXPECT_FALSE(restored.persists());
  EXPECT_EQ(restored.generation(), 7u);
}

TEST_F(ReservationsTest, AGenerationThatFollowsIsAboveBoth) {
  const Reservations seven = Reservations::restored({.generation = 7});
  EXPECT_EQ(seven.following(3).generation(), 8u);
  EXPECT_EQ(seven.following(9).generation(), 10u);
}

}  // namespace
}  // namespace mariner::scsi
