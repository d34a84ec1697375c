#include "server/scsi/unit_access.h"

#include <set>

#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

using enum AccessState;
using testing::FakePortGroups;
using testing::FakeSanitizer;
using testing::Rig;

constexpr AccessState kStates[] = {kActiveOptimized, kActiveNonOptimized, kStandby, kUnavailable,
                                   kTransitioning};

// The rows of SPC-4 5.15.2.4.4, 5.15.2.4.5 and 5.15.2.5 for the commands that there are, and what
// is done otherwise: in which states each is allowed ("all", "standby": and in the active ones;
// "active").
struct Row {
  std::string_view cdb;
  std::string_view allowed;
};
constexpr Row kRows[] = {
    {"12", "all"},                              // INQUIRY
    {"a0 00 00 00 00 00 00 00 00 10", "all"},   // REPORT LUNS
    {"03 00 00 00 12", "all"},                  // REQUEST SENSE
    {"a3 0a", "all"},                           // REPORT TARGET PORT GROUPS
    {"3c 0b 00 00 00 00 00 00 04", "all"},      // READ BUFFER
    {"3b 0a", "all"},                           // WRITE BUFFER
    {"4d 00 40 00 00 00 00 00 ff", "standby"},  // LOG SENSE
    {"1a 00 08 00 ff", "standby"},              // MODE SENSE(6)
    {"5a 00 08 00 00 00 00 00 ff", "standby"},  // MODE SENSE(10)
    {"1c 01 00 00 ff", "standby"},              // RECEIVE DIAGNOSTIC RESULTS
    {"25", "standby"},                          // READ CAPACITY(10)
    {"9e 10", "standby"},                       // READ CAPACITY(16)
    {"a3 0c", "standby"},                       // REPORT SUPPORTED OPERATION CODES
    {"a3 0d", "standby"},                       // REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS
    {"5e 00", "active"},                        // PERSISTENT RESERVE IN: in the list of standby
    {"5f 00 00 00 00 00 00 00 18", "active"},   // PERSISTENT RESERVE OUT: likewise
    {"15 10", "active"},                        // MODE SELECT(6): likewise
    {"55 10", "active"},                        // MODE SELECT(10): likewise
    {"4c 02 40", "active"},                     // LOG SELECT: likewise
    {"1d 04", "active"},                        // SEND DIAGNOSTIC: likewise
    {"00", "active"},                           // TEST UNIT READY
    {"08", "active"},                           // READ(6)
    {"28 00 00 00 00 00 00 00 01", "active"},   // READ(10)
    {"a8", "active"},                           // READ(12)
    {"88", "active"},                           // READ(16)
    {"0a", "active"},                           // WRITE(6)
    {"2a", "active"},                           // WRITE(10)
    {"aa", "active"},                           // WRITE(12)
    {"8a", "active"},                           // WRITE(16)
    {"2e", "active"},                           // WRITE AND VERIFY(10)
    {"2f", "active"},                           // VERIFY(10)
    {"34", "active"},                           // PRE-FETCH(10)
    {"35", "active"},                           // SYNCHRONIZE CACHE(10)
    {"41 00 00 00 00 00 00 00 01", "active"},   // WRITE SAME(10)
    {"42", "active"},                           // UNMAP
    {"9e 12 00 00 00 00 00 00 00 00 00 00 00 ff", "active"},  // GET LBA STATUS
    {"89", "active"},                                         // COMPARE AND WRITE
    {"8b", "active"},                                         // ORWRITE(16)
    {"9c", "active"},                                         // WRITE ATOMIC(16)
    {"37", "active"},                                         // READ DEFECT DATA(10)
    {"1b 00 00 00 01", "active"},                             // START STOP UNIT
    {"1e", "active"},                                         // PREVENT ALLOW MEDIUM REMOVAL
    {"16", "active"},                                         // RESERVE(6)
    {"17", "active"},                                         // RELEASE(6)
    {"83 00", "active"},                                      // EXTENDED COPY(LID1)
    {"83 10", "active"},                                      // POPULATE TOKEN
    {"83 11", "active"},                                      // WRITE USING TOKEN
    {"83 1c", "active"},                                      // COPY OPERATION ABORT
    {"84 03", "active"},                                      // RECEIVE COPY OPERATING PARAMETERS
    {"84 05", "active"},                                      // RECEIVE COPY STATUS(LID4)
    {"84 07", "active"},                                      // RECEIVE ROD TOKEN INFORMATION
    {"84 08", "active"},                                      // REPORT ALL ROD TOKENS
    {"48 02", "active"},                                      // SANITIZE
    {"04", "active"},                                         // FORMAT UNIT
};

std::string refusal_of(AccessState state) {
  switch (state) {
    case kStandby: return "2/04/0B";
    case kUnavailable: return "2/04/0C";
    case kTransitioning: return "2/04/0A";
    case kActiveOptimized:
    case kActiveNonOptimized: break;
  }
  return "";
}

// To a new unit each, because some of these commands would change what the next one finds.
std::string verdict_in(AccessState state, std::string_view cdb) {
  const auto groups = std::make_shared<FakePortGroups>();
  const auto sanitizer = std::make_shared<FakeSanitizer>();
  Rig rig({.sanitizer = sanitizer, .port_groups = groups});
  groups->first = state;
  const auto outcome = rig.start(cdb);
  sanitizer->forgetting = {};  // what it waits for holds the unit
  return outcome->has_value() ? (*outcome)->verdict() : "under way";
}

TEST(AccessTable, EachCommandInEachState) {
  for (const auto& [cdb, allowed] : kRows) {
    for (const AccessState state : kStates) {
      const bool passes =
          is_active(state) || allowed == "all" || (allowed == "standby" && state == kStandby);
      const std::string verdict = verdict_in(state, cdb);
      if (!passes) {
        EXPECT_EQ(verdict, refusal_of(state)) << cdb;
      } else if (is_active(state)) {
        EXPECT_NE(verdict.substr(0, 4), "2/04") << cdb;
      } else {
        EXPECT_EQ(verdict, "good") << cdb << " in state " << int(state);
      }
    }
  }
}

TEST(AccessTable, HasARowForEachCommand) {
  std::set<Operation> there;
  for (const Row& row : kRows) {
    const OpcodeInfo* info = find_opcode(testing::cdb(row.cdb));
    ASSERT_NE(info, nullptr) << row.cdb;
    there.insert(info->operation);
  }
  for (const OpcodeInfo& info : opcode_table()) {
    EXPECT_TRUE(there.contains(info.operation)) << info.name;
  }
}

TEST(UnitAccess, WithoutGroupsAUnitIsActiveForEver) {
  const UnitAccess access(nullptr, {1});
  EXPECT_FALSE(access.changes());
  EXPECT_EQ(access.state(0x1234), kActiveOptimized);
  EXPECT_EQ(access.group_of(0x1234), kTargetPortGroup);
  EXPECT_EQ(access.lost({ErrorCode::kUnavailable, "away"}, 1), std::nullopt);
}

TEST(UnitAccess, WhatIsLostIsToldByTheStateOfNow) {
  const auto groups = std::make_shared<FakePortGroups>();
  const UnitAccess access(groups, {1, 2});
  const auto told = [&](ErrorCode code, AccessState state) {
    groups->first = state;
    const auto sense = access.lost({code, "test"}, 1);
    return sense ? testing::outcome_of(check_condition(*sense, SenseFormat::kFixed)).verdict() : "";
  };
  for (const ErrorCode code : {ErrorCode::kUnavailable, ErrorCode::kStaleEpoch}) {
    EXPECT_EQ(told(code, kStandby), "2/04/0B");
    EXPECT_EQ(told(code, kUnavailable), "2/04/0C");
    EXPECT_EQ(told(code, kTransitioning), "2/04/0A");
    EXPECT_EQ(told(code, kActiveOptimized), "2/04/0A") << "does not know it yet";
    EXPECT_EQ(told(code, kActiveNonOptimized), "2/04/0A");
  }
  for (const ErrorCode code : {ErrorCode::kIo, ErrorCode::kCorrupt, ErrorCode::kBusy,
                               ErrorCode::kNoSpace, ErrorCode::kAborted}) {
    EXPECT_EQ(told(code, kStandby), "") << error_code_name(code);
  }
}

TEST(UnitAccess, GroupsThatAreNotOfItsPortsAreAMistakeOfTheOwner) {
  const auto groups = std::make_shared<FakePortGroups>();
  EXPECT_DEATH(UnitAccess(groups, {1}), "");
  EXPECT_DEATH(UnitAccess(groups, {1, 2, 3}), "");
  EXPECT_DEATH((void)UnitAccess(groups, {1, 2}).group_of(3), "");
}

class AccessTest : public ::testing::Test {
 protected:
  std::string send(std::string_view cdb, std::string_view data = {}) {
    return rig_.send(cdb, data).verdict();
  }
  void set(AccessState state) { groups_->first = state; }

  const std::shared_ptr<FakePortGroups> groups_ = std::make_shared<FakePortGroups>();
  Rig rig_{{.port_groups = groups_}};
  const std::string block_ = std::string(512, 'x');
};

constexpr const char* kRead = "28 00 00 00 00 00 00 00 01 00";
constexpr const char* kWrite = "2a 00 00 00 00 00 00 00 01 00";
constexpr const char* kRequestSense = "03 01 00 00 ff 00";

TEST_F(AccessTest, TheStateIsAskedWhenACommandBeginsAndNotRemembered) {
  EXPECT_EQ(send(kWrite, block_), "good");
  set(kStandby);
  EXPECT_EQ(send(kWrite, block_), "2/04/0B");
  set(kTransitioning);
  EXPECT_EQ(send(kWrite, block_), "2/04/0A");
  set(kActiveNonOptimized);
  EXPECT_EQ(send(kWrite, block_), "good");
  const int before = groups_->asked;
  EXPECT_EQ(send(kRead), "good");
  EXPECT_EQ(groups_->asked, before + 1) << "once";
}

TEST_F(AccessTest, ARefusedWriteReachesNoLayer) {
  set(kStandby);
  rig_.layer->record_calls();
  EXPECT_EQ(send(kWrite, block_), "2/04/0B");
  EXPECT_EQ(rig_.transfer_of(kWrite).bytes, 512u) << "its data is taken: the state may change";
  EXPECT_TRUE(rig_.layer->calls().empty());
}

TEST_F(AccessTest, ANexusFindsTheStateOfItsPort) {
  const auto there = rig_.attach("iqn.2026-11.org.example:host", false, 2);
  EXPECT_EQ(rig_.send_from(there, "00").verdict(), "6/29/00");
  EXPECT_EQ(rig_.send_from(there, "00").verdict(), "2/04/0B");
  EXPECT_EQ(send("00"), "good");
  const auto page = rig_.send_from(there, "12 01 83 00 ff 00").hex_data();
  EXPECT_NE(page.find("51 94 00 04 00 00 00 02"), std::string::npos);
  EXPECT_NE(page.find("51 95 00 04 00 00 01 02"), std::string::npos);
  EXPECT_NE(rig_.send("12 01 83 00 ff 00").hex_data().find("51 95 00 04 00 00 01 01"),
            std::string::npos);
}

TEST_F(AccessTest, AttentionsComeFirst) {
  set(kStandby);
  rig_.device->access_state_changed(Lun{0});
  EXPECT_EQ(send(kRead), "6/2A/06");
  EXPECT_EQ(send(kRead), "2/04/0B");
}

TEST_F(AccessTest, RequestSenseTellsTheState) {
  EXPECT_EQ(rig_.send(kRequestSense).hex_data(), "72 00 00 00 00 00 00 00");
  set(kStandby);
  EXPECT_EQ(rig_.send(kRequestSense).hex_data(), "72 02 04 0b 00 00 00 00");
  set(kUnavailable);
  EXPECT_EQ(rig_.send(kRequestSense).hex_data(), "72 02 04 0c 00 00 00 00");
  set(kTransitioning);
  rig_.device->access_state_changed(Lun{0});
  EXPECT_EQ(rig_.send(kRequestSense).hex_data(), "72 06 2a 06 00 00 00 00");
  EXPECT_EQ(rig_.send(kRequestSense).hex_data(), "72 02 04 0a 00 00 00 00");
}

// The same in every state: also the peripheral qualifier.
TEST_F(AccessTest, WhatTellsAboutTheUnitIsAsAlways) {
  for (const char* cdb : {"12 00 00 00 60 00", "12 01 b0 00 ff 00", "12 01 88 00 ff 00",
                          "a0 00 00 00 00 00 00 00 00 10"}) {
    set(kActiveOptimized);
    const std::string active = rig_.send(cdb).hex_data();
    for (const AccessState state : kStates) {
      set(state);
      EXPECT_EQ(rig_.send(cdb).hex_data(), active) << cdb << " in state " << int(state);
    }
  }
}

TEST_F(AccessTest, InStandbyItTellsWhichCommandsThereAreAndHowLongItIs) {
  for (const char* cdb :
       {"a3 0c 00 00 00 00 00 00 ff ff", "a3 0c 01 2a 00 00 00 00 00 ff",
        "a3 0d 00 00 00 00 00 00 00 10", "9e 10 00 00 00 00 00 00 00 00 00 00 00 20"}) {
    set(kActiveOptimized);
    const std::string active = rig_.send(cdb).hex_data();
    set(kStandby);
    EXPECT_EQ(rig_.send(cdb).hex_data(), active) << cdb;
  }
}

// What this node knows of the size may be old.
TEST_F(AccessTest, ComesBeforeTheFieldsOfTheCommand) {
  set(kStandby);
  EXPECT_EQ(send("28 00 ff ff ff ff 00 00 01 00"), "2/04/0B") << "beyond the end";
  EXPECT_EQ(send("2a 01 00 00 00 00 00 00 01 00", block_), "2/04/0B") << "an unknown bit";
  EXPECT_EQ(send("c0"), "5/20/00") << "a command that there is not";
  EXPECT_EQ(send("9e 1f"), "5/24/00@1.4");
}

TEST_F(AccessTest, AndBeforeReservations) {
  const auto other = rig_.attach("iqn.2026-11.org.example:other");
  std::string keys(24, '\0');
  keys[15] = 'B';
  EXPECT_EQ(rig_.send_from(other, "5f 00 00 00 00 00 00 00 18 00", keys).verdict(), "good");
  std::swap(keys[7], keys[15]);
  EXPECT_EQ(rig_.send_from(other, "5f 01 03 00 00 00 00 00 18 00", keys).verdict(), "good");
  constexpr const char* kModeSense = "1a 00 08 00 ff 00";
  EXPECT_EQ(send(kRead), "reservation conflict");
  EXPECT_EQ(send(kModeSense), "reservation conflict");
  set(kStandby);
  EXPECT_EQ(send(kRead), "2/04/0B");
  EXPECT_EQ(send(kModeSense), "good") << "they are kept elsewhere now";
  set(kActiveOptimized);
  EXPECT_EQ(send(kRead), "reservation conflict");
}

TEST_F(AccessTest, ALunWithoutUnitHasNoState) {
  set(kStandby);
  rig_.lun = std::uint64_t{1} << 48;
  EXPECT_EQ(send(kRead), "5/25/00");
}

TEST_F(AccessTest, TaskManagementIsAnsweredInEveryState) {
  set(kUnavailable);
  int answers = 0;
  rig_.device->manage(TaskManagementFunction::kLogicalUnitReset, 0, rig_.nexus, [&] { ++answers; });
  EXPECT_EQ(answers, 1);
}

// A command for each operation of the layer.
struct UnderWay {
  std::string_view cdb;
  std::string data;
};
const UnderWay kCommands[] = {
    {kRead, ""},
    {kWrite, std::string(512, 'x')},
    {"2e 02 00 00 00 00 00 00 01 00", std::string(512, 'x')},  // WRITE AND VERIFY
    {"2f 00 00 00 00 00 00 00 01 00", ""},                     // VERIFY
    {"41 00 00 00 00 00 00 00 01 00", std::string(512, 'x')},  // WRITE SAME
    {"41 08 00 00 00 00 00 00 01 00", std::string(512, 0)},    // which unmaps
    {"42 00 00 00 00 00 00 00 18 00",
     std::string("\0\x16\0\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0", 24)},  // UNMAP
    {"89 00 00 00 00 00 00 00 00 00 00 00 00 01", std::string(1024, 0)},        // COMPARE AND WRITE
    {"8b 00 00 00 00 00 00 00 00 00 00 00 00 01", std::string(512, 'x')},       // ORWRITE
    {"9e 12 00 00 00 00 00 00 00 00 00 00 00 ff", ""},                          // GET LBA STATUS
    {"35", ""},                                                                 // SYNCHRONIZE CACHE
    {"1b", ""},     // START STOP UNIT, which flushes
    {"04", ""},     // FORMAT UNIT
    {"48 02", ""},  // SANITIZE
    {"1d 04", ""},  // SEND DIAGNOSTIC: a self-test
};

// What a command that is under way when its unit is lost is answered with, and the state is then.
std::string verdict_of_lost(const UnderWay& command, AccessState state, ErrorCode code) {
  const auto groups = std::make_shared<FakePortGroups>();
  Rig rig({.port_groups = groups});
  rig.layer->fail_next({code, "elsewhere"});
  rig.layer->hold();
  const auto outcome = rig.start(command.cdb, command.data);
  EXPECT_FALSE(outcome->has_value()) << command.cdb;
  groups->first = state;
  rig.layer->release();
  return outcome->has_value() ? (*outcome)->verdict() : "under way";
}

TEST(LostAccess, ACommandUnderWayIsToldTheStateOfThen) {
  for (const UnderWay& command : kCommands) {
    for (const ErrorCode code : {ErrorCode::kUnavailable, ErrorCode::kStaleEpoch}) {
      EXPECT_EQ(verdict_of_lost(command, kStandby, code), "2/04/0B") << command.cdb;
      EXPECT_EQ(verdict_of_lost(command, kUnavailable, code), "2/04/0C") << command.cdb;
      EXPECT_EQ(verdict_of_lost(command, kTransitioning, code), "2/04/0A") << command.cdb;
      EXPECT_EQ(verdict_of_lost(command, kActiveOptimized, code), "2/04/0A") << command.cdb;
    }
  }
}

TEST(LostAccess, AnotherErrorSaysWhatItAlwaysSays) {
  for (const UnderWay& command : kCommands) {
    EXPECT_NE(verdict_of_lost(command, kStandby, ErrorCode::kIo).substr(0, 4), "2/04")
        << command.cdb;
  }
}

TEST(LostAccess, WithoutPortGroupsNothingIsOtherThanBefore) {
  for (const UnderWay& command : kCommands) {
    Rig rig;
    rig.layer->fail_next({ErrorCode::kUnavailable, "away"});
    const std::string verdict = rig.send(command.cdb, command.data).verdict();
    const std::string expected = command.cdb == "04"      ? "3/31/01"
                                 : command.cdb == "48 02" ? "3/31/03"
                                 : command.cdb == "1d 04" ? "4/3E/03"
                                                          : "2/04/01";
    EXPECT_EQ(verdict, expected) << command.cdb;
  }
}

TEST(LostAccess, IsNoErrorOfTheUnit) {
  constexpr const char* kOtherErrors = "4d 00 46 00 00 00 00 00 ff 00";
  Rig rig({.port_groups = std::make_shared<FakePortGroups>()});
  const std::string before = rig.send(kOtherErrors).hex_data();
  rig.layer->fail_next({ErrorCode::kUnavailable, "elsewhere"});
  EXPECT_EQ(rig.send(kWrite, std::string(512, 'x')).verdict(), "2/04/0A");
  EXPECT_EQ(rig.send(kOtherErrors).hex_data(), before);
}

TEST(LostAccess, AFormatThatNobodyWaitsForTellsItLater) {
  Rig rig({.port_groups = std::make_shared<FakePortGroups>()});
  rig.layer->hold();
  rig.layer->fail_next({ErrorCode::kUnavailable, "elsewhere"});
  EXPECT_EQ(rig.send("04 18", std::string("\0\x82\0\0", 4)).verdict(), "good");
  rig.layer->release();
  const testing::Outcome told = rig.send("00");
  EXPECT_EQ(told.verdict(), "2/04/0A");
  EXPECT_EQ(told.sense.substr(0, 2), "71") << "a deferred error";
  EXPECT_EQ(rig.send("00").verdict(), "good");
}

}  // namespace
}  // namespace mariner::scsi
