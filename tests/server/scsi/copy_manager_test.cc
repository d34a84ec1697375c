#include "server/scsi/copy_manager.h"

#include "proto/bytes.h"
#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

using testing::Rig;

// Through the device, whose own unit is the copy's source and destination.
class CopyTest : public ::testing::Test {
 protected:
  CopyTest() {
    for (int i = 0; i < 16; ++i) {
      const std::string data(512, static_cast<char>('a' + i));
      char cdb[40];
      std::snprintf(cdb, sizeof cdb, "2a 00 00 00 00 %02x 00 00 01 00", i);
      EXPECT_EQ(rig_.send(cdb, data).verdict(), "good");
    }
  }
  static std::string target(std::span<const std::uint8_t> naa, bool null = false) {
    std::string out(32, '\0');
    out[0] = '\xE4';
    out[1] = null ? '\x20' : '\0';
    out[4] = 1;
    out[5] = 3;
    out[7] = static_cast<char>(naa.size());
    for (std::size_t i = 0; i < naa.size(); ++i) out[8 + i] = static_cast<char>(naa[i]);
    return out;
  }
  static std::string segment(unsigned from, unsigned to, unsigned blocks, unsigned source = 0,
                             unsigned destination = 0) {
    std::string out(28, '\0');
    out[0] = 2;
    out[3] = 0x18;
    out[5] = static_cast<char>(source);
    out[7] = static_cast<char>(destination);
    out[10] = static_cast<char>(blocks >> 8);
    out[11] = static_cast<char>(blocks);
    out[18] = static_cast<char>(from >> 8);
    out[19] = static_cast<char>(from);
    out[26] = static_cast<char>(to >> 8);
    out[27] = static_cast<char>(to);
    return out;
  }
  static std::string list(const std::string& targets, const std::string& segments) {
    std::string out(16, '\0');
    out[0] = 7;
    out[2] = static_cast<char>(targets.size() >> 8);
    out[3] = static_cast<char>(targets.size());
    out[10] = static_cast<char>(segments.size() >> 8);
    out[11] = static_cast<char>(segments.size());
    return out + targets + segments;
  }
  static std::string cdb(std::size_t bytes) {
    char text[64];
    std::snprintf(text, sizeof text, "83 00 00 00 00 00 00 00 00 00 00 00 %02zx %02zx 00 00",
                  bytes >> 8, bytes & 0xFF);
    return text;
  }
  std::string copy(const std::string& targets, const std::string& segments) {
    const std::string data = list(targets, segments);
    return rig_.send(cdb(data.size()), data).verdict();
  }
  std::string status() {
    return rig_.send("84 00 07 00 00 00 00 00 00 00 00 00 00 ff 00 00").hex_data();
  }
  std::string at(std::uint64_t lba) const { return rig_.layer->text({lba * 512, 512}); }

  Rig rig_;
  const std::string own_ = target(example_naa());
  static std::vector<std::uint8_t> example_naa() { return testing::example_identity().naa; }
};

TEST_F(CopyTest, CopiesSegmentBySegment) {
  EXPECT_EQ(copy(own_, segment(2, 100, 3) + segment(9, 200, 1) + segment(0, 0, 0)), "good");
  EXPECT_EQ(at(100), std::string(512, 'c'));
  EXPECT_EQ(at(102), std::string(512, 'e'));
  EXPECT_EQ(at(200), std::string(512, 'j'));
  EXPECT_EQ(status(), "00 00 00 08 01 00 03 01 00 00 00 02");
}

// SPC-4, RECEIVE COPY FAILURE DETAILS(LID1): what a failed copy ended with, once, to who began it.
TEST_F(CopyTest, TheDetailsOfAFailureAreKeptForTheirInitiator) {
  constexpr const char* kDetails = "84 04 07 00 00 00 00 00 00 00 00 00 00 ff 00 00";
  const auto other = rig_.attach("iqn.2026-11.org.example:other");
  EXPECT_EQ(rig_.send(kDetails).verdict(), "5/24/00@2") << "there is no such copy";
  EXPECT_EQ(copy(own_, segment(2, 100, 3)), "good");
  EXPECT_EQ(rig_.send(kDetails).verdict(), "5/24/00@2") << "it has not failed";
  EXPECT_NE(copy(own_, segment(2, 100, 3, 0, 1)), "good") << "there is no target 1";
  EXPECT_EQ(rig_.send_from(other, kDetails).verdict(), "5/24/00@2");
  const auto data = rig_.send(kDetails).data;
  ASSERT_EQ(data.size(), 60u + 18);
  EXPECT_EQ(load_be<std::uint32_t>(&data[0]), data.size() - 4);
  for (std::size_t i = 4; i < 56; ++i) EXPECT_EQ(data[i], 0) << i;
  EXPECT_EQ(testing::hex(std::span(data).subspan(56)),
            "02 00 00 12 70 00 0a 00 00 00 00 0a 00 00 00 00 08 04 00 00 00 00");
  EXPECT_EQ(rig_.send(kDetails).verdict(), "5/24/00@2") << "once";
  EXPECT_EQ(status().substr(12, 2), "02") << "its status stays";
}

TEST_F(CopyTest, ACopyLongerThanAPiece) {
  Rig large({.size_bytes = 8 << 20});
  std::string data(512, 'x');
  EXPECT_EQ(large.send("2a 00 00 00 0f ff 00 00 01 00", data).verdict(), "good");
  const std::string parameters = list(own_, segment(0, 0x2000, 0x1000));
  EXPECT_EQ(large.send(cdb(parameters.size()), parameters).verdict(), "good");
  EXPECT_EQ(large.layer->text({0x2FFFull * 512, 512}), data);
}

TEST_F(CopyTest, NothingIsCopiedWhenAnyOfItCannotBe) {
  const std::vector<std::uint8_t> other{0x30, 9, 9, 9, 9, 9, 9, 9};
  EXPECT_EQ(copy(own_ + target(other), segment(2, 100, 1) + segment(2, 101, 1, 0, 1)), "A/08/04");
  EXPECT_EQ(copy(own_, segment(2, 100, 1) + segment(2, 101, 1, 0, 1)), "A/08/04")
      << "no such target";
  EXPECT_EQ(copy(target(example_naa(), true), segment(2, 100, 1)), "A/08/04") << "NUL";
  EXPECT_EQ(copy(own_, segment(2, 100, 1) + segment(2, 2047, 2)), "A/00/00") << "beyond the end";
  EXPECT_EQ(at(100), std::string(512, '\0'));
  EXPECT_EQ(status(), "00 00 00 08 02 00 00 01 00 00 00 00");
}

TEST_F(CopyTest, AUnitThatIsStoppedOrWithoutMediumIsNotReached) {
  Identity second = testing::example_identity();
  second.naa.back() ^= 1;
  const std::string there = target(second.naa);
  rig_.device = std::make_shared<Device>(std::vector<LogicalUnitOptions>{
      {Lun{0}, {.identity = testing::example_identity()}, rig_.layer},
      {Lun{1},
       {.identity = second, .removable = true},
       std::make_shared<test::RamLayer>(test::RamLayer::Options{.size_bytes = 1 << 20})}});
  rig_.nexus = rig_.attach("iqn.2026-11.org.example:host");
  rig_.lun = lun_field(Lun{1});
  EXPECT_EQ(rig_.send("00").verdict(), "6/29/00");
  for (const auto& [away, back] : {std::pair{"1b 00 00 00 00 00", "1b 00 00 00 01 00"},
                                   std::pair{"1b 00 00 00 02 00", "1b 00 00 00 03 00"}}) {
    EXPECT_EQ(rig_.send(away).verdict(), "good");
    rig_.lun = 0;
    EXPECT_EQ(copy(own_ + there, segment(2, 100, 1, 0, 1)), "A/0D/02");
    EXPECT_EQ(copy(own_ + there, segment(2, 100, 1, 1, 0)), "A/0D/02");
    rig_.lun = lun_field(Lun{1});
    EXPECT_EQ(rig_.send(back).verdict(), "good");
    rig_.lun = 0;
    EXPECT_EQ(copy(own_ + there, segment(2, 100, 1, 0, 1)), "good");
    rig_.lun = lun_field(Lun{1});
  }
}

TEST_F(CopyTest, AUnitThatIsNotActiveHereIsNotReached) {
  const auto groups = std::make_shared<testing::FakePortGroups>();
  Identity second = testing::example_identity();
  second.naa.back() ^= 1;
  second.target_ports = {1, 2};
  const std::string there = target(second.naa);
  const auto shared =
      std::make_shared<test::RamLayer>(test::RamLayer::Options{.size_bytes = 1 << 20});
  shared->record_calls();
  rig_.device = std::make_shared<Device>(std::vector<LogicalUnitOptions>{
      {Lun{0}, {.identity = testing::example_identity()}, rig_.layer},
      {Lun{1}, {.identity = second, .port_groups = groups}, shared}});
  rig_.nexus = rig_.attach("iqn.2026-11.org.example:host");
  for (const auto state :
       {AccessState::kStandby, AccessState::kUnavailable, AccessState::kTransitioning}) {
    groups->first = state;
    EXPECT_EQ(copy(own_ + there, segment(2, 100, 1, 0, 1)), "A/0D/02");
    EXPECT_EQ(copy(own_ + there, segment(2, 100, 1, 1, 0)), "A/0D/02");
  }
  EXPECT_TRUE(shared->calls().empty());
  groups->first = AccessState::kActiveOptimized;
  EXPECT_EQ(copy(own_ + there, segment(2, 100, 1, 0, 1)), "good");
}

TEST_F(CopyTest, AFailureEndsIt) {
  rig_.layer->fail_next({ErrorCode::kIo, "gone"});
  EXPECT_EQ(copy(own_, segment(2, 100, 1)), "A/0D/02");
  rig_.layer->set_read_only(true);
  EXPECT_EQ(copy(own_, segment(2, 100, 1)), "A/0D/02");
}

TEST_F(CopyTest, AnEmptyListIsGood) {
  EXPECT_EQ(rig_.send("83").verdict(), "good");
  EXPECT_EQ(rig_.send("84 00 07 00 00 00 00 00 00 00 00 00 00 ff 00 00").verdict(), "5/24/00@2")
      << "no copy is known";
}

TEST_F(CopyTest, StatusIsTheInitiatorsOwn) {
  EXPECT_EQ(copy(own_, segment(2, 100, 1)), "good");
  const auto other = rig_.attach("iqn.2026-11.org.example:other");
  EXPECT_EQ(rig_.send_from(other, "84 00 07 00 00 00 00 00 00 00 00 00 00 ff 00 00").verdict(),
            "5/24/00@2");
}

// What it has not written when it is ended, it never writes.
TEST_F(CopyTest, AResetEndsIt) {
  const std::string data = list(own_, segment(2, 100, 1));
  rig_.layer->hold();
  const auto answer = rig_.start(cdb(data.size()), data);
  rig_.device->manage(TaskManagementFunction::kLogicalUnitReset, 0, rig_.nexus, [] {});
  rig_.layer->release();
  ASSERT_TRUE(answer->has_value());
  EXPECT_EQ((*answer)->verdict(), "A/0D/02");
  EXPECT_EQ(at(100), std::string(512, '\0'));
}

// SAM-5 7.2: the command that it references, and no other.
TEST_F(CopyTest, AnAbortOfATaskEndsTheCopyOfThatTaskOnly) {
  constexpr TaskTag kCopy{7};
  constexpr TaskTag kRead{8};
  for (const TaskTag aborted : {kRead, kCopy}) {
    const unsigned to = 100 + aborted.value;
    const std::string data = list(own_, segment(2, to, 1));
    rig_.layer->hold();
    rig_.tag = kCopy;
    const auto copy = rig_.start(cdb(data.size()), data);
    rig_.tag = kRead;
    const auto read = rig_.start("28 00 00 00 00 00 00 00 01 00");
    int answers = 0;
    rig_.device->abort_task(0, aborted, rig_.nexus, [&] { ++answers; });
    EXPECT_EQ(answers, 0) << "what was given to the layer is not settled";
    rig_.layer->release();
    EXPECT_EQ(answers, 1);
    EXPECT_TRUE(read->has_value());
    ASSERT_TRUE(copy->has_value());
    EXPECT_EQ((*copy)->verdict(), aborted == kCopy ? "A/0D/02" : "good");
    EXPECT_EQ(at(to), std::string(512, aborted == kCopy ? '\0' : 'c'));
  }
}

TEST_F(CopyTest, AnAbortOfATaskEndsACopyWhoseTaskIsNotKnown) {
  const std::string data = list(own_, segment(2, 100, 1));
  for (const bool tagged : {false, true}) {
    rig_.layer->hold();
    const auto copy = rig_.start(cdb(data.size()), data);
    if (tagged) {
      rig_.device->abort_task(0, TaskTag{7}, rig_.nexus, [] {});
    } else {
      rig_.device->manage(TaskManagementFunction::kAbortTask, 0, rig_.nexus, [] {});
    }
    rig_.layer->release();
    ASSERT_TRUE(copy->has_value());
    EXPECT_EQ((*copy)->verdict(), "A/0D/02");
  }
}

TEST_F(CopyTest, WhoIsPreemptedCopiesNoMore) {
  const auto other = rig_.attach("iqn.2026-11.org.example:other");
  std::string keys(24, '\0');
  keys[15] = 'B';
  EXPECT_EQ(rig_.send_from(other, "5f 00 00 00 00 00 00 00 18 00", keys).verdict(), "good");
  const std::string data = list(own_, segment(2, 100, 1));
  rig_.layer->hold();
  const auto answer = rig_.start(cdb(data.size()), data);
  std::swap(keys[7], keys[15]);
  EXPECT_EQ(rig_.send_from(other, "5f 01 03 00 00 00 00 00 18 00", keys).verdict(), "good");
  rig_.layer->release();
  ASSERT_TRUE(answer->has_value());
  EXPECT_EQ((*answer)->verdict(), "A/0D/02");
  EXPECT_EQ(at(100), std::string(512, '\0'));
}

// Two devices that know each other, as a node's do.
TEST(CopyBetweenDevices, GoesWhereTheOwnerFinds) {
  auto layer = std::make_shared<test::RamLayer>(test::RamLayer::Options{.size_bytes = 1 << 20});
  LogicalUnitOptions there;
  there.layer = layer;
  there.disk.identity = testing::example_identity();
  there.disk.identity.naa = {0x30, 1, 1, 1, 1, 1, 1, 1};
  const auto other = std::make_shared<Device>(std::vector{there});
  LogicalUnitOptions here;
  here.layer = std::make_shared<test::RamLayer>(test::RamLayer::Options{.size_bytes = 1 << 20});
  here.disk.identity = testing::example_identity();
  std::string asked;
  Device device({here}, [&](const CopyTarget& target, const InitiatorPort& initiator) {
    asked = initiator.name;
    return other->find_copy_unit(target);
  });
  const NexusId host{{"iqn.2026-11.org.example:host", {}}, 1};
  const auto nexus = device.attach(host);
  CopyList list;
  list.targets = {{3, testing::example_identity().naa, 512, false},
                  {3, there.disk.identity.naa, 512, false}};
  list.segments = {{0, 1, false, 8, 0, 16}};
  here.layer->write({0, 4096}, {Payload::copy_of(as_byte_span(std::string(4096, 'q'))), 0, 4096},
                    [](const Result<void>& r) { EXPECT_TRUE(r); });
  const auto manager = std::make_unique<CopyManager>(
      [&](const CopyTarget& target, const InitiatorPort& initiator) {
        asked = initiator.name;
        auto own = device.find_copy_unit(target);
        return own ? own : other->find_copy_unit(target);
      },
      std::make_shared<RodTokens>([] { return std::chrono::nanoseconds(0); }));
  std::optional<Status> status;
  manager->copy(list, {.from = host}, [&](const Response& r) { status = r.status; });
  EXPECT_EQ(status, Status::kGood);
  EXPECT_EQ(asked, host.initiator.name);
  EXPECT_EQ(layer->text({16 * 512, 4096}), std::string(4096, 'q'));

  // A reservation there keeps the copy out.
  const auto unit = other->find_copy_unit(list.targets[1]);
  const NexusId holder{{"iqn.2026-11.org.example:holder", {}}, 1};
  unit->reservations->apply({.action = PersistentReserveOut::Action::kRegister, .action_key = 1},
                            holder, [](const Result<Reservations::Outcome>&) {});
  unit->reservations->apply({.action = PersistentReserveOut::Action::kReserve, .type = 1, .key = 1},
                            holder, [](const Result<Reservations::Outcome>&) {});
  manager->copy(list, {.from = host}, [&](const Response& r) { status = r.status; });
  EXPECT_EQ(status, Status::kCheckCondition);
}

}  // namespace
}  // namespace mariner::scsi
