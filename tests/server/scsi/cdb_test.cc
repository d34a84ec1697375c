#include "server/scsi/cdb.h"

#include "server/scsi/reply.h"
#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

using testing::cdb;

constexpr Geometry kGeometry{.block_bytes = 512, .block_count = 10'000, .transfer_blocks_max = 256};

template <typename T>
T decoded(std::string_view hex, const Geometry& geometry = kGeometry) {
  const Decoded result = decode(cdb(hex), geometry);
  EXPECT_TRUE(std::holds_alternative<T>(result)) << hex;
  return std::holds_alternative<T>(result) ? std::get<T>(result) : T{};
}

std::string refused(std::string_view hex, const Geometry& geometry = kGeometry) {
  const Sense sense = decoded<Sense>(hex, geometry);
  return testing::outcome_of(check_condition(sense, SenseFormat::kFixed)).verdict();
}

std::string extent(const Extent& extent) {
  return std::to_string(extent.lba) + "+" + std::to_string(extent.blocks);
}

// "in 512", "out 512" or "none".
std::string transfer(std::string_view hex) {
  const Transfer transfer = transfer_of(decode(cdb(hex), kGeometry), kGeometry);
  if (transfer.direction == Transfer::Direction::kNone) return "none";
  const bool in = transfer.direction == Transfer::Direction::kToInitiator;
  return (in ? "in " : "out ") + std::to_string(transfer.bytes);
}

TEST(Decode, UnknownOpcode) { EXPECT_EQ(refused("c0"), "5/20/00"); }
TEST(Decode, CommandsOfLaterWorkAreUnknownOpcodes) {
  for (const auto* hex : {"56", "57", "48", "a4"}) {
    EXPECT_EQ(refused(hex), "5/20/00") << hex;
  }
}
TEST(Decode, UnknownServiceAction) { EXPECT_EQ(refused("9e 11"), "5/24/00@1.4"); }
TEST(Decode, NacaIsRefused) { EXPECT_EQ(refused("00 00 00 00 00 04"), "5/24/00@5.2"); }
TEST(Decode, BytesPastTheCdbAreNotLookedAt) {
  decoded<TestUnitReady>("00 00 00 00 00 00 ff ff ff ff ff ff ff ff ff ff");
}

TEST(Decode, ExtentsOfAllForms) {
  EXPECT_EQ(extent(decoded<Read>("08 00 12 34 05 00").extent), "4660+5");
  EXPECT_EQ(extent(decoded<Read>("28 00 00 00 12 34 00 00 05 00").extent), "4660+5");
  EXPECT_EQ(extent(decoded<Read>("a8 00 00 00 12 34 00 00 00 05 00 00").extent), "4660+5");
  EXPECT_EQ(extent(decoded<Read>("88 00 00 00 00 00 00 00 12 34 00 00 00 05 00 00").extent),
            "4660+5");
  EXPECT_EQ(extent(decoded<Write>("0a 00 12 34 05 00").extent), "4660+5");
  EXPECT_EQ(extent(decoded<Write>("2a 00 00 00 12 34 00 00 05 00").extent), "4660+5");
  EXPECT_EQ(extent(decoded<Write>("aa 00 00 00 12 34 00 00 00 05 00 00").extent), "4660+5");
  EXPECT_EQ(extent(decoded<Write>("8a 00 00 00 00 00 00 00 12 34 00 00 00 05 00 00").extent),
            "4660+5");
}
TEST(Decode, SixByteFormHas21BitsOfAddress) {
  const Geometry large{.block_bytes = 512, .block_count = 1u << 22, .transfer_blocks_max = 256};
  EXPECT_EQ(extent(decoded<Read>("08 1f ff ff 01 00", large).extent), "2097151+1");
}
TEST(Decode, SixByteFormWithLengthZeroMeans256) {
  EXPECT_EQ(extent(decoded<Read>("08 00 00 00 00 00").extent), "0+256");
}
TEST(Decode, OtherFormsWithLengthZeroMeanNothing) {
  EXPECT_EQ(extent(decoded<Read>("28 00 00 00 00 07 00 00 00 00").extent), "7+0");
}
TEST(Decode, SixteenByteFormHas64BitsOfAddress) {
  EXPECT_EQ(refused("88 00 ff ff ff ff ff ff ff ff 00 00 00 01 00 00"), "5/21/00");
  EXPECT_EQ(refused("88 00 80 00 00 00 00 00 00 00 00 00 00 00 00 00"), "5/21/00");
}

TEST(Decode, TheLastBlockCanBeRead) {
  EXPECT_EQ(extent(decoded<Read>("28 00 00 00 27 0f 00 00 01 00").extent), "9999+1");
}
TEST(Decode, ABlockPastTheEndIsOutOfRange) {
  EXPECT_EQ(refused("28 00 00 00 27 0f 00 00 02 00"), "5/21/00i10000");
  EXPECT_EQ(refused("28 00 00 00 27 10 00 00 01 00"), "5/21/00i10000");
}
TEST(Decode, NoBlocksJustPastTheEndAreNoError) {
  EXPECT_EQ(extent(decoded<Read>("28 00 00 00 27 10 00 00 00 00").extent), "10000+0");
}
TEST(Decode, NoBlocksFurtherOutAreOutOfRange) {
  EXPECT_EQ(refused("28 00 00 00 27 11 00 00 00 00"), "5/21/00i10001");
}
TEST(Decode, AsLongAsMaximumTransferLength) {
  EXPECT_EQ(extent(decoded<Write>("2a 00 00 00 00 00 00 01 00 00").extent), "0+256");
}
TEST(Decode, LongerThanMaximumTransferLengthIsRefusedAtTheLengthField) {
  EXPECT_EQ(refused("28 00 00 00 00 00 00 01 01 00"), "5/24/00@7");
  EXPECT_EQ(refused("a8 00 00 00 00 00 00 00 01 01 00 00"), "5/24/00@6");
  EXPECT_EQ(refused("8a 00 00 00 00 00 00 00 00 00 00 00 01 01 00 00"), "5/24/00@10");
  EXPECT_EQ(refused("2f 00 00 00 00 00 00 01 01 00"), "5/24/00@7");
  EXPECT_EQ(refused("2e 00 00 00 00 00 00 01 01 00"), "5/24/00@7");
}

TEST(Decode, DpoFuaAndFuaNvAreAccepted) { decoded<Write>("2a 1a 00 00 00 00 00 00 01 00"); }
TEST(Decode, ProtectionIsRefused) {
  EXPECT_EQ(refused("28 20 00 00 00 00 00 00 01 00"), "5/24/00@1.5");
  EXPECT_EQ(refused("8a e0 00 00 00 00 00 00 00 00 00 00 00 01 00 00"), "5/24/00@1.7");
}
TEST(Decode, AGroupNumberIsAccepted) { decoded<Read>("28 00 00 00 00 00 1f 00 01 00"); }

TEST(Decode, VerifyKnowsByteCheck0And1And3) {
  EXPECT_EQ(decoded<Verify>("2f 00 00 00 00 00 00 00 01 00").check, ByteCheck::kNone);
  EXPECT_EQ(decoded<Verify>("2f 02 00 00 00 00 00 00 01 00").check, ByteCheck::kAll);
  EXPECT_EQ(decoded<Verify>("af 06 00 00 00 00 00 00 00 01 00 00").check, ByteCheck::kOneBlock);
  EXPECT_EQ(refused("8f 04 00 00 00 00 00 00 00 00 00 00 00 01 00 00"), "5/24/00@1.2");
}
TEST(Decode, WriteAndVerifyKnowsByteCheck0And1) {
  EXPECT_EQ(decoded<WriteAndVerify>("2e 00 00 00 00 00 00 00 01 00").check, ByteCheck::kNone);
  EXPECT_EQ(decoded<WriteAndVerify>("2e 12 00 00 00 00 00 00 01 00").check, ByteCheck::kAll);
  EXPECT_EQ(refused("2e 04 00 00 00 00 00 00 01 00"), "5/24/00@1.2");
  EXPECT_EQ(refused("2e 06 00 00 00 00 00 00 01 00"), "5/24/00@1.2");
}

TEST(Decode, WriteSameOfNoBlocksIsRefused) {
  EXPECT_EQ(refused("41 00 00 00 00 07 00 00 00 00"), "5/24/00@7");
  EXPECT_EQ(refused("93"), "5/24/00@10");
}
TEST(Decode, WriteSameMayBeLongerThanATransfer) {
  EXPECT_EQ(extent(decoded<WriteSame>("41 00 00 00 00 00 00 27 10 00").extent), "0+10000");
}
TEST(Decode, WriteSamePastTheEndIsOutOfRange) {
  EXPECT_EQ(refused("41 00 00 00 27 10 00 00 01 00"), "5/21/00i10000");
}
TEST(Decode, WriteSameIsRefusedBeyondItsMaximumLength) {
  const Geometry huge{.block_bytes = 512, .block_count = 1ull << 33, .transfer_blocks_max = 256};
  decoded<WriteSame>("93 00 00 00 00 00 00 00 00 00 00 00 80 00 00 00", huge);
  EXPECT_EQ(refused("93 00 00 00 00 00 00 00 00 00 00 00 80 01 00 00", huge), "5/24/00@10");
}
TEST(Decode, WriteSameFlags) {
  EXPECT_FALSE(decoded<WriteSame>("93 00 00 00 00 00 00 00 00 00 00 00 00 01").unmap);
  EXPECT_TRUE(decoded<WriteSame>("93 08 00 00 00 00 00 00 00 00 00 00 00 01").unmap);
  EXPECT_TRUE(decoded<WriteSame>("93 00 00 00 00 00 00 00 00 00 00 00 00 01").has_data);
  EXPECT_FALSE(decoded<WriteSame>("93 09 00 00 00 00 00 00 00 00 00 00 00 01").has_data);
}
TEST(Decode, AnchorIsRefusedBecauseNothingCanBeAnchored) {
  EXPECT_EQ(refused("41 18"), "5/24/00@1.4");
  EXPECT_EQ(refused("93 18"), "5/24/00@1.4");
  EXPECT_EQ(refused("42 01"), "5/24/00@1.0");
}
TEST(Decode, Ndob10DoesNotExist) { EXPECT_EQ(refused("41 01"), "5/24/00@1.0"); }

TEST(Decode, SynchronizeCacheAndPrefetchCheckTheirExtent) {
  decoded<SynchronizeCache>("35 06 00 00 00 00 00 00 00 00");
  decoded<Prefetch>("34 02 00 00 27 0f 00 00 01 00");
  EXPECT_EQ(refused("35 00 00 00 27 0f 00 00 02 00"), "5/21/00i10000");
  EXPECT_EQ(refused("91 00 00 00 00 00 00 00 27 10 00 00 00 00 00 00"), "5/21/00i10000");
  EXPECT_EQ(refused("90 00 00 00 00 00 00 00 27 11 00 00 00 00 00 00"), "5/21/00i10001");
}

TEST(Decode, Inquiry) {
  const Inquiry inquiry = decoded<Inquiry>("12 01 83 01 02 00");
  EXPECT_TRUE(inquiry.vital_product_data);
  EXPECT_EQ(inquiry.page, 0x83);
  EXPECT_EQ(inquiry.allocation_bytes, 0x102u);
}
TEST(Decode, InquiryOfAPageNeedsEvpd) { EXPECT_EQ(refused("12 00 83 00 ff 00"), "5/24/00@2"); }
TEST(Decode, InquiryCmddtIsObsolete) { EXPECT_EQ(refused("12 02 00 00 ff 00"), "5/24/00@1.1"); }

TEST(Decode, ModeSense) {
  const ModeSense six = decoded<ModeSense>("1a 08 8a ff 20 00");
  EXPECT_FALSE(six.ten);
  EXPECT_FALSE(six.block_descriptors);
  EXPECT_EQ(six.control, PageControl::kDefault);
  EXPECT_EQ(six.page, 0x0A);
  EXPECT_EQ(six.subpage, 0xFF);
  EXPECT_EQ(six.allocation_bytes, 0x20u);
  const ModeSense ten = decoded<ModeSense>("5a 10 3f 00 00 00 00 01 02 00");
  EXPECT_TRUE(ten.ten);
  EXPECT_TRUE(ten.long_lba);
  EXPECT_EQ(ten.allocation_bytes, 0x102u);
}
TEST(Decode, ModeSelectNeedsThePageFormat) {
  EXPECT_EQ(decoded<ModeSelect>("15 10 00 00 18 00").parameter_bytes, 0x18u);
  EXPECT_EQ(refused("15 00 00 00 18 00"), "5/24/00@1.4");
}
TEST(Decode, ModeSelectCannotSave) { EXPECT_EQ(refused("55 11"), "5/24/00@1.0"); }

TEST(Decode, ReadCapacityHasNoAddressAnyMore) {
  EXPECT_EQ(refused("25 00 00 00 00 01"), "5/24/00@5.0");
  EXPECT_EQ(refused("25 00 00 00 00 00 00 00 01"), "5/24/00@8.0");
}
TEST(Decode, GetLbaStatusStartsInsideTheDisk) {
  EXPECT_EQ(decoded<GetLbaStatus>("9e 12 00 00 00 00 00 00 27 0f 00 00 00 18").lba, 9999u);
  EXPECT_EQ(refused("9e 12 00 00 00 00 00 00 27 10 00 00 00 18"), "5/21/00i10000");
}
TEST(Decode, ReportLunsKnowsThreeSelections) {
  EXPECT_EQ(decoded<ReportLuns>("a0 00 02 00 00 00 00 00 01 00").select, ReportLuns::Select::kAll);
  EXPECT_EQ(refused("a0 00 03"), "5/24/00@2");
  EXPECT_EQ(refused("a0 00 10"), "5/24/00@2");
}
TEST(Decode, ReportOpcodesKnowsFourOptions) {
  EXPECT_EQ(decoded<ReportOpcodes>("a3 0c 03").option, ReportOpcodes::Option::kEither);
  EXPECT_EQ(refused("a3 0c 04"), "5/24/00@2.2");
}
TEST(Decode, StartStopUnitOfAFixedMedium) {
  EXPECT_EQ(decoded<StartStopUnit>("1b 00 00 00 01 00").action, StartStopUnit::Action::kStart);
  EXPECT_EQ(decoded<StartStopUnit>("1b 00 00 00 00 00").action, StartStopUnit::Action::kStop);
  EXPECT_FALSE(decoded<StartStopUnit>("1b 00 00 00 00 00").immediate);
  EXPECT_TRUE(decoded<StartStopUnit>("1b 01 00 00 00 00").immediate);
  EXPECT_TRUE(decoded<StartStopUnit>("1b 00 00 00 00 00").flush);
  EXPECT_FALSE(decoded<StartStopUnit>("1b 00 00 00 04 00").flush);
  EXPECT_EQ(refused("1b 00 00 00 02 00"), "5/24/00@4.1") << "nothing can be ejected";
  EXPECT_EQ(refused("1b 00 00 00 12 00"), "5/24/00@4.1");
}
TEST(Decode, StartStopUnitOfARemovableMedium) {
  const auto action = [](std::string_view hex) {
    const Decoded decoded = decode(
        testing::cdb(hex), {.block_count = 2048, .transfer_blocks_max = 256, .removable = true});
    return std::get<StartStopUnit>(decoded).action;
  };
  EXPECT_EQ(action("1b 00 00 00 02 00"), StartStopUnit::Action::kEject);
  EXPECT_EQ(action("1b 00 00 00 03 00"), StartStopUnit::Action::kLoad);
  EXPECT_EQ(action("1b 00 00 00 00 00"), StartStopUnit::Action::kStop);
  EXPECT_EQ(action("1b 00 00 00 12 00"), StartStopUnit::Action::kPower) << "LOEJ is not looked at";
}
TEST(Decode, PowerConditionsOfStartStopUnit) {
  for (const auto* condition : {"10", "20", "30", "a0", "b0", "a1"}) {
    EXPECT_EQ(decoded<StartStopUnit>("1b 00 00 00 " + std::string(condition) + " 00").action,
              StartStopUnit::Action::kPower)
        << condition;
  }
  for (const auto* other : {"40", "50", "60", "70", "80", "90", "c0", "f0"}) {
    EXPECT_EQ(decoded<StartStopUnit>("1b 00 00 00 " + std::string(other) + " 00").action,
              StartStopUnit::Action::kKeep)
        << other;
  }
  EXPECT_EQ(refused("1b 00 00 01 20 00"), "5/24/00@3.0") << "idle_b";
}
TEST(Decode, PreventAllow) {
  EXPECT_TRUE(decoded<PreventAllow>("1e 00 00 00 01 00").prevent);
  EXPECT_FALSE(decoded<PreventAllow>("1e 00 00 00 00 00").prevent);
  EXPECT_EQ(refused("1e 00 00 00 03 00"), "5/24/00@4.1") << "obsolete";
}

TEST(TransferOf, DataCommands) {
  EXPECT_EQ(transfer("28 00 00 00 00 00 00 00 08 00"), "in 4096");
  EXPECT_EQ(transfer("2a 00 00 00 00 00 00 00 08 00"), "out 4096");
  EXPECT_EQ(transfer("2e 00 00 00 00 00 00 00 08 00"), "out 4096");
  EXPECT_EQ(transfer("28 00 00 00 00 00 00 00 00 00"), "none");
}
TEST(TransferOf, VerifyByItsByteCheck) {
  EXPECT_EQ(transfer("2f 00 00 00 00 00 00 00 08 00"), "none");
  EXPECT_EQ(transfer("2f 02 00 00 00 00 00 00 08 00"), "out 4096");
  EXPECT_EQ(transfer("2f 06 00 00 00 00 00 00 08 00"), "out 512");
  EXPECT_EQ(transfer("2f 06 00 00 00 00 00 00 00 00"), "none");
}
TEST(TransferOf, WriteSameIsOneBlock) {
  EXPECT_EQ(transfer("41 00 00 00 00 00 00 10 00 00"), "out 512");
  EXPECT_EQ(transfer("93 09 00 00 00 00 00 00 00 00 00 00 10 00 00 00"), "none");
}
TEST(TransferOf, ParameterListsAndAllocationLengths) {
  EXPECT_EQ(transfer("42 00 00 00 00 00 00 00 18 00"), "out 24");
  EXPECT_EQ(transfer("15 10 00 00 0c 00"), "out 12");
  EXPECT_EQ(transfer("12 00 00 00 60 00"), "in 96");
  EXPECT_EQ(transfer("25"), "in 8");
  EXPECT_EQ(transfer("9e 10 00 00 00 00 00 00 00 00 00 00 00 20"), "in 32");
  EXPECT_EQ(transfer("00"), "none");
}
TEST(TransferOf, WhatIsRefusedTransfersNothing) {
  EXPECT_EQ(transfer("8a 00 00 00 00 00 00 00 00 00 ff ff ff ff 00 00"), "none");
  EXPECT_EQ(transfer("2a 00 00 00 27 10 00 00 01 00"), "none");
  EXPECT_EQ(transfer("c0"), "none");
}

}  // namespace
}  // namespace mariner::scsi
