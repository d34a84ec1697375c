#include "server/scsi/copy_ledger.h"

#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

using State = CopyReport::State;
using testing::hex;

const NexusId kOne{{"iqn.2026-11.org.example:one", {}}, 1};
const NexusId kOther{{"iqn.2026-11.org.example:other", {}}, 1};

TEST(CopyLedger, KnowsCopiesByInitiatorAndIdentifier) {
  CopyLedger ledger;
  const auto begun = ledger.begin(kOne, 0x12345678, {});
  ASSERT_NE(begun, nullptr);
  EXPECT_EQ(ledger.find(kOne, 0x12345678), begun);
  EXPECT_EQ(ledger.find(kOther, 0x12345678), nullptr);
  EXPECT_EQ(ledger.find(kOne, 1), nullptr);
  EXPECT_EQ(ledger.begin(kOne, 0x12345678, {}), nullptr) << "it is under way";
  EXPECT_NE(ledger.begin(kOther, 0x12345678, {}), nullptr);
  ledger.forget(kOne, 0x12345678);
  EXPECT_EQ(ledger.find(kOne, 0x12345678), begun) << "nor is it forgotten";
  begun->state = State::kDone;
  const auto again = ledger.begin(kOne, 0x12345678, {});
  ASSERT_NE(again, nullptr);
  EXPECT_NE(again, begun);
}

TEST(CopyLedger, RemembersSoManyOfEachAndOfAll) {
  CopyLedger ledger;
  const auto add = [&](const NexusId& from, std::uint32_t id, State state) {
    ledger.begin(from, id, {})->state = state;
  };
  add(kOther, 1, State::kDone);
  add(kOne, 0, State::kInBackground);
  for (std::uint32_t id = 1; id <= CopyLedger::kRememberedOfOneMax; ++id) {
    add(kOne, id, State::kDone);
  }
  EXPECT_NE(ledger.find(kOne, 0), nullptr) << "what is under way stays";
  EXPECT_EQ(ledger.find(kOne, 1), nullptr);
  EXPECT_NE(ledger.find(kOne, 2), nullptr);
  EXPECT_NE(ledger.find(kOther, 1), nullptr);
  for (int i = 0; i < 256; ++i) {
    const NexusId many{{"iqn.2026-11.org.example:" + std::to_string(i), {}}, 1};
    add(many, 1, State::kFailed);
  }
  EXPECT_EQ(ledger.find(kOther, 1), nullptr);
  ledger.forget_all();
  EXPECT_EQ(ledger.find({{"iqn.2026-11.org.example:255", {}}, 1}, 1), nullptr);
  EXPECT_NE(ledger.find(kOne, 0), nullptr);
}

TEST(CopyLedger, StatusOfACopyUnderWay) {
  CopyReport report;
  report.service_action = 0x11;
  report.state = State::kInBackground;
  report.operations = 3;
  report.transferred = 3 << 20;
  report.block_bytes = 512;
  const std::string status =
      "00 00 00 1c 11 12 00 03 00 00 00 64 00 00 00 f1 00 00 00 00 00 00 18 00 00 00 00 00 00 00 "
      "00 00";
  EXPECT_EQ(hex(copy_status_lid4(report)), status);
  EXPECT_EQ(hex(rod_token_information(report)), "00 00 00 20" + status.substr(11) + " 00 00 00 00");
}

TEST(CopyLedger, StatusOfAFailureHasItsSense) {
  CopyReport report;
  report.service_action = 0x11;
  report.state = State::kFailed;
  report.outcome = {Status::kCheckCondition, testing::bytes("72 0a 0d 01 00"), {}};
  const std::string status = hex(rod_token_information(report));
  EXPECT_EQ(status.substr(0, 16 * 3 - 1), "00 00 00 28 11 02 00 00 ff ff ff fe 02 08 05 00");
  EXPECT_EQ(status.substr(32 * 3), "72 0a 0d 01 00 00 00 00 00 00 00 00");
  report.state = State::kTerminated;
  EXPECT_EQ(hex(rod_token_information(report)).substr(12 * 3, 8), "40 00 00");
}

TEST(CopyLedger, TheTokenComesWithSuccessOnly) {
  CopyReport report;
  report.service_action = 0x10;
  report.state = State::kDone;
  report.token.emplace().fill(0xAB);
  const auto data = rod_token_information(report);
  ASSERT_EQ(data.size(), 32u + 4 + 2 + 512);
  EXPECT_EQ(hex(std::span(data).subspan(32, 8)), "00 00 02 02 00 00 ab ab");
  EXPECT_EQ(copy_status_lid4(report).size(), 32u);
  report.state = State::kFailed;
  EXPECT_EQ(rod_token_information(report).size(), 36u);
}

}  // namespace
}  // namespace mariner::scsi
