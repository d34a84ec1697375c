#include "server/scsi/unit_sanitize.h"

#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

using Left = Sanitizer::Left;
using testing::FakeSanitizer;
using testing::Rig;

constexpr const char* kErase = "48 02";
constexpr const char* kEraseImmediately = "48 82";
constexpr const char* kEraseUnrestricted = "48 22";
constexpr const char* kExitFailureMode = "48 1f";
constexpr const char* kTestUnitReady = "00";

class UnitSanitizeTest : public ::testing::Test {
 protected:
  UnitSanitizeTest() {
    EXPECT_EQ(rig_.send("2a 00 00 00 00 01 00 00 01 00", std::string(512, 'a')).verdict(), "good");
  }
  // Forgetting comes to its end.
  void forgotten(Result<void> result = {}) {
    ASSERT_TRUE(sanitizer_->forgetting);
    std::exchange(sanitizer_->forgetting, nullptr)(std::move(result));
  }
  std::string overwrite(const std::string& list) {
    char cdb[64];
    std::snprintf(cdb, sizeof cdb, "48 01 00 00 00 00 00 %02zx %02zx 00", list.size() >> 8,
                  list.size() & 0xFF);
    const auto answer = rig_.start(cdb, list);
    if (sanitizer_->forgetting) forgotten();
    return (*answer)->verdict();
  }
  static std::string pattern(const std::string& bytes, char passes = 1) {
    return std::string{passes, '\0', static_cast<char>(bytes.size() >> 8),
                       static_cast<char>(bytes.size())} +
           bytes;
  }
  std::string block(std::uint64_t lba) { return rig_.layer->text({lba * 512, 512}); }

  const std::shared_ptr<FakeSanitizer> sanitizer_ = std::make_shared<FakeSanitizer>();
  Rig rig_{{.sanitizer = sanitizer_}};
};

TEST_F(UnitSanitizeTest, ErasesThePresentAndThenThePast) {
  rig_.layer->record_calls();
  const auto answer = rig_.start(kErase);
  EXPECT_EQ(rig_.layer->calls(), std::vector<std::string>{"zero 0+1048576"});
  EXPECT_FALSE(*answer) << "not before the past is gone";
  EXPECT_EQ(sanitizer_->state, Left::kRestricted);
  forgotten();
  EXPECT_EQ((*answer)->verdict(), "good");
  EXPECT_EQ(sanitizer_->state, Left::kNothing);
  EXPECT_EQ(block(1), std::string(512, '\0'));
  EXPECT_EQ(rig_.send(kTestUnitReady).verdict(), "good");
}

TEST_F(UnitSanitizeTest, MeanwhileOnlyWhatTellsAboutItIsAnswered) {
  const auto other = rig_.attach("iqn.2026-11.org.example:other");
  EXPECT_EQ(rig_.send(kEraseImmediately).verdict(), "good");
  EXPECT_EQ(rig_.send(kTestUnitReady).verdict().substr(0, 7), "2/04/1B");
  EXPECT_EQ(rig_.send_from(other, "28 00 00 00 00 00 00 00 01 00").verdict().substr(0, 7),
            "2/04/1B");
  EXPECT_EQ(rig_.send(kErase).verdict().substr(0, 7), "2/04/1B");
  EXPECT_EQ(rig_.send("12 00 00 00 ff 00").verdict(), "good");
  EXPECT_EQ(rig_.send("25").verdict(), "good");
  EXPECT_EQ(rig_.send("a3 0c 00 00 00 00 00 00 01 00").verdict(), "good");
  EXPECT_EQ(rig_.send("03 00 00 00 12").hex_data(),
            "70 00 02 00 00 00 00 0a 00 00 00 00 04 1b 00 80 40 00")
      << "a quarter of it is done";
  for (const auto function :
       {TaskManagementFunction::kAbortTaskSet, TaskManagementFunction::kLogicalUnitReset}) {
    rig_.device->manage(function, 0, rig_.nexus, [] {});
  }
  rig_.send(kTestUnitReady);  // the reset's unit attention
  EXPECT_EQ(rig_.send(kTestUnitReady).verdict().substr(0, 7), "2/04/1B") << "it goes on";
  forgotten();
  EXPECT_EQ(rig_.send(kTestUnitReady).verdict(), "good");
  EXPECT_EQ(rig_.send("03 00 00 00 12").hex_data().substr(6, 2), "00");
}

TEST_F(UnitSanitizeTest, IsUnderWayWhenItIsAnsweredImmediately) {
  rig_.layer->record_calls();
  std::vector<std::string> given;
  rig_.device->execute(rig_.command(kEraseImmediately),
                       [&](const Response&) { given = rig_.layer->calls(); });
  EXPECT_EQ(given, std::vector<std::string>{"zero 0+1048576"});
  forgotten();
}

TEST_F(UnitSanitizeTest, OverwritesWithThePattern) {
  EXPECT_EQ(overwrite(pattern("0123")), "good");
  EXPECT_EQ(block(0).substr(0, 8), "01230123");
  EXPECT_EQ(overwrite(pattern(std::string(500, 'x') + std::string(10, 'y'), '\x83')), "good");
  EXPECT_EQ(block(2047), std::string(500, 'x') + std::string(10, 'y') + "xx")
      << "from the beginning in each block; inverted passes end with the pattern itself";
  EXPECT_EQ(overwrite(pattern(std::string(512, 'z'))), "good");
  EXPECT_EQ(block(5), std::string(512, 'z'));
}

TEST_F(UnitSanitizeTest, ListsThatAreWrongChangeNothing) {
  EXPECT_EQ(overwrite(pattern("x", 0)), "5/26/00@p0.4");
  EXPECT_EQ(overwrite(std::string("\1\0\0\0x", 5)), "5/26/00@p2");
  EXPECT_EQ(overwrite(std::string("\1\0\0\2x", 5)), "5/26/00@p2");
  EXPECT_EQ(overwrite(std::string("\1\0\0\0", 4)), "5/24/00@7");
  EXPECT_EQ(overwrite(std::string(517, '\1')), "5/24/00@7");
  EXPECT_EQ(rig_.send("48 02 00 00 00 00 00 00 08", std::string(8, '\0')).verdict(), "5/24/00@7");
  EXPECT_EQ(rig_.send("48 03").verdict(), "5/24/00@1.4") << "nothing is encrypted";
  EXPECT_EQ(block(1), std::string(512, 'a'));
}

TEST_F(UnitSanitizeTest, AFailureStays) {
  rig_.layer->fail_next({ErrorCode::kIo, "gone"});
  EXPECT_EQ(rig_.send(kErase).verdict(), "3/31/03");
  EXPECT_EQ(sanitizer_->state, Left::kRestricted);
  EXPECT_EQ(rig_.send(kTestUnitReady).verdict(), "3/31/03");
  EXPECT_EQ(rig_.send("03 00 00 00 12").hex_data().substr(6, 2), "03");
  EXPECT_EQ(rig_.send(kExitFailureMode).verdict(), "5/24/00@1.4");
  EXPECT_EQ(rig_.send(kEraseUnrestricted).verdict(), "5/24/00@1.5");
  const auto again = rig_.start(kErase);
  forgotten();
  EXPECT_EQ((*again)->verdict(), "good");
  EXPECT_EQ(rig_.send(kTestUnitReady).verdict(), "good");
}

TEST_F(UnitSanitizeTest, AUnrestrictedFailureMayBeLeft) {
  const auto answer = rig_.start(kEraseUnrestricted);
  EXPECT_EQ(sanitizer_->state, Left::kUnrestricted);
  forgotten(Error{ErrorCode::kBusy, "a view was exposed"});
  EXPECT_EQ((*answer)->verdict(), "3/31/03");
  EXPECT_EQ(rig_.send(kTestUnitReady).verdict(), "3/31/03");
  EXPECT_EQ(rig_.send(kExitFailureMode).verdict(), "good");
  EXPECT_EQ(rig_.send(kTestUnitReady).verdict(), "good");
  EXPECT_EQ(sanitizer_->state, Left::kNothing);
  EXPECT_EQ(rig_.send(kExitFailureMode).verdict(), "good") << "without a failure, too";
}

TEST_F(UnitSanitizeTest, WhatARestartInterruptedHasFailed) {
  sanitizer_->state = Left::kUnrestricted;
  Rig again({.read_only = true, .sanitizer = nullptr});
  std::vector<LogicalUnitOptions> units(1);
  units[0].layer = again.layer;
  units[0].disk.identity = testing::example_identity();
  units[0].disk.sanitizer = sanitizer_;
  rig_.device = std::make_shared<Device>(std::move(units));
  rig_.nexus = rig_.attach("iqn.2026-11.org.example:again", false);
  rig_.send(kTestUnitReady);
  EXPECT_EQ(rig_.send(kTestUnitReady).verdict(), "3/31/03");
}

TEST_F(UnitSanitizeTest, IsRefusedWhereThePastIsHeld) {
  sanitizer_->refuses = Sanitizer::Refusal::kLockedMark;
  EXPECT_EQ(rig_.send(kErase).verdict(), "7/27/06");
  sanitizer_->refuses = Sanitizer::Refusal::kInUse;
  EXPECT_EQ(rig_.send(kErase).verdict(), "5/2C/00");
  EXPECT_EQ(sanitizer_->state, Left::kNothing);
  EXPECT_EQ(block(1), std::string(512, 'a'));
  rig_.layer->set_read_only(true);
  EXPECT_EQ(rig_.send(kErase).verdict(), "7/27/00");
}

TEST_F(UnitSanitizeTest, IsNotKnownWithoutThePermission) {
  const auto knows = [&] {
    return std::pair{
        rig_.send("a3 0c 02 48 00 02 00 00 01 00").hex_data().substr(3, 2),
        rig_.send("a3 0c 00 00 00 00 00 00 ff ff").hex_data().find("48 00 00 02 00 01") !=
            std::string::npos};
  };
  EXPECT_EQ(knows(), (std::pair<std::string, bool>{"03", true}));
  EXPECT_EQ(rig_.send("12 01 b1 00 ff 00").data[7], 0x40);
  sanitizer_->permits = false;
  EXPECT_EQ(rig_.send(kErase).verdict(), "5/20/00");
  EXPECT_EQ(rig_.send("48 03").verdict(), "5/20/00");
  EXPECT_EQ(knows(), (std::pair<std::string, bool>{"01", false}));
  EXPECT_EQ(rig_.send("12 01 b1 00 ff 00").data[7], 0);
  EXPECT_EQ(Rig({.sanitizer = nullptr}).send(kErase).verdict(), "5/20/00");
}

TEST_F(UnitSanitizeTest, NoCopyReachesIt) {
  ASSERT_NE(rig_.device->find_copy_unit({3, testing::example_identity().naa}), nullptr);
  rig_.send(kEraseImmediately);
  EXPECT_EQ(rig_.device->find_copy_unit({3, testing::example_identity().naa}), nullptr);
  forgotten();
  EXPECT_NE(rig_.device->find_copy_unit({3, testing::example_identity().naa}), nullptr);
}

}  // namespace
}  // namespace mariner::scsi
