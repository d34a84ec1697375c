// The commands that are answered at once, through the device as an initiator sees them.
#include "server/scsi/disk.h"

#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

using testing::Rig;

constexpr auto kSetDSense = "00 00 00 00 0a 0a 06 10 00 00 00 00 ff ff 00 1e";
constexpr auto kSetSwp = "00 00 00 00 0a 0a 02 10 08 00 00 00 ff ff 00 1e";
constexpr auto kModeSelect = "15 10 00 00 10 00";

std::string text_of(std::string_view hex) {
  const auto raw = testing::bytes(hex);
  return {raw.begin(), raw.end()};
}

TEST(Disk, IsReady) { EXPECT_EQ(Rig().send("00").verdict(), "good"); }

TEST(Disk, InquiryIsCutToTheAllocationLength) {
  Rig rig;
  EXPECT_EQ(rig.send("12 00 00 00 05 00").hex_data(), "00 00 06 12 5b");
  EXPECT_EQ(rig.send("12 00 00 00 00 00").hex_data(), "");
  EXPECT_EQ(rig.send("12 00 00 01 00 00").data.size(), 96u);
}
TEST(Disk, InquiryOfAPageThatDoesNotExist) {
  EXPECT_EQ(Rig().send("12 01 c0 00 ff 00").verdict(), "5/24/00@2");
}
TEST(Disk, InquiryOfAPage) {
  EXPECT_EQ(Rig().send("12 01 b2 00 ff 00").hex_data(), "00 b2 00 04 00 e4 02 00");
}

TEST(Disk, ReadCapacityFollowsTheLayer) {
  Rig rig;
  EXPECT_EQ(rig.send("25").hex_data(), "00 00 07 ff 00 00 02 00");
  rig.layer->resize(2 << 20);
  EXPECT_EQ(rig.send("25").hex_data(), "00 00 0f ff 00 00 02 00");
  EXPECT_EQ(rig.send("9e 10 00 00 00 00 00 00 00 00 00 00 00 0c").hex_data(),
            "00 00 00 00 00 00 0f ff 00 00 02 00");
}
TEST(Disk, With4096ByteBlocks) {
  Rig rig({.block_bytes = 4096});
  EXPECT_EQ(rig.send("25").hex_data(), "00 00 00 ff 00 00 10 00");
  EXPECT_EQ(rig.transfer_of("28 00 00 00 00 00 00 00 02 00").bytes, 8192u);
}

TEST(Disk, BlockLimitsAreWhatIsAccepted) {
  Rig rig({.transfer_bytes_max = 8192});
  EXPECT_EQ(rig.send("12 01 b0 00 10 00").hex_data().substr(24, 11), "00 00 00 10");
  EXPECT_EQ(rig.send("28 00 00 00 00 00 00 00 10 00").verdict(), "good");
  EXPECT_EQ(rig.send("28 00 00 00 00 00 00 00 11 00").verdict(), "5/24/00@7");
}

TEST(Disk, DSenseChoosesTheDescriptorFormat) {
  Rig rig;
  EXPECT_EQ(rig.send("c0").sense.substr(0, 2), "70");
  EXPECT_EQ(rig.send(kModeSelect, text_of(kSetDSense)).verdict(), "good");
  EXPECT_EQ(rig.send("c0").sense, "72 05 20 00 00 00 00 00");
  EXPECT_EQ(rig.send("1a 08 0a 00 ff 00").hex_data().substr(18, 2), "06");
}
TEST(Disk, SoftwareWriteProtection) {
  Rig rig;
  EXPECT_EQ(rig.send(kModeSelect, text_of(kSetSwp)).verdict(), "good");
  EXPECT_EQ(rig.send("2a 00 00 00 00 00 00 00 01 00", std::string(512, 'x')).verdict(), "7/27/02");
  EXPECT_EQ(rig.send("1a 08 0a 00 ff 00").hex_data().substr(6, 2), "90");
}
TEST(Disk, AResetReturnsToTheDefaultMode) {
  Rig rig;
  EXPECT_EQ(rig.send(kModeSelect, text_of(kSetSwp)).verdict(), "good");
  rig.device->manage(TaskManagementFunction::kLogicalUnitReset, 0, rig.nexus, [] {});
  EXPECT_EQ(rig.send("00").verdict(), "6/29/03");
  EXPECT_EQ(rig.send("2a 00 00 00 00 00 00 00 01 00", std::string(512, 'x')).verdict(), "good");
}
TEST(Disk, ABadModeListChangesNothing) {
  Rig rig;
  EXPECT_EQ(rig.send("15 10 00 00 12 00", text_of(std::string(kSetSwp) + "1b 00")).verdict(),
            "5/26/00@p16.5");
  EXPECT_EQ(rig.send("1a 08 0a 00 ff 00").hex_data().substr(6, 2), "10");
}
TEST(Disk, AReadOnlyLayerShowsInTheModeHeader) {
  EXPECT_EQ(Rig({.read_only = true}).send("5a 08 0a 00 00 00 00 00 08 00").hex_data(),
            "00 12 00 90 00 00 00 00");
}

TEST(Disk, PreventAllowIsAcceptedAndMeansNothing) {
  Rig rig;
  EXPECT_EQ(rig.send("1e 00 00 00 01 00").verdict(), "good");
  EXPECT_EQ(rig.send("1e 00 00 00 00 00").verdict(), "good");
}
TEST(Disk, PrefetchIsGoodNotConditionMet) {
  EXPECT_EQ(Rig().send("34 00 00 00 00 00 00 00 08 00").verdict(), "good");
}
TEST(Disk, PrefetchIsPassedOnUpToTheEndOrSoFar) {
  Rig rig;
  rig.layer->resize(256 << 20);
  rig.layer->record_calls();
  EXPECT_EQ(rig.send("34 00 00 00 00 08 00 00 10 00").verdict(), "good");
  EXPECT_EQ(rig.send("34 02 00 07 ff f8 00 00 00 00").verdict(), "good") << "to the end";
  EXPECT_EQ(rig.send("90 00 00 00 00 00 00 00 00 00 00 00 00 00").verdict(), "good");
  const std::vector<std::string> passed_on{
      "prefetch 4096+8192",
      "prefetch 268431360+4096",
      "prefetch 0+67108864",
  };
  EXPECT_EQ(rig.layer->calls(), passed_on);
  EXPECT_EQ(rig.send("34 00 00 07 ff f8 00 00 09 00").verdict(), "5/21/00i524288");
  EXPECT_EQ(rig.layer->calls().size(), 3U) << "what is refused is passed on to nobody";
}

TEST(Disk, ReportOpcodesThroughTheDisk) {
  Rig rig;
  EXPECT_EQ(rig.send("a3 0c 01 00 00 00 00 00 00 ff").hex_data(), "00 03 00 06 00 00 00 00 00 00");
  EXPECT_EQ(rig.send("a3 0c 01 9e 00 00 00 00 00 ff").verdict(), "5/24/00@2.2");
  EXPECT_EQ(rig.send("a3 0d 00 00 00 00 00 00 00 ff").hex_data(), "da 00 00 00");
}

}  // namespace
}  // namespace mariner::scsi
