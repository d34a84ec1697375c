#include "server/scsi/device.h"

#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

using testing::Rig;

constexpr std::uint64_t kMissingLun = 0x0001'0000'0000'0000;

TEST(Device, HasTheLunsThatItWasGiven) {
  Rig rig;
  EXPECT_TRUE(rig.device->has_lun(0));
  EXPECT_TRUE(rig.device->has_lun(0x4000'0000'0000'0000)) << "flat space addressing";
  EXPECT_FALSE(rig.device->has_lun(kMissingLun));
}
TEST(Device, NeedsLun0) { EXPECT_DEATH(Device({}), ""); }

TEST(ReportLunsCommand, ListsTheUnits) {
  EXPECT_EQ(Rig().send("a0 00 00 00 00 00 00 00 00 10").hex_data(),
            "00 00 00 08 00 00 00 00 00 00 00 00 00 00 00 00");
  EXPECT_EQ(Rig().send("a0 00 02 00 00 00 00 00 00 10").hex_data(),
            "00 00 00 08 00 00 00 00 00 00 00 00 00 00 00 00");
}
TEST(ReportLunsCommand, ThereAreNoWellKnownUnits) {
  EXPECT_EQ(Rig().send("a0 00 01 00 00 00 00 00 00 10").hex_data(), "00 00 00 00 00 00 00 00");
}
TEST(ReportLunsCommand, IsAnsweredByTheWellKnownLunAndByMissingOnes) {
  Rig rig;
  for (const std::uint64_t lun : {std::uint64_t{0xC101'0000'0000'0000}, kMissingLun}) {
    rig.lun = lun;
    EXPECT_EQ(rig.send("a0 00 00 00 00 00 00 00 00 10").data.size(), 16u);
  }
}

TEST(MissingLun, InquirySaysThatThereIsNoUnit) {
  Rig rig;
  rig.lun = kMissingLun;
  EXPECT_EQ(rig.send("12 00 00 00 05 00").hex_data(), "7f 00 06 12 1f");
  EXPECT_EQ(rig.transfer_of("12 00 00 00 05 00").bytes, 5u);
}
// Paths are watched with the first three.
TEST(Transfer, SaysWhetherWhatIsStoredIsUsed) {
  Rig rig;
  for (const auto* cdb : {"00", "12 00 00 00 05 00", "5e 00 00 00 00 00 00 00 10 00",
                          "9e 10 00 00 00 00 00 00 00 00 00 00 00 20", "c0"}) {
    EXPECT_FALSE(rig.transfer_of(cdb).is_use) << cdb;
  }
  for (const auto* cdb : {"28 00 00 00 00 00 00 00 01 00", "2a 00 00 00 00 00 00 00 01 00", "35",
                          "42 00 00 00 00 00 00 00 08 00"}) {
    EXPECT_TRUE(rig.transfer_of(cdb).is_use) << cdb;
  }
  rig.lun = kMissingLun;
  EXPECT_FALSE(rig.transfer_of("28 00 00 00 00 00 00 00 01 00").is_use);
}

TEST(MissingLun, HasNoPages) {
  Rig rig;
  rig.lun = kMissingLun;
  EXPECT_EQ(rig.send("12 01 83 00 ff 00").verdict(), "5/24/00@1.0");
}
TEST(MissingLun, RequestSenseSaysSoInItsData) {
  Rig rig;
  rig.lun = kMissingLun;
  EXPECT_EQ(rig.send("03 01 00 00 ff 00").hex_data(), "72 05 25 00 00 00 00 00");
}
TEST(MissingLun, AnythingElseIsRefusedAndTransfersNothing) {
  Rig rig;
  rig.lun = kMissingLun;
  for (const auto* cdb : {"00", "28 00 00 00 00 00 00 00 01 00", "c0", "15 10 00 00 10 00"}) {
    EXPECT_EQ(rig.send(cdb).verdict(), "5/25/00") << cdb;
    EXPECT_EQ(rig.transfer_of(cdb).bytes, 0u) << cdb;
  }
}

TEST(UnitAttention, PowerOnIsReportedOnceToANewNexus) {
  Rig rig;
  const auto nexus = rig.attach("iqn.2026-11.org.example:new", false);
  EXPECT_EQ(rig.send_from(nexus, "28 00 00 00 00 00 00 00 01 00").verdict(), "6/29/00");
  EXPECT_EQ(rig.send_from(nexus, "28 00 00 00 00 00 00 00 01 00").verdict(), "good");
}
TEST(UnitAttention, DoesNotHoldUpInquiryAndReportLuns) {
  Rig rig;
  const auto nexus = rig.attach("iqn.2026-11.org.example:new", false);
  EXPECT_EQ(rig.send_from(nexus, "12 00 00 00 24 00").verdict(), "good");
  EXPECT_EQ(rig.send_from(nexus, "12 01 ff 00 24 00").verdict(), "5/24/00@2");
  EXPECT_EQ(rig.send_from(nexus, "a0 00 00 00 00 00 00 00 00 10").verdict(), "good");
  EXPECT_EQ(rig.send_from(nexus, "00").verdict(), "6/29/00");
}
TEST(UnitAttention, RequestSenseReportsItAsDataAndClearsIt) {
  Rig rig;
  const auto nexus = rig.attach("iqn.2026-11.org.example:new", false);
  EXPECT_EQ(rig.send_from(nexus, "03 01 00 00 ff 00").hex_data(), "72 06 29 00 00 00 00 00");
  EXPECT_EQ(rig.send_from(nexus, "03 01 00 00 ff 00").hex_data(), "72 00 00 00 00 00 00 00");
  EXPECT_EQ(rig.send_from(nexus, "00").verdict(), "good");
}
TEST(UnitAttention, RequestSenseInFixedFormat) {
  EXPECT_EQ(Rig().send("03 00 00 00 ff 00").hex_data(),
            "70 00 00 00 00 00 00 0a 00 00 00 00 00 00 00 00 00 00");
}
TEST(UnitAttention, ComesBeforeAnUnknownOpcode) {
  Rig rig;
  const auto nexus = rig.attach("iqn.2026-11.org.example:new", false);
  EXPECT_EQ(rig.send_from(nexus, "c0").verdict(), "6/29/00");
  EXPECT_EQ(rig.send_from(nexus, "c0").verdict(), "5/20/00");
}
TEST(UnitAttention, AResizeIsTold) {
  Rig rig;
  rig.device->capacity_changed(Lun{0});
  EXPECT_EQ(rig.send("00").verdict(), "6/2A/09");
  EXPECT_EQ(rig.send("00").verdict(), "good");
}
TEST(UnitAttention, ARollbackIsToldAsParametersThenMedium) {
  Rig rig;
  rig.device->contents_replaced(Lun{0});
  EXPECT_EQ(rig.send("00").verdict(), "6/2A/01");
  EXPECT_EQ(rig.send("00").verdict(), "6/28/00");
  EXPECT_EQ(rig.send("00").verdict(), "good");
}
TEST(UnitAttention, ChangedParametersAreTold) {
  Rig rig;
  rig.device->parameters_changed(Lun{0});
  EXPECT_EQ(rig.send("00").verdict(), "6/2A/01");
}
TEST(UnitAttention, AnAccessStateThatChangedIsToldToEveryNexus) {
  Rig rig({.port_groups = std::make_shared<testing::FakePortGroups>()});
  const auto other = rig.attach("iqn.2026-11.org.example:other");
  rig.device->access_state_changed(Lun{0});
  rig.device->access_state_changed(Lun{0});
  rig.device->capacity_changed(Lun{0});
  EXPECT_EQ(rig.send("00").verdict(), "6/2A/06") << "once, and first";
  EXPECT_EQ(rig.send("00").verdict(), "6/2A/09");
  EXPECT_EQ(rig.send("00").verdict(), "good");
  EXPECT_EQ(rig.send_from(other, "03 01 00 00 ff 00").hex_data(), "72 06 2a 06 00 00 00 00");
}
TEST(UnitAttention, ModeSelectIsToldToTheOthersOnly) {
  Rig rig;
  const auto other = rig.attach("iqn.2026-11.org.example:other");
  const auto list = testing::bytes("00 00 00 00 0a 0a 06 10 00 00 00 00 ff ff 00 1e");
  const std::string text(list.begin(), list.end());
  EXPECT_EQ(rig.send("15 10 00 00 10 00", text).verdict(), "good");
  EXPECT_EQ(rig.send("00").verdict(), "good");
  EXPECT_EQ(rig.send_from(other, "00").verdict(), "6/2A/01");
  EXPECT_EQ(rig.send("15 10 00 00 10 00", text).verdict(), "good") << "changes nothing";
  EXPECT_EQ(rig.send_from(other, "00").verdict(), "good");
}

// Runs a task management function and says whether it has been answered.
struct Managed {
  Managed(Rig& rig, TaskManagementFunction function, std::uint64_t lun = 0) {
    rig.device->manage(function, lun, rig.nexus, [this] { ++answers; });
  }
  int answers = 0;
};

TEST(TaskManagement, EveryFunctionWaitsUntilWritesAreSettled) {
  using enum TaskManagementFunction;
  for (const auto function :
       {kAbortTask, kAbortTaskSet, kClearTaskSet, kLogicalUnitReset, kTargetReset, kNexusReset}) {
    Rig rig;
    rig.layer->hold();
    const auto write = rig.start("2a 00 00 00 00 00 00 00 01 00", std::string(512, 'x'));
    const Managed managed(rig, function);
    EXPECT_EQ(managed.answers, 0);
    rig.layer->release();
    EXPECT_EQ(managed.answers, 1);
    EXPECT_TRUE(write->has_value());
  }
}
TEST(TaskManagement, OfAMissingLunIsAnsweredAtOnce) {
  Rig rig;
  EXPECT_EQ(Managed(rig, TaskManagementFunction::kLogicalUnitReset, kMissingLun).answers, 1);
  EXPECT_EQ(rig.send("00").verdict(), "good");
}
TEST(TaskManagement, ALogicalUnitResetIsToldToEveryone) {
  Rig rig;
  const auto other = rig.attach("iqn.2026-11.org.example:other");
  const Managed managed(rig, TaskManagementFunction::kLogicalUnitReset);
  EXPECT_EQ(rig.send("00").verdict(), "6/29/03");
  EXPECT_EQ(rig.send_from(other, "00").verdict(), "6/29/03");
}
TEST(TaskManagement, ATargetResetIsToldToEveryone) {
  Rig rig;
  const auto other = rig.attach("iqn.2026-11.org.example:other");
  const Managed managed(rig, TaskManagementFunction::kTargetReset, kMissingLun);
  EXPECT_EQ(rig.send("00").verdict(), "6/29/02");
  EXPECT_EQ(rig.send_from(other, "00").verdict(), "6/29/02");
}
TEST(TaskManagement, ClearTaskSetIsToldToTheOthers) {
  Rig rig;
  const auto other = rig.attach("iqn.2026-11.org.example:other");
  const Managed managed(rig, TaskManagementFunction::kClearTaskSet);
  EXPECT_EQ(rig.send("00").verdict(), "good");
  EXPECT_EQ(rig.send_from(other, "00").verdict(), "6/2F/00");
}
TEST(TaskManagement, AbortsTellNobody) {
  Rig rig;
  const Managed one(rig, TaskManagementFunction::kAbortTask);
  const Managed set(rig, TaskManagementFunction::kAbortTaskSet);
  const Managed all(rig, TaskManagementFunction::kNexusReset, kMissingLun);
  EXPECT_EQ(rig.send("00").verdict(), "good");
}

TEST(EchoBuffer, GivesBackWhatTheSameInitiatorWrote) {
  Rig rig;
  const auto other = rig.attach("iqn.2026-11.org.example:other");
  const auto* const read = "3c 0a 00 00 00 00 00 10 00";
  EXPECT_EQ(rig.send(read).verdict(), "5/2C/00") << "nothing was written";
  EXPECT_EQ(rig.send("3b 0a 00 00 00 00 00 00 05", "hello").verdict(), "good");
  EXPECT_EQ(rig.send_from(other, read).verdict(), "5/2C/00");
  EXPECT_EQ(rig.send_from(other, "3b 0a 00 00 00 00 00 00 03", "abc").verdict(), "good");
  EXPECT_EQ(rig.send(read).text(), "hello");
  EXPECT_EQ(rig.send("3c 0a 00 00 00 00 00 00 02").text(), "he");
  EXPECT_EQ(rig.send_from(other, read).text(), "abc");
  EXPECT_EQ(rig.send("3b 0a 00 00 00 00 00 00 00").verdict(), "good");
  EXPECT_EQ(rig.send(read).text(), "") << "no bytes were written last";
}
TEST(EchoBuffer, Descriptor) {
  Rig rig;
  EXPECT_EQ(rig.send("3c 0b 00 00 00 00 00 00 ff").hex_data(), "01 00 10 00") << "EBOS, 4096";
}

// That nothing of it is used any more is for the sanitizers to see.
TEST(Device, MayGoWithAnAnswer) {
  const std::string format("\0\x82\0\0", 4);
  std::string registration(24, '\0');
  registration[15] = 'A';
  for (const auto& [cdb, data] : {std::pair<std::string_view, std::string>{"04 18", format},
                                  {"48 82", ""},
                                  {"1b 01 00 00 00 00", ""},
                                  {"1d 04", ""},
                                  {"1d 20", ""},
                                  {"2a 00 00 00 00 00 00 00 01 00", std::string(512, 'a')},
                                  {"5f 00 00 00 00 00 00 00 18 00", registration}}) {
    const auto sanitizer = std::make_shared<testing::FakeSanitizer>();
    Rig rig({.sanitizer = sanitizer});
    std::string verdict;
    rig.device->execute(rig.command(cdb, data), [&](const Response& response) {
      verdict = testing::outcome_of(response).verdict();
      rig.device.reset();
    });
    EXPECT_EQ(verdict, "good") << cdb;
    EXPECT_EQ(rig.device, nullptr) << cdb;
    sanitizer->forgetting = nullptr;  // it keeps itself by this
  }
}
TEST(Device, MayGoWithTheEndOfASelfTest) {
  using enum TaskManagementFunction;
  for (const auto function : {kAbortTask, kClearTaskSet, kLogicalUnitReset}) {
    Rig rig;
    rig.layer->hold();
    rig.device->execute(rig.command("1d c0"), [&](const Response&) { rig.device.reset(); });
    const Managed managed(rig, function);
    EXPECT_EQ(rig.device, nullptr);
    rig.layer->release();
    EXPECT_EQ(managed.answers, 1);
  }
}

// As those do that do not tell tasks apart.
TEST(TargetDevice, AbortsATaskAsItAbortsAnyUnlessItSaysMore) {
  class Plain final : public TargetDevice {
   public:
    std::shared_ptr<Nexus> attach(const NexusId&) override { return nullptr; }
    [[nodiscard]] Transfer transfer_of(std::uint64_t,
                                       std::span<const std::uint8_t, 16>) const override {
      return {};
    }
    void execute(Command, CommandDone) override {}
    void manage(TaskManagementFunction function, std::uint64_t lun, const std::shared_ptr<Nexus>&,
                UniqueFunction<void()> done) override {
      managed.emplace_back(function, lun);
      done();
    }
    [[nodiscard]] bool has_lun(std::uint64_t) const override { return true; }

    std::vector<std::pair<TaskManagementFunction, std::uint64_t>> managed;
  };
  Plain device;
  bool answered = false;
  device.abort_task(5, TaskTag{7}, nullptr, [&] { answered = true; });
  EXPECT_TRUE(answered);
  EXPECT_EQ(device.managed,
            (std::vector{std::pair{TaskManagementFunction::kAbortTask, std::uint64_t{5}}}));
}

TEST(Device, UnitsAreApart) {
  auto small = std::make_shared<test::RamLayer>(test::RamLayer::Options{.size_bytes = 1 << 20});
  auto large = std::make_shared<test::RamLayer>(test::RamLayer::Options{.size_bytes = 2 << 20});
  Rig rig;
  rig.device = std::make_shared<Device>(
      std::vector<LogicalUnitOptions>{{Lun{5}, {.identity = testing::example_identity()}, large},
                                      {Lun{0}, {.identity = testing::example_identity()}, small}});
  rig.nexus = rig.attach("iqn.2026-11.org.example:host");
  EXPECT_EQ(rig.send("25").hex_data(), "00 00 07 ff 00 00 02 00");
  EXPECT_EQ(rig.send("a0 00 00 00 00 00 00 00 00 18").hex_data(),
            "00 00 00 10 00 00 00 00 00 00 00 00 00 00 00 00 00 05 00 00 00 00 00 00");
  rig.lun = lun_field(Lun{5});
  EXPECT_EQ(rig.send("25").verdict(), "6/29/00") << "attentions are per unit";
  EXPECT_EQ(rig.send("25").hex_data(), "00 00 0f ff 00 00 02 00");
  rig.device->capacity_changed(Lun{5});
  rig.lun = 0;
  EXPECT_EQ(rig.send("00").verdict(), "good");
}

}  // namespace
}  // namespace mariner::scsi
