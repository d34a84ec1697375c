// The commands that wait for the layer.
#include <gmock/gmock.h>

#include <memory>
#include <utility>

#include "proto/bytes.h"
#include "server/scsi/disk.h"
#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

using ::testing::ElementsAre;
using testing::Rig;

std::string block(char c, std::size_t count = 1) { return std::string(512 * count, c); }

// A rig whose first 16 blocks hold 'a', with the calls of its layer recorded.
struct Written : Rig {
  explicit Written(const Options& options = {}) : Rig(options) {
    EXPECT_EQ(send("2a 00 00 00 00 00 00 00 10 00", block('a', 16)).verdict(), "good");
    layer->record_calls();
  }
  std::string at(std::uint64_t lba, std::uint64_t blocks = 1) const {
    return layer->text({lba * 512, blocks * 512});
  }
};

TEST(Read, ReturnsTheBlocks) {
  Written rig;
  EXPECT_EQ(rig.send("28 00 00 00 00 0f 00 00 02 00").text(), block('a') + block('\0'));
  EXPECT_THAT(rig.layer->calls(), ElementsAre("read 7680+1024"));
}
TEST(Read, OfNothingAsksNothing) {
  Written rig;
  EXPECT_EQ(rig.send("28 00 00 00 00 00 00 00 00 00").verdict(), "good");
  EXPECT_TRUE(rig.layer->calls().empty());
}
TEST(Read, PassesTheLayersMemoryOn) {
  Written rig;
  rig.device->execute(rig.command("28 00 00 00 00 00 00 00 08 00"), [](const Response& response) {
    ASSERT_EQ(response.data_in.size(), 1u);
    EXPECT_EQ(response.data_in[0].length, 4096u);
  });
}
TEST(Read, SaysWhichLbaFailed) {
  Written rig;
  rig.layer->fail_next({ErrorCode::kCorrupt, "checksum"});
  EXPECT_EQ(rig.send("28 00 00 00 00 07 00 00 01 00").verdict(), "3/11/00i7");
}
TEST(Read, WorksOnAReadOnlyDisk) {
  EXPECT_EQ(Rig({.read_only = true}).send("28 00 00 00 00 00 00 00 01 00").text(), block('\0'));
}

TEST(Write, EachFormWrites) {
  for (const auto* cdb :
       {"0a 00 00 02 01 00", "2a 00 00 00 00 02 00 00 01 00", "aa 00 00 00 00 02 00 00 00 01",
        "8a 00 00 00 00 00 00 00 00 02 00 00 00 01", "2e 00 00 00 00 02 00 00 01 00",
        "ae 00 00 00 00 02 00 00 00 01", "8e 02 00 00 00 00 00 00 00 02 00 00 00 01"}) {
    Written rig;
    EXPECT_EQ(rig.send(cdb, block('b')).verdict(), "good") << cdb;
    EXPECT_EQ(rig.at(1, 3), block('a') + block('b') + block('a')) << cdb;
  }
}
TEST(Write, IsOneWriteOfTheLayerWithoutACopy) {
  Written rig;
  EXPECT_EQ(rig.send("2a 08 00 00 00 00 00 00 02 00", block('b', 2)).verdict(), "good");
  EXPECT_THAT(rig.layer->calls(), ElementsAre("write 0+1024"));
}
TEST(Write, OfNothingAsksNothing) {
  Written rig;
  EXPECT_EQ(rig.send("2a 00 00 00 00 00 00 00 00 00").verdict(), "good");
  EXPECT_TRUE(rig.layer->calls().empty());
}
TEST(Write, AnswersWhenTheLayerSaysThatItIsDurable) {
  Written rig;
  rig.layer->hold();
  const auto outcome = rig.start("2a 00 00 00 00 00 00 00 01 00", block('b'));
  EXPECT_FALSE(outcome->has_value());
  rig.layer->release();
  EXPECT_EQ(outcome->value().verdict(), "good");
}
TEST(Write, WithFewerBlocksThanTheCdbSaysWritesThose) {
  Written rig;
  EXPECT_EQ(rig.send("2a 00 00 00 00 00 00 00 02 00", block('b')).verdict(), "good");
  EXPECT_EQ(rig.at(0, 2), block('b') + block('a'));
}
TEST(Write, WithoutDataWritesNothing) {
  Written rig;
  EXPECT_EQ(rig.send("2a 00 00 00 00 00 00 00 01 00").verdict(), "good");
  EXPECT_TRUE(rig.layer->calls().empty());
}
TEST(Write, WithPartOfABlockIsRefused) {
  Written rig;
  EXPECT_EQ(rig.send("2a 00 00 00 00 00 00 00 02 00", std::string(712, 'b')).verdict(), "5/0E/03");
  EXPECT_TRUE(rig.layer->calls().empty());
}
TEST(Write, ToldOfMoreThanItNeedsWritesWhatItNeeds) {
  Written rig;
  rig.data_out_announced = 1024;
  EXPECT_EQ(rig.send("2a 00 00 00 00 00 00 00 01 00", block('b')).verdict(), "good");
  EXPECT_EQ(rig.at(0, 2), block('b') + block('a'));
}

// What a session receives while it does not fit is without data, or without memory for its answer.
TEST(AGrowingDisk, StillRefusesWhatWasReceivedBefore) {
  for (const auto* cdb :
       {"2a 00 00 00 08 00 00 00 08 00", "aa 00 00 00 08 00 00 00 00 08",
        "8a 00 00 00 00 00 00 00 08 00 00 00 00 08", "2e 02 00 00 08 00 00 00 08 00",
        "9c 00 00 00 00 00 00 00 08 00 00 00 00 08", "89 00 00 00 00 00 00 00 08 00 00 00 00 08",
        "8b 00 00 00 00 00 00 00 08 00 00 00 00 08", "2f 02 00 00 08 00 00 00 08 00",
        "41 00 00 00 08 00 00 00 08 00", "28 00 00 00 08 00 00 00 08 00"}) {
    Written rig;
    Command early = rig.command(cdb);
    early.data_out_announced = 4096;
    EXPECT_EQ(rig.transfer_of(cdb).bytes, 0u) << cdb;
    rig.layer->resize(2 << 20);
    std::string verdict;
    rig.device->execute(std::move(early), [&](const Response& response) {
      verdict = testing::outcome_of(response).verdict();
    });
    EXPECT_EQ(verdict, "5/21/00i2048") << cdb;
    EXPECT_TRUE(rig.layer->calls().empty()) << cdb;
    EXPECT_NE(rig.transfer_of(cdb).bytes, 0u) << cdb;
  }
}
TEST(AGrowingDisk, IsWrittenBehindItsOldEnd) {
  Written rig;
  rig.layer->resize(2 << 20);
  EXPECT_EQ(rig.send("2a 00 00 00 08 00 00 00 01 00", block('b')).verdict(), "good");
  EXPECT_EQ(rig.at(0x800), block('b'));
}

TEST(Write, ToAFullLogIsAFailedSpaceAllocation) {
  Written rig;
  rig.layer->fail_next({ErrorCode::kNoSpace, "full"});
  EXPECT_EQ(rig.send("2a 00 00 00 00 00 00 00 01 00", block('b')).verdict(), "7/27/07");
}
TEST(Write, ToAnOverloadedLayerIsBusy) {
  Written rig;
  rig.layer->fail_next({ErrorCode::kLimit, "too many"});
  EXPECT_EQ(rig.send("2a 00 00 00 00 00 00 00 01 00", block('b')).verdict(), "busy");
}

TEST(WriteProtection, RefusesEveryCommandThatWrites) {
  Rig rig({.read_only = true});
  rig.layer->record_calls();
  for (const auto* cdb :
       {"0a 00 00 00 01 00", "2a 00 00 00 00 00 00 00 01 00", "aa 00 00 00 00 00 00 00 00 01",
        "8a 00 00 00 00 00 00 00 00 00 00 00 00 01", "2e 00 00 00 00 00 00 00 01 00",
        "41 00 00 00 00 00 00 00 01 00", "93 09 00 00 00 00 00 00 00 00 00 00 00 01",
        "42 00 00 00 00 00 00 00 00 00"}) {
    EXPECT_EQ(rig.send(cdb, block('b')).verdict(), "7/27/00") << cdb;
  }
  EXPECT_TRUE(rig.layer->calls().empty());
}
TEST(WriteProtection, DoesNotHideAWrongAddress) {
  Rig rig({.read_only = true});
  EXPECT_EQ(rig.send("2a 00 00 01 00 00 00 00 01 00").verdict(), "5/21/00i65536");
}

TEST(WriteAndVerify, ReadsBackWhatItWrote) {
  Written rig;
  EXPECT_EQ(rig.send("2e 02 00 00 00 00 00 00 01 00", block('b')).verdict(), "good");
  EXPECT_THAT(rig.layer->calls(), ElementsAre("write 0+512", "read 0+512"));
}
TEST(WriteAndVerify, DoesNotReadWhatCouldNotBeWritten) {
  Written rig;
  rig.layer->fail_next({ErrorCode::kIo, "bad"});
  EXPECT_EQ(rig.send("2e 02 00 00 00 03 00 00 01 00", block('b')).verdict(), "3/0C/00i3");
  EXPECT_THAT(rig.layer->calls(), ElementsAre("write 1536+512"));
}
TEST(WriteAndVerify, WithFewerBlocksVerifiesThose) {
  Written rig;
  EXPECT_EQ(rig.send("2e 02 00 00 00 00 00 00 02 00", block('b')).verdict(), "good");
  EXPECT_THAT(rig.layer->calls(), ElementsAre("write 0+512", "read 0+512"));
}

TEST(Verify, WithoutByteCheckReadsTheMedium) {
  Written rig;
  EXPECT_EQ(rig.send("2f 00 00 00 00 00 00 00 02 00").verdict(), "good");
  EXPECT_THAT(rig.layer->calls(), ElementsAre("read 0+1024"));
  rig.layer->fail_next({ErrorCode::kCorrupt, "checksum"});
  EXPECT_EQ(rig.send("2f 00 00 00 00 05 00 00 02 00").verdict(), "3/11/00i5");
}
TEST(Verify, WithByteCheckComparesEveryByte) {
  Written rig;
  EXPECT_EQ(rig.send("2f 02 00 00 00 00 00 00 02 00", block('a', 2)).verdict(), "good");
  std::string wrong = block('a', 2);
  wrong.back() = 'x';
  EXPECT_EQ(rig.send("2f 02 00 00 00 00 00 00 02 00", wrong).verdict(), "E/1D/00i1");
  EXPECT_EQ(rig.send("8f 02 00 00 00 00 00 00 00 00 00 00 00 02", wrong).verdict(), "E/1D/00i1");
}
TEST(Verify, WithOneBlockComparesEachBlockWithIt) {
  Written rig;
  EXPECT_EQ(rig.send("af 06 00 00 00 00 00 00 00 10", block('a')).verdict(), "good");
  EXPECT_EQ(rig.send("af 06 00 00 00 00 00 00 00 11", block('a')).verdict(), "E/1D/00i16");
}
TEST(Verify, WithOneBlockNeedsThatBlock) {
  Written rig;
  EXPECT_EQ(rig.send("2f 06 00 00 00 00 00 00 02 00").verdict(), "5/0E/03");
}
TEST(Verify, OfNothingAsksNothing) {
  Written rig;
  EXPECT_EQ(rig.send("2f 02 00 00 00 00 00 00 00 00").verdict(), "good");
  EXPECT_EQ(rig.send("2f 06 00 00 00 00 00 00 00 00").verdict(), "good");
  EXPECT_TRUE(rig.layer->calls().empty());
}

TEST(WriteSame, RepeatsTheBlock) {
  Written rig;
  EXPECT_EQ(rig.send("41 00 00 00 00 01 00 00 02 00", block('b')).verdict(), "good");
  EXPECT_EQ(rig.at(0, 4), block('a') + block('b', 2) + block('a'));
  EXPECT_THAT(rig.layer->calls(), ElementsAre("write_same 512+1024"));
}
TEST(WriteSame, UnmapsWhenItWritesZeros) {
  Written rig;
  EXPECT_EQ(rig.send("41 08 00 00 00 01 00 00 02 00", block('\0')).verdict(), "good");
  EXPECT_EQ(rig.at(0, 4), block('a') + block('\0', 2) + block('a')) << "exactly those blocks";
  EXPECT_THAT(rig.layer->calls(), ElementsAre("zero 512+1024"));
}
TEST(WriteSame, WithUnmapStillWritesOtherData) {
  Written rig;
  EXPECT_EQ(rig.send("93 08 00 00 00 00 00 00 00 01 00 00 00 02", block('b')).verdict(), "good");
  EXPECT_EQ(rig.at(1, 2), block('b', 2));
}
TEST(WriteSame, WithoutUnmapWritesZeros) {
  Written rig;
  EXPECT_EQ(rig.send("41 00 00 00 00 00 00 00 02 00", block('\0')).verdict(), "good");
  EXPECT_THAT(rig.layer->calls(), ElementsAre("write_same 0+1024"));
}
TEST(WriteSame, WithoutDataWritesZeros) {
  Written rig;
  EXPECT_EQ(rig.send("93 01 00 00 00 00 00 00 00 01 00 00 00 02").verdict(), "good");
  EXPECT_EQ(rig.at(0, 4), block('a') + block('\0', 2) + block('a'));
  EXPECT_EQ(rig.send("93 09 00 00 00 00 00 00 00 08 00 00 00 08").verdict(), "good");
  EXPECT_THAT(rig.layer->calls(), ElementsAre("write_same 512+1024", "zero 4096+4096"));
}
TEST(WriteSame, NeedsExactlyOneBlock) {
  Written rig;
  EXPECT_EQ(rig.send("41 00 00 00 00 00 00 00 02 00").verdict(), "5/0E/03");
  EXPECT_EQ(rig.send("41 00 00 00 00 00 00 00 02 00", std::string(256, 'b')).verdict(), "5/0E/03");
  rig.data_out_announced = 1024;
  EXPECT_EQ(rig.send("41 00 00 00 00 00 00 00 02 00", block('b')).verdict(), "5/0E/03");
  EXPECT_TRUE(rig.layer->calls().empty());
}

std::string unmap_list(std::initializer_list<Extent> extents) {
  std::string list(8 + 16 * extents.size(), '\0');
  store_be(&list[2], static_cast<std::uint16_t>(16 * extents.size()));
  std::size_t at = 8;
  for (const Extent& extent : extents) {
    store_be(&list[at], extent.lba);
    store_be(&list[at + 8], static_cast<std::uint32_t>(extent.blocks));
    at += 16;
  }
  return list;
}

TEST(UnmapCommand, EachDescriptorIsOneWrite) {
  Written rig;
  EXPECT_EQ(rig.send("42 00 00 00 00 00 00 00 28 00", unmap_list({{0, 8}, {8, 4}})).verdict(),
            "good");
  // Parts of 4 KiB blocks too: an unmapped LBA reads as zero (LBPRZ).
  EXPECT_THAT(rig.layer->calls(), ElementsAre("zero 0+4096", "zero 4096+2048"));
  EXPECT_EQ(rig.at(0, 8), block('\0', 8));
}
TEST(UnmapCommand, AnswersWhenAllAreDone) {
  Written rig;
  rig.layer->hold();
  const auto outcome = rig.start("42 00 00 00 00 00 00 00 28 00", unmap_list({{0, 8}, {8, 8}}));
  EXPECT_EQ(rig.layer->held(), 2u);
  EXPECT_FALSE(outcome->has_value());
  rig.layer->release();
  EXPECT_EQ(outcome->value().verdict(), "good");
}
TEST(UnmapCommand, TellsTheFirstFailure) {
  Written rig;
  rig.layer->fail_next({ErrorCode::kIo, "bad"});
  EXPECT_EQ(rig.send("42 00 00 00 00 00 00 00 28 00", unmap_list({{8, 8}, {0, 8}})).verdict(),
            "3/0C/00i8");
}
TEST(UnmapCommand, OfNothingIsGood) {
  Written rig;
  EXPECT_EQ(rig.send("42 00 00 00 00 00 00 00 00 00").verdict(), "good");
  EXPECT_EQ(rig.send("42 00 00 00 00 00 00 00 18 00", unmap_list({{0, 0}})).verdict(), "good");
  EXPECT_TRUE(rig.layer->calls().empty());
}
TEST(UnmapCommand, ABadDescriptorLeavesAllUntouched) {
  Written rig;
  EXPECT_EQ(rig.send("42 00 00 00 00 00 00 00 28 00", unmap_list({{0, 8}, {2048, 1}})).verdict(),
            "5/21/00i2048");
  EXPECT_TRUE(rig.layer->calls().empty());
}
TEST(UnmapCommand, AShortListIsALengthError) {
  Written rig;
  EXPECT_EQ(rig.send("42 00 00 00 00 00 00 00 28 00", unmap_list({{0, 8}})).verdict(), "5/1A/00");
}

TEST(GetLbaStatusCommand, OfAnUnwrittenDisk) {
  EXPECT_EQ(Rig().send("9e 12 00 00 00 00 00 00 00 00 00 00 00 ff").hex_data(),
            "00 00 00 14 00 00 00 00 00 00 00 00 00 00 00 00 00 00 08 00 01 00 00 00");
}
TEST(GetLbaStatusCommand, AlternatesAndStartsWhereItWasAsked) {
  Rig rig;
  EXPECT_EQ(rig.send("2a 00 00 00 00 10 00 00 08 00", std::string(4096, 'x')).verdict(), "good");
  EXPECT_EQ(rig.send("9e 12 00 00 00 00 00 00 00 0c 00 00 00 ff").hex_data(),
            "00 00 00 34 00 00 00 00 "
            "00 00 00 00 00 00 00 0c 00 00 00 04 01 00 00 00 "
            "00 00 00 00 00 00 00 10 00 00 00 08 00 00 00 00 "
            "00 00 00 00 00 00 00 18 00 00 07 e8 01 00 00 00");
}
TEST(GetLbaStatusCommand, LooksABoundedWay) {
  Rig rig({.size_bytes = 1ull << 40});
  EXPECT_EQ(rig.send("9e 12 00 00 00 00 00 00 00 00 00 00 00 18").hex_data(),
            "00 00 00 14 00 00 00 00 00 00 00 00 00 00 00 00 00 08 00 00 01 00 00 00");
}
TEST(GetLbaStatusCommand, HasABoundedNumberOfDescriptors) {
  Rig rig({.size_bytes = 16 << 20});
  for (std::uint64_t block = 0; block < 4096; block += 2) {
    rig.layer->write(to_bytes({Lbn{block}, BlockCount{1}}),
                     {Payload::zeroed(kBlockBytes), 0, kBlockBytes}, [](Result<void>) {});
  }
  EXPECT_EQ(rig.send("9e 12 00 00 00 00 00 00 00 00 00 10 00 00").data.size(), 8 + 1024 * 16u);
}
TEST(GetLbaStatusCommand, AnswersWhenTheLayerDoes) {
  Written rig;
  rig.layer->hold();
  const auto outcome = rig.start("9e 12 00 00 00 00 00 00 00 08 00 00 00 ff");
  EXPECT_THAT(rig.layer->calls(), ElementsAre("allocation 4096+1044480"));
  EXPECT_FALSE(outcome->has_value());
  rig.layer->release();
  ASSERT_TRUE(outcome->has_value());
  EXPECT_EQ(outcome->value().hex_data(),
            "00 00 00 24 00 00 00 00 "
            "00 00 00 00 00 00 00 08 00 00 00 08 00 00 00 00 "
            "00 00 00 00 00 00 00 10 00 00 07 f0 01 00 00 00");
}
TEST(GetLbaStatusCommand, ALateAnswerIsCutToTheAllocationLength) {
  Written rig;
  rig.layer->hold();
  const auto outcome = rig.start("9e 12 00 00 00 00 00 00 00 08 00 00 00 08");
  rig.layer->release();
  EXPECT_EQ(outcome->value().hex_data(), "00 00 00 24 00 00 00 00");
}
TEST(GetLbaStatusCommand, SaysWhichLbaFailed) {
  Written rig;
  for (const bool later : {false, true}) {
    rig.layer->fail_next({ErrorCode::kIo, "bad"});
    if (later) rig.layer->hold();
    const auto outcome = rig.start("9e 12 00 00 00 00 00 00 00 07 00 00 00 ff");
    EXPECT_EQ(outcome->has_value(), !later);
    rig.layer->release();
    ASSERT_TRUE(outcome->has_value());
    EXPECT_EQ(outcome->value().verdict(), "3/11/00i7");
    EXPECT_TRUE(outcome->value().data.empty());
  }
  rig.layer->fail_next({ErrorCode::kCorrupt, "checksum"});
  EXPECT_EQ(rig.send("9e 12 00 00 00 00 00 00 00 07 00 00 00 ff").verdict(), "3/11/00i7");
  rig.layer->fail_next({ErrorCode::kUnavailable, "away"});
  EXPECT_EQ(rig.send("9e 12 00 00 00 00 00 00 00 07 00 00 00 ff").verdict(), "2/04/01");
}
TEST(GetLbaStatusCommand, UnderWayOutlivesItsDevice) {
  Written rig;
  rig.layer->hold();
  const auto outcome = rig.start("9e 12 00 00 00 00 00 00 00 00 00 00 00 ff");
  rig.device.reset();
  const std::weak_ptr<test::RamLayer> held = std::exchange(rig.layer, nullptr);
  const auto layer = held.lock();
  ASSERT_NE(layer, nullptr) << "the command holds the disk, and the disk its layer";
  layer->release();
  ASSERT_TRUE(outcome->has_value());
  EXPECT_EQ(outcome->value().verdict(), "good");
}

TEST(SynchronizeCache, Flushes) {
  Written rig;
  EXPECT_EQ(rig.send("35 00 00 00 00 00 00 00 00 00").verdict(), "good");
  EXPECT_EQ(rig.send("91 02 00 00 00 00 00 00 00 00 00 00 00 00").verdict(), "good");
  EXPECT_THAT(rig.layer->calls(), ElementsAre("flush 0+0", "flush 0+0"));
}
TEST(SynchronizeCache, TellsAFailure) {
  Written rig;
  rig.layer->fail_next({ErrorCode::kUnavailable, "away"});
  EXPECT_EQ(rig.send("35 00 00 00 00 00 00 00 00 00").verdict(), "2/04/01");
}
TEST(DiskLifetime, ACommandUnderWayOutlivesItsDevice) {
  Written rig;
  rig.layer->hold();
  const auto outcome = rig.start("2e 02 00 00 00 00 00 00 01 00", block('b'));
  rig.device.reset();
  rig.layer->release();
  EXPECT_EQ(outcome->value().verdict(), "good");
}

TEST(GetLbaStatusCommand, BeginsWithTheBlockThatWasAskedFor) {
  Written rig;
  EXPECT_EQ(rig.send("9e 12 00 00 00 00 00 00 00 09 00 00 00 18 00 00").hex_data().substr(24, 47),
            "00 00 00 00 00 00 00 09 00 00 00 07 00 00 00 00")
      << "in the middle of a physical block";
}

constexpr std::string_view kCompareAndWrite = "89 00 00 00 00 00 00 00 00 04 00 00 00 02 00 00";

TEST(CompareAndWrite, WritesWhatComparesEqual) {
  Written rig;
  EXPECT_EQ(rig.send(kCompareAndWrite, block('a', 2) + block('b', 2)).verdict(), "good");
  EXPECT_EQ(rig.at(3, 4), block('a') + block('b', 2) + block('a'));
  EXPECT_THAT(rig.layer->calls(), ElementsAre("update 2048+1024"));
}
TEST(CompareAndWrite, WritesNothingWhereOneByteDiffers) {
  Written rig;
  std::string other = block('a', 2);
  other[700] = 'x';
  EXPECT_EQ(rig.send(kCompareAndWrite, other + block('b', 2)).verdict(), "E/1D/00i700");
  EXPECT_EQ(rig.at(4, 2), block('a', 2));
}
TEST(CompareAndWrite, NeedsAllOfItsData) {
  Written rig;
  EXPECT_EQ(rig.send(kCompareAndWrite, block('a', 2)).verdict(), "5/0E/03");
  EXPECT_EQ(rig.send("89 00 00 00 00 00 00 00 00 04 00 00 00 00 00 00").verdict(), "good");
  EXPECT_EQ(rig.transfer_of(kCompareAndWrite).bytes, 2048u);
  rig.data_out_announced = 4096;
  EXPECT_EQ(rig.send(kCompareAndWrite, block('a', 2) + block('b', 2)).verdict(), "5/0E/03")
      << "or more than all";
  EXPECT_EQ(rig.send("89 00 00 00 00 00 00 00 00 04 00 00 00 00 00 00").verdict(), "5/24/00@13")
      << "data for no blocks";
}
TEST(CompareAndWrite, IsBounded) {
  Written rig;
  EXPECT_EQ(rig.send("89 00 00 00 00 00 00 00 00 00 00 00 00 81 00 00").verdict(), "5/24/00@13");
  EXPECT_EQ(rig.send("89 00 00 00 00 00 00 00 08 00 00 00 00 01 00 00").verdict(), "5/21/00i2048");
}
TEST(CompareAndWrite, FailsAsAWriteDoes) {
  Written rig;
  rig.layer->fail_next({ErrorCode::kIo, "gone"});
  EXPECT_EQ(rig.send(kCompareAndWrite, block('a', 2) + block('b', 2)).verdict(), "3/0C/00i4");
  rig.layer->set_read_only(true);
  EXPECT_EQ(rig.send(kCompareAndWrite, block('a', 2) + block('b', 2)).verdict(), "7/27/00");
}

TEST(OrWrite, SetsBits) {
  Written rig;
  EXPECT_EQ(rig.send("8b 00 00 00 00 00 00 00 00 04 00 00 00 01 00 00", block('\x06')).verdict(),
            "good");
  EXPECT_EQ(rig.at(4), block('g')) << "'a' is 0x61";
}

TEST(WriteAtomic, IsAWrite) {
  Written rig;
  EXPECT_EQ(rig.send("9c 00 00 00 00 00 00 00 00 04 00 00 00 02 00 00", block('b', 2)).verdict(),
            "good");
  EXPECT_EQ(rig.at(4, 2), block('b', 2));
  EXPECT_EQ(rig.send("9c 00 00 00 00 00 00 00 00 04 00 01 00 02 00 00", block('b', 2)).verdict(),
            "5/24/00@10")
      << "a boundary";
}

TEST(ReadDefectDataCommand, ThereAreNone) {
  Rig rig;
  EXPECT_EQ(rig.send("37 00 1d 00 00 00 00 00 ff 00").hex_data(), "00 1d 00 00");
  EXPECT_EQ(rig.send("b7 1d 00 00 00 00 00 00 00 ff 00 00").hex_data(), "00 1d 00 00 00 00 00 00");
}

}  // namespace
}  // namespace mariner::scsi
