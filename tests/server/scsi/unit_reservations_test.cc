#include "server/scsi/unit_reservations.h"

#include <deque>

#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

using testing::Outcome;
using testing::Rig;

constexpr std::string_view kRead = "28 00 00 00 00 00 00 00 01 00";
constexpr std::string_view kWrite = "2a 00 00 00 00 00 00 00 01 00";
constexpr std::string_view kInquiry = "12 00 00 00 24 00";
constexpr std::string_view kReserve6 = "16 00 00 00 00 00";
constexpr std::string_view kRelease6 = "17 00 00 00 00 00";
constexpr std::string_view kReadKeys = "5e 00 00 00 00 00 00 00 ff 00";

// A parameter list of PERSISTENT RESERVE OUT.
std::string reserve_list(char key, char action_key, char flags = 0) {
  std::string list(24, '\0');
  list[7] = key;
  list[15] = action_key;
  list[20] = flags;
  return list;
}
std::string reserve_cdb(int action, int type = 0) {
  char text[64];
  std::snprintf(text, sizeof text, "5f %02x %02x 00 00 00 00 00 18 00", action, type);
  return text;
}

class UnitReservationsTest : public ::testing::Test {
 protected:
  std::string a(std::string_view cdb, std::string_view data = {}) {
    return rig_.send(cdb, data).verdict();
  }
  std::string b(std::string_view cdb, std::string_view data = {}) {
    return rig_.send_from(b_, cdb, data).verdict();
  }
  const std::string block_ = std::string(512, 'x');
  Rig rig_;
  std::shared_ptr<Nexus> b_ = rig_.attach("iqn.2026-11.org.example:b");
};

TEST_F(UnitReservationsTest, AReservationKeepsOthersOut) {
  EXPECT_EQ(a(reserve_cdb(0), reserve_list(0, 'A')), "good");
  EXPECT_EQ(a(reserve_cdb(1, 3), reserve_list('A', 0)), "good");
  EXPECT_EQ(b(kRead), "reservation conflict");
  EXPECT_EQ(b(kWrite, block_), "reservation conflict");
  EXPECT_EQ(b("5a 00 08 00 00 00 00 00 ff 00"), "reservation conflict") << "MODE SENSE";
  EXPECT_EQ(b(kInquiry), "good");
  EXPECT_EQ(b("00"), "good");
  EXPECT_EQ(b("25"), "good");
  EXPECT_EQ(b("1b 00 00 00 01 00"), "good") << "starting a unit";
  EXPECT_EQ(b("1b 00 00 00 00 00"), "reservation conflict") << "stopping it";
  EXPECT_EQ(b("4d 00 40 00 00 00 00 00 ff"), "good") << "LOG SENSE";
  EXPECT_EQ(b("4c 02 40"), "reservation conflict") << "LOG SELECT";
  EXPECT_EQ(b("1d 04"), "reservation conflict") << "SEND DIAGNOSTIC";
  EXPECT_EQ(b("1c 01 00 00 ff"), "reservation conflict") << "RECEIVE DIAGNOSTIC RESULTS";
  EXPECT_EQ(b("3b 0a"), "reservation conflict") << "WRITE BUFFER";
  EXPECT_EQ(b("3c 0b 00 00 00 00 00 00 04"), "reservation conflict") << "READ BUFFER";
  EXPECT_EQ(b(kReadKeys), "good");
  EXPECT_EQ(a(kWrite, block_), "good");
  EXPECT_EQ(b(reserve_cdb(1, 3), reserve_list('B', 0)), "reservation conflict");
}

// The rows of the tables of SPC-4 5.13.1 and SBC-3 table 13, for the table's own commands: who is
// allowed in the presence of the write exclusive and of the exclusive access types.
struct Row {
  std::string_view cdb;
  std::string_view passes;  // "all", "readers" or "nobody"
};
constexpr Row kRows[] = {
    {"00", "all"},                             // TEST UNIT READY
    {"03", "all"},                             // REQUEST SENSE
    {"12", "all"},                             // INQUIRY
    {"25", "all"},                             // READ CAPACITY(10)
    {"9e 10", "all"},                          // READ CAPACITY(16)
    {"a0", "all"},                             // REPORT LUNS
    {"a3 0a", "all"},                          // REPORT TARGET PORT GROUPS
    {"4d 00 40", "all"},                       // LOG SENSE
    {"5e 00", "all"},                          // PERSISTENT RESERVE IN
    {"1e 00 00 00 00", "all"},                 // PREVENT ALLOW MEDIUM REMOVAL, PREVENT=0
    {"1b 00 00 00 01", "all"},                 // START STOP UNIT, START=1, POWER CONDITION=0
    {"1b 00 00 00 03", "all"},                 // and LOEJ
    {"84 05", "all"},                          // RECEIVE COPY STATUS(LID4)
    {"84 07", "all"},                          // RECEIVE ROD TOKEN INFORMATION
    {"84 08", "all"},                          // REPORT ALL ROD TOKENS
    {"83 1c", "all"},                          // COPY OPERATION ABORT
    {"08", "readers"},                         // READ(6)
    {"28", "readers"},                         // READ(10)
    {"a8", "readers"},                         // READ(12)
    {"88", "readers"},                         // READ(16)
    {"2f", "readers"},                         // VERIFY(10)
    {"34", "readers"},                         // PRE-FETCH(10)
    {"9e 12", "readers"},                      // GET LBA STATUS
    {"1a 00 08", "readers"},                   // MODE SENSE(6)
    {"5a 00 08", "readers"},                   // MODE SENSE(10)
    {"1c 01", "readers"},                      // RECEIVE DIAGNOSTIC RESULTS
    {"3c 0b", "readers"},                      // READ BUFFER
    {"37", "readers"},                         // READ DEFECT DATA(10)
    {"a3 0c", "readers"},                      // REPORT SUPPORTED OPERATION CODES
    {"a3 0d", "readers"},                      // REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS
    {"83 10", "readers"},                      // POPULATE TOKEN
    {"84 00", "nobody"},                       // RECEIVE COPY RESULTS
    {"84 03", "nobody"},                       // of the operating parameters
    {"83 00", "nobody"},                       // EXTENDED COPY
    {"83 11", "nobody"},                       // WRITE USING TOKEN
    {"0a", "nobody"},                          // WRITE(6)
    {"2a", "nobody"},                          // WRITE(10)
    {"2e", "nobody"},                          // WRITE AND VERIFY(10)
    {"35", "nobody"},                          // SYNCHRONIZE CACHE(10)
    {"41 00 00 00 00 00 00 00 01", "nobody"},  // WRITE SAME(10)
    {"42", "nobody"},                          // UNMAP
    {"89", "nobody"},                          // COMPARE AND WRITE
    {"8b", "nobody"},                          // ORWRITE(16)
    {"9c", "nobody"},                          // WRITE ATOMIC(16)
    {"48 82 00 00 00 00 00 00 01", "nobody"},  // SANITIZE, with a list that it must not have
    {"15 10", "nobody"},                       // MODE SELECT(6)
    {"4c 02 40", "nobody"},                    // LOG SELECT
    {"1d 04", "nobody"},                       // SEND DIAGNOSTIC
    {"3b 0a", "nobody"},                       // WRITE BUFFER
    {"1e 00 00 00 01", "nobody"},              // PREVENT ALLOW MEDIUM REMOVAL, PREVENT=1
    {"1b 00 00 00 00", "nobody"},              // START STOP UNIT, START=0
    {"1b 00 00 00 02", "nobody"},              // and LOEJ
    {"1b 00 00 00 11", "nobody"},              // POWER CONDITION
};

// To a new unit each: some of these commands would change what the next one finds.
std::string verdict_under(int type, std::string_view cdb, bool registered) {
  Rig rig({.removable = true});
  const auto other = rig.attach("iqn.2026-11.org.example:b");
  rig.send(reserve_cdb(0), reserve_list(0, 'A'));
  rig.send(reserve_cdb(1, type), reserve_list('A', 0));
  if (registered) rig.send_from(other, reserve_cdb(0), reserve_list(0, 'B'));
  return rig.send_from(other, cdb).verdict();
}

TEST(ReservationTable, WithoutRegistration) {
  for (const auto& [cdb, passes] : kRows) {
    for (const int type : {1, 5, 7}) {
      EXPECT_EQ(verdict_under(type, cdb, false) == "reservation conflict", passes == "nobody")
          << cdb << " under type " << type;
    }
    for (const int type : {3, 6, 8}) {
      EXPECT_EQ(verdict_under(type, cdb, false) == "reservation conflict", passes != "all")
          << cdb << " under type " << type;
    }
  }
}
TEST(ReservationTable, RegisteredOnesPassTheTypesForRegistrants) {
  for (const auto& [cdb, passes] : kRows) {
    for (const int type : {5, 6, 7, 8}) {
      EXPECT_NE(verdict_under(type, cdb, true), "reservation conflict")
          << cdb << " under type " << type;
    }
    EXPECT_EQ(verdict_under(1, cdb, true) == "reservation conflict", passes == "nobody") << cdb;
    EXPECT_EQ(verdict_under(3, cdb, true) == "reservation conflict", passes != "all") << cdb;
  }
}

TEST_F(UnitReservationsTest, PreemptionReachesThePreempted) {
  a(reserve_cdb(0), reserve_list(0, 'A'));
  a(reserve_cdb(1, 5), reserve_list('A', 0));
  EXPECT_EQ(b(reserve_cdb(0), reserve_list(0, 'B')), "good");
  EXPECT_EQ(b(reserve_cdb(5, 5), reserve_list('B', 'A')), "good");
  EXPECT_EQ(a(kRead), "6/2A/05") << "REGISTRATIONS PREEMPTED";
  EXPECT_EQ(a(kWrite, block_), "reservation conflict");
  EXPECT_EQ(b(kWrite, block_), "good");
}

// Who preempts and aborts hears of it when nothing of the other can land any more.
TEST_F(UnitReservationsTest, PreemptAndAbortWaitsForWhatWasBegun) {
  a(reserve_cdb(0), reserve_list(0, 'A'));
  b(reserve_cdb(0), reserve_list(0, 'B'));
  a(reserve_cdb(1, 5), reserve_list('A', 0));
  rig_.layer->hold();
  const auto write = rig_.start(kWrite, block_);
  const auto nexus = std::exchange(rig_.nexus, b_);
  const auto preempt = rig_.start(reserve_cdb(5, 5), reserve_list('B', 'A'));
  rig_.nexus = nexus;
  EXPECT_FALSE(preempt->has_value());
  rig_.layer->release();
  EXPECT_TRUE(write->has_value());
  ASSERT_TRUE(preempt->has_value());
  EXPECT_EQ((*preempt)->verdict(), "good");
}

TEST_F(UnitReservationsTest, Reserve6KeepsOthersOutUntilItIsReleased) {
  EXPECT_EQ(a(kReserve6), "good");
  EXPECT_EQ(a(kReserve6), "good");
  EXPECT_EQ(b("00"), "reservation conflict");
  EXPECT_EQ(b(kRead), "reservation conflict");
  EXPECT_EQ(b(kReserve6), "reservation conflict");
  EXPECT_EQ(b(kInquiry), "good");
  EXPECT_EQ(b("4d 00 40 00 00 00 00 00 ff"), "good") << "LOG SENSE";
  EXPECT_EQ(b("1e 00 00 00 00 00"), "good") << "ALLOW MEDIUM REMOVAL";
  EXPECT_EQ(b("1e 00 00 00 01 00"), "reservation conflict") << "PREVENT MEDIUM REMOVAL";
  EXPECT_EQ(b("1b 00 00 00 01 00"), "good") << "starting a unit";
  EXPECT_EQ(b("1b 00 00 00 00 00"), "reservation conflict") << "stopping it";
  EXPECT_EQ(b(kRelease6), "good") << "without effect";
  EXPECT_EQ(b(kRead), "reservation conflict");
  EXPECT_EQ(a(kRead), "good");
  EXPECT_EQ(a(kRelease6), "good");
  EXPECT_EQ(b(kRead), "good");
}

TEST_F(UnitReservationsTest, Reserve6EndsWithItsNexusAndWithResets) {
  b(kReserve6);
  b_.reset();
  EXPECT_EQ(a(kRead), "good");
  a(kReserve6);
  b_ = rig_.attach("iqn.2026-11.org.example:b", false);
  EXPECT_EQ(b(kRead), "6/29/00");
  EXPECT_EQ(b(kRead), "reservation conflict");
  rig_.device->manage(TaskManagementFunction::kLogicalUnitReset, 0, b_, [] {});
  EXPECT_EQ(b(kRead), "6/29/03");
  EXPECT_EQ(b(kRead), "good");
}

TEST_F(UnitReservationsTest, TheTwoKindsExcludeEachOther) {
  a(kReserve6);
  EXPECT_EQ(a(kReadKeys), "reservation conflict");
  EXPECT_EQ(a(reserve_cdb(0), reserve_list(0, 'A')), "reservation conflict");
  a(kRelease6);
  EXPECT_EQ(a(reserve_cdb(0), reserve_list(0, 'A')), "good");
  EXPECT_EQ(a(kReserve6), "reservation conflict");
  EXPECT_EQ(b(kRelease6), "reservation conflict");
}

TEST_F(UnitReservationsTest, AResetLeavesPersistentReservations) {
  a(reserve_cdb(0), reserve_list(0, 'A'));
  a(reserve_cdb(1, 1), reserve_list('A', 0));
  rig_.device->manage(TaskManagementFunction::kLogicalUnitReset, 0, rig_.nexus, [] {});
  a("00");
  b("00");
  EXPECT_EQ(b(kWrite, block_), "reservation conflict");
}

TEST_F(UnitReservationsTest, AListThatIsNoneIsRefused) {
  EXPECT_EQ(a("5f 00 00 00 00 00 00 00 17 00", std::string(23, 0)), "5/1A/00");
  EXPECT_EQ(a("5f 08 00 00 00 00 00 00 18 00", std::string(24, 0)), "5/24/00@1.4");
  EXPECT_EQ(a("5f 00 00 00 00 00 01 00 01 00"), "5/1A/00") << "longer than any";
  std::string move = reserve_list('A', 'B');
  move[19] = 2;  // a target port that there is not
  move[23] = 24;
  const auto id = testing::bytes("45 00 00 14 62 2c 69 2c 30 78 31");
  move.append(id.begin(), id.end());
  move.resize(48);
  EXPECT_EQ(a("5f 07 00 00 00 00 00 00 30 00", move), "5/26/00@p18");
}

// What persists is durable before it is answered, one after the other.
class SavedReservationsTest : public ::testing::Test {
 protected:
  SavedReservationsTest() { make(false); }
  void make(bool saves_all) {
    ReservationOptions options;
    options.saves_all = saves_all;
    options.save = [this](const Reservations& state, UniqueFunction<void(Result<void>)> done) {
      saved_.push_back(state);
      waiting_.push_back(std::move(done));
    };
    reservations_ = std::make_shared<UnitReservations>(std::move(options));
  }
  void apply(std::uint64_t action_key, bool persists, const NexusId& from) {
    reservations_->apply({.action = PersistentReserveOut::Action::kRegister,
                          .action_key = action_key,
                          .persists = persists},
                         from, [this](const Result<Reservations::Outcome>& outcome) {
                           const bool lost =
                               !outcome && outcome.error().code == ErrorCode::kUnavailable;
                           answers_ += outcome ? "ok " : lost ? "unavailable " : "failed ";
                         });
  }
  // The names of the initiators.
  std::string registered() const {
    std::string names;
    for (const Registration& registration : reservations_->state().registrations()) {
      names += registration.nexus.initiator.name;
    }
    return names;
  }
  void end_save(Result<void> result) {
    auto done = std::move(waiting_.front());
    waiting_.pop_front();
    done(std::move(result));
  }
  const NexusId a_{{"a", {}}, 1};
  const NexusId b_{{"b", {}}, 1};
  std::vector<Reservations> saved_;
  std::deque<UniqueFunction<void(Result<void>)>> waiting_;
  std::string answers_;
  std::shared_ptr<UnitReservations> reservations_;
};

TEST_F(SavedReservationsTest, WhatDoesNotPersistIsNotSaved) {
  apply(1, false, a_);
  EXPECT_EQ(answers_, "ok ");
  EXPECT_TRUE(saved_.empty());
}

TEST_F(SavedReservationsTest, OneAfterTheOther) {
  apply(1, true, a_);
  apply(2, true, b_);
  EXPECT_EQ(answers_, "");
  EXPECT_EQ(saved_.size(), 1u);
  EXPECT_EQ(reservations_->state().registrations().size(), 0u);
  end_save({});
  EXPECT_EQ(answers_, "ok ");
  EXPECT_EQ(reservations_->state().registrations().size(), 1u);
  end_save({});
  EXPECT_EQ(answers_, "ok ok ");
  EXPECT_EQ(saved_.back().registrations().size(), 2u);
}

TEST_F(SavedReservationsTest, WhatCannotBeSavedHasNotHappened) {
  apply(1, true, a_);
  end_save(Error{ErrorCode::kIo, "a full disk"});
  EXPECT_EQ(answers_, "failed ");
  EXPECT_EQ(reservations_->state().registrations().size(), 0u);
  apply(1, true, a_);
  end_save({});
  EXPECT_EQ(answers_, "failed ok ");
}

TEST_F(SavedReservationsTest, AllIsSavedWhereAnotherNodeMayHaveToGoOn) {
  make(true);
  apply(1, false, a_);
  ASSERT_EQ(saved_.size(), 1u);
  EXPECT_FALSE(saved_.back().persists());
  end_save({});
  EXPECT_EQ(answers_, "ok ");
}

// What another node kept: the registration of a third one.
Reservations kept_elsewhere(std::uint32_t generation = 0) {
  return Reservations::restored({.registrations = {{{{"c", {}}, 1}, 3}},
                                 .reservation = Reservation{},
                                 .persists = false,
                                 .generation = generation});
}

TEST_F(SavedReservationsTest, WhatAnotherNodeKeptReplacesWhatIsKnown) {
  apply(1, true, a_);
  end_save({});
  reservations_->replace(kept_elsewhere());
  EXPECT_EQ(registered(), "c");
  EXPECT_TRUE(reservations_->state().reservation().has_value());
  EXPECT_FALSE(reservations_->state().persists());
  EXPECT_EQ(saved_.size(), 1u) << "it was kept";
}

TEST_F(SavedReservationsTest, TheGenerationGoesOnAboveBoth) {
  reservations_->replace(kept_elsewhere(40));
  EXPECT_EQ(reservations_->state().generation(), 41u);
  reservations_->replace(kept_elsewhere(7));
  EXPECT_EQ(reservations_->state().generation(), 42u);
}

TEST_F(SavedReservationsTest, WhatIsBeingSavedThenIsNotAppliedToWhatWasGiven) {
  apply(1, true, a_);
  reservations_->replace(kept_elsewhere());
  EXPECT_EQ(answers_, "") << "only the save knows when it is over";
  end_save({});
  EXPECT_EQ(answers_, "unavailable ");
  EXPECT_EQ(registered(), "c");
}

TEST_F(SavedReservationsTest, WhatWaitedThenEndsAtOnce) {
  apply(1, true, a_);
  apply(2, true, b_);
  reservations_->replace(kept_elsewhere());
  EXPECT_EQ(answers_, "unavailable ");
  EXPECT_EQ(saved_.size(), 1u);
}

TEST_F(SavedReservationsTest, OneSaveAtATimeAlsoAcrossATakeover) {
  apply(1, true, a_);
  reservations_->replace(kept_elsewhere());
  apply(2, true, b_);
  EXPECT_EQ(saved_.size(), 1u);
  end_save(Error{ErrorCode::kStaleEpoch, "of before the election"});
  EXPECT_EQ(answers_, "unavailable ");
  ASSERT_EQ(saved_.size(), 2u);
  end_save({});
  EXPECT_EQ(answers_, "unavailable ok ");
  EXPECT_EQ(registered(), "cb");
}

TEST_F(SavedReservationsTest, WhatPersistsNoLongerIsForgotten) {
  apply(1, true, a_);
  end_save({});
  apply(2, false, b_);
  ASSERT_EQ(saved_.size(), 2u);
  EXPECT_FALSE(saved_.back().persists());
}

// Through the device of a node that begins to coordinate a unit.
class TakeoverTest : public ::testing::Test {
 protected:
  TakeoverTest() {
    ReservationOptions reservations;
    reservations.saves_all = true;
    reservations.save = [this](const Reservations&, UniqueFunction<void(Result<void>)> done) {
      if (refusal_) return done(*refusal_);
      done({});
    };
    rig_ = std::make_unique<Rig>(
        Rig::Options{.port_groups = groups_, .reservations = std::move(reservations)});
    b_ = rig_->attach("iqn.2026-11.org.example:b");
  }
  std::string a(std::string_view cdb, std::string_view data = {}) {
    return rig_->send(cdb, data).verdict();
  }
  std::string b(std::string_view cdb, std::string_view data = {}) {
    return rig_->send_from(b_, cdb, data).verdict();
  }
  static NexusId nexus_of(const std::string& name) {
    return {{"iqn.2026-11.org.example:" + name, {0x80, 0, 0, 0, 0, 1}}, 1};
  }

  const std::shared_ptr<testing::FakePortGroups> groups_ =
      std::make_shared<testing::FakePortGroups>();
  std::optional<Error> refusal_;  // of what is to be saved
  std::unique_ptr<Rig> rig_;
  std::shared_ptr<Nexus> b_;
  const std::string block_ = std::string(512, 'x');
};

TEST_F(TakeoverTest, ReservationsOfBeforeAreInForceAndNobodyIsTold) {
  groups_->first = AccessState::kTransitioning;
  rig_->device->replace_reservations(
      Lun{0},
      Reservations::restored({.registrations = {{nexus_of("host"), 'A'}},
                              .reservation = Reservation{.type = ReservationType::kExclusiveAccess,
                                                         .holder = nexus_of("host")}}));
  EXPECT_EQ(a(kReadKeys), "2/04/0A");
  groups_->first = AccessState::kActiveOptimized;
  EXPECT_EQ(a(kWrite, block_), "good");
  EXPECT_EQ(b(kWrite, block_), "reservation conflict");
  EXPECT_EQ(b("00"), "good");
  EXPECT_EQ(rig_->send(kReadKeys).hex_data(), "00 00 00 01 00 00 00 08 00 00 00 00 00 00 00 41");
}

TEST_F(TakeoverTest, EndsWhatReserve6Began) {
  EXPECT_EQ(a(kReserve6), "good");
  rig_->device->replace_reservations(Lun{0}, {});
  EXPECT_EQ(b(kWrite, block_), "good");
}

TEST_F(TakeoverTest, InStandbyReservationsAreNeitherToldNorChanged) {
  groups_->first = AccessState::kStandby;
  EXPECT_EQ(a(kReadKeys), "2/04/0B");
  EXPECT_EQ(a(reserve_cdb(0), reserve_list(0, 'A')), "2/04/0B");
  groups_->first = AccessState::kActiveOptimized;
  EXPECT_EQ(rig_->send(kReadKeys).hex_data(), "00 00 00 00 00 00 00 00");
}

TEST_F(TakeoverTest, WhoLosesTheUnitWhileItSavesTellsTheState) {
  refusal_ = Error{ErrorCode::kUnavailable, "another coordinates"};
  EXPECT_EQ(a(reserve_cdb(0), reserve_list(0, 'A')), "2/04/0A");
  refusal_ = Error{ErrorCode::kIo, "bad"};
  EXPECT_EQ(a(reserve_cdb(0), reserve_list(0, 'A')), "4/44/00");
}

}  // namespace
}  // namespace mariner::scsi
