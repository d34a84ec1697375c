#include "server/scsi/unit_format.h"

#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

using testing::Rig;

constexpr const char* kFormat = "04";
constexpr const char* kWithList = "04 18";  // FMTDATA, CMPLST
constexpr const char* kWithLongList = "04 38";
constexpr const char* kTestUnitReady = "00";
constexpr const char* kRequestSense = "03 00 00 00 12";
const std::string kImmediately("\0\x82\0\0", 4);

class UnitFormatTest : public ::testing::Test {
 protected:
  UnitFormatTest() {
    EXPECT_EQ(rig_.send("2a 00 00 00 00 01 00 00 01 00", std::string(512, 'a')).verdict(), "good");
    rig_.layer->record_calls();
  }
  std::string verdict(const char* cdb, const std::string& list = {}) {
    return rig_.send(cdb, list).verdict();
  }
  // Of a list with a short header and these bytes behind it.
  std::string with_pattern(const std::string& descriptor) {
    return verdict(kWithList, std::string("\0\x88\0\0", 4) + descriptor);
  }
  [[nodiscard]] bool empty() const {
    return rig_.layer->text({512, 512}) == std::string(512, '\0');
  }

  Rig rig_;
};

TEST_F(UnitFormatTest, IsOneWriteOfZerosThatUnmapsEverything) {
  EXPECT_EQ(verdict(kFormat), "good");
  EXPECT_EQ(rig_.layer->calls(), std::vector<std::string>{"zero 0+1048576"});
  EXPECT_TRUE(empty());
}

TEST_F(UnitFormatTest, EitherHeaderIsTaken) {
  EXPECT_EQ(verdict(kWithList, std::string(4, '\0')), "good");
  EXPECT_EQ(verdict(kWithLongList, std::string(8, '\0')), "good");
  EXPECT_EQ(verdict(kWithList, std::string("\0\xf0\0\0", 4)), "good") << "FOV, DPRY, DCRT, STPF";
  EXPECT_EQ(verdict("04 1d", std::string(4, '\0')), "good") << "an empty list of any format";
  EXPECT_EQ(rig_.layer->calls().size(), 4u);
}

TEST_F(UnitFormatTest, TheListIsAsLongAsItIs) {
  EXPECT_EQ(rig_.transfer_of(kFormat).bytes, 0u);
  const Transfer brief = rig_.transfer_of(kWithList);
  EXPECT_EQ(brief.direction, Transfer::Direction::kToTarget);
  EXPECT_EQ(brief.bytes, 4u + 4 + 512);
  EXPECT_TRUE(brief.open);
  EXPECT_EQ(rig_.transfer_of(kWithLongList).bytes, 8u + 4 + 512);
}

TEST_F(UnitFormatTest, PatternsOfZerosAreTaken) {
  EXPECT_EQ(with_pattern(std::string("\0\0\0\0", 4)), "good");
  EXPECT_EQ(with_pattern(std::string("\0\1\0\2\0\0", 6)), "good");
  EXPECT_EQ(with_pattern(std::string("\0\1\2\0", 4) + std::string(512, '\0')), "good");
  EXPECT_EQ(verdict(kWithLongList, std::string("\0\x88\0\0\0\0\0\0\0\1\0\1\0", 13)), "good");
}

TEST_F(UnitFormatTest, WhatIsNotToBeHadIsRefusedAtItsPlace) {
  EXPECT_EQ(verdict("04 58"), "5/24/00@1.6") << "FMTPINFO: protection information";
  EXPECT_EQ(verdict("04 04"), "5/24/00@1.2") << "a format of defects without a list";
  EXPECT_EQ(verdict("04 1e", std::string(4, '\0')), "5/24/00@1.2");
  EXPECT_EQ(verdict(kWithList, std::string("\1\0\0\0", 4)), "5/26/00@p0.2")
      << "PROTECTION FIELD USAGE";
  EXPECT_EQ(verdict(kWithList, std::string("\0\x20\0\0", 4)), "5/26/00@p1") << "DCRT without FOV";
  EXPECT_EQ(verdict(kWithList, std::string("\0\x81\0\0", 4)), "5/26/00@p1.0");
  EXPECT_EQ(verdict(kWithList, std::string("\0\x80\0\x08\0\0\0\0\0\0\0\1", 12)), "5/26/00@p2")
      << "a defect";
  EXPECT_EQ(verdict(kWithLongList, std::string("\0\x80\0\x10\0\0\0\0", 8)), "5/26/00@p3");
  EXPECT_EQ(verdict(kWithLongList, std::string("\0\x80\0\0\0\0\0\x10", 8)), "5/26/00@p4");
  EXPECT_EQ(with_pattern(std::string("\x20\0\0\0", 4)), "5/26/00@p4") << "SECURITY INITIALIZE";
  EXPECT_EQ(with_pattern(std::string("\0\2\0\0", 4)), "5/26/00@p5");
  EXPECT_EQ(with_pattern(std::string("\0\0\0\1\0", 5)), "5/26/00@p6");
  EXPECT_EQ(with_pattern(std::string("\0\1\0\0", 4)), "5/26/00@p6");
  EXPECT_EQ(with_pattern(std::string("\0\1\2\1", 4) + std::string(513, '\0')), "5/26/00@p6");
  EXPECT_EQ(with_pattern(std::string("\0\1\0\2\0x", 6)), "5/26/00@p8");
  EXPECT_FALSE(empty());
  EXPECT_TRUE(rig_.layer->calls().empty());
}

TEST_F(UnitFormatTest, ListsThatEndTooSoon) {
  EXPECT_EQ(verdict(kWithList), "5/1A/00");
  EXPECT_EQ(verdict(kWithList, std::string(3, '\0')), "5/1A/00");
  EXPECT_EQ(verdict(kWithLongList, std::string(7, '\0')), "5/1A/00");
  EXPECT_EQ(with_pattern(std::string(3, '\0')), "5/1A/00");
  EXPECT_EQ(with_pattern(std::string("\0\1\0\2\0", 5)), "5/1A/00");
  EXPECT_FALSE(empty());
}

TEST_F(UnitFormatTest, MeanwhileNothingElseIsAnswered) {
  const auto other = rig_.attach("iqn.2026-11.org.example:other");
  rig_.layer->hold();
  EXPECT_EQ(verdict(kWithList, kImmediately), "good");
  EXPECT_EQ(verdict(kTestUnitReady), "2/04/04@p0");
  EXPECT_EQ(rig_.send_from(other, "28 00 00 00 00 00 00 00 01 00").verdict(), "2/04/04@p0");
  EXPECT_EQ(rig_.send_from(other, "25").verdict(), "2/04/04@p0")
      << "SBC-3 5.3.1: nor what others do";
  EXPECT_EQ(verdict(kFormat), "2/04/04@p0");
  EXPECT_EQ(verdict("48 02"), "2/04/04@p0");
  EXPECT_EQ(verdict("ff"), "5/20/00");
  EXPECT_EQ(verdict("12 00 00 00 ff 00"), "good");
  EXPECT_EQ(verdict("a0 00 00 00 00 00 00 00 01 00"), "good");
  EXPECT_EQ(rig_.send(kRequestSense).hex_data(),
            "70 00 02 00 00 00 00 0a 00 00 00 00 04 04 00 80 00 00");
  EXPECT_EQ(rig_.device->find_copy_unit({3, testing::example_identity().naa}), nullptr);
  rig_.layer->release();
  EXPECT_EQ(verdict(kTestUnitReady), "good");
  EXPECT_EQ(rig_.send(kRequestSense).hex_data().substr(6, 2), "00");
  EXPECT_NE(rig_.device->find_copy_unit({3, testing::example_identity().naa}), nullptr);
}

TEST_F(UnitFormatTest, WithImmedTheAnswerComesBehindItsRecord) {
  std::vector<std::string> given;
  rig_.device->execute(rig_.command(kWithList, kImmediately),
                       [&](const Response&) { given = rig_.layer->calls(); });
  EXPECT_EQ(given, std::vector<std::string>{"zero 0+1048576"});
}

TEST_F(UnitFormatTest, WithoutImmedTheAnswerIsTheEnd) {
  rig_.layer->hold();
  const auto answer = rig_.start(kFormat);
  EXPECT_FALSE(*answer);
  rig_.layer->release();
  EXPECT_EQ((*answer)->verdict(), "good");
}

TEST_F(UnitFormatTest, TaskManagementWaitsForIt) {
  rig_.layer->hold();
  rig_.start(kFormat);
  bool settled = false;
  rig_.device->manage(TaskManagementFunction::kLogicalUnitReset, 0, rig_.nexus,
                      [&] { settled = true; });
  EXPECT_FALSE(settled) << "its record is on its way";
  rig_.layer->release();
  EXPECT_TRUE(settled);
}

TEST_F(UnitFormatTest, AFailureChangesNothing) {
  rig_.layer->fail_next({ErrorCode::kIo, "gone"});
  EXPECT_EQ(verdict(kFormat), "3/31/01");
  EXPECT_FALSE(empty());
  rig_.layer->fail_next({ErrorCode::kNoSpace, "full"});
  EXPECT_EQ(verdict(kFormat), "7/27/07");
  EXPECT_EQ(verdict(kTestUnitReady), "good");
}

TEST_F(UnitFormatTest, WhatFailsLaterIsADeferredErrorOfWhoAsked) {
  const auto other = rig_.attach("iqn.2026-11.org.example:other");
  const auto fail = [&] {
    rig_.layer->fail_next({ErrorCode::kIo, "gone"});
    EXPECT_EQ(verdict(kWithList, kImmediately), "good");
  };
  fail();
  EXPECT_EQ(rig_.send_from(other, kTestUnitReady).verdict(), "good");
  EXPECT_EQ(verdict("12 00 00 00 ff 00"), "good");
  EXPECT_EQ(rig_.send("28 00 00 00 00 01 00 00 01 00").sense,
            "71 00 03 00 00 00 00 0a 00 00 00 00 31 01 00 00 00 00");
  EXPECT_EQ(verdict(kTestUnitReady), "good") << "once";
  fail();
  EXPECT_EQ(rig_.send("03 01 00 00 12").hex_data(), "73 03 31 01 00 00 00 00");
  EXPECT_EQ(verdict(kTestUnitReady), "good");
  EXPECT_FALSE(empty());
}

TEST_F(UnitFormatTest, IsAWriteForReservationsAndProtection) {
  const auto other = rig_.attach("iqn.2026-11.org.example:other");
  EXPECT_EQ(verdict("16"), "good");
  EXPECT_EQ(rig_.send_from(other, kFormat).status, Status::kReservationConflict);
  EXPECT_EQ(verdict("17"), "good");
  EXPECT_EQ(reservation_access(Operation::kFormatUnit), ReservationAccess::kWrites);
  rig_.layer->set_read_only(true);
  EXPECT_EQ(verdict(kFormat), "7/27/00");
  rig_.layer->set_read_only(false);
  EXPECT_EQ(verdict("1b 00 00 00 00"), "good");
  EXPECT_EQ(verdict(kFormat), "2/04/02") << "stopped";
  EXPECT_FALSE(empty());
}

TEST_F(UnitFormatTest, IsListed) {
  EXPECT_EQ(rig_.send("a3 0c 81 04 00 00 00 00 01 00").hex_data(),
            "00 83 00 06 04 3f 00 00 00 00 00 0a 00 00 00 00 00 02 00 00 00 1e");
}

}  // namespace
}  // namespace mariner::scsi
