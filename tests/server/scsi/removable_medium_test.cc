// Ejecting, loading and preventing it: the medium itself, and as initiators see it.
#include "server/scsi/removable_medium.h"

#include <gmock/gmock.h>

#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

using ::testing::ElementsAre;
using testing::Rig;

constexpr auto kEject = "1b 00 00 00 02 00";
constexpr auto kEjectImmediately = "1b 01 00 00 02 00";
constexpr auto kLoad = "1b 00 00 00 03 00";
constexpr auto kStop = "1b 00 00 00 00 00";
constexpr auto kStart = "1b 00 00 00 01 00";
constexpr auto kPrevent = "1e 00 00 00 01 00";
constexpr auto kAllow = "1e 00 00 00 00 00";
constexpr auto kReady = "00 00 00 00 00 00";
constexpr auto kRead = "28 00 00 00 00 00 00 00 01 00";
constexpr auto kNoMedium = "2/3A/02";
constexpr auto kPrevented = "5/53/02";

std::shared_ptr<InitiatorNexus> nexus_of(const std::string& name) {
  return std::make_shared<InitiatorNexus>(NexusId{{name, {0x80, 0, 0, 0, 0, 1}}}, 1);
}

TEST(RemovableMedium, MovesOutAndIn) {
  RemovableMedium medium(true);
  EXPECT_TRUE(medium.present());
  EXPECT_FALSE(medium.eject());
  EXPECT_FALSE(medium.present());
  EXPECT_EQ(medium.absence()->code, asc::kMediumNotPresentTrayOpen);
  EXPECT_EQ(medium.load_generation(), 0u);
  EXPECT_FALSE(medium.load());
  EXPECT_FALSE(medium.absence());
  EXPECT_EQ(medium.load_generation(), 1u);
  EXPECT_FALSE(medium.load());
  EXPECT_EQ(medium.load_generation(), 1u) << "it was in";
}
TEST(RemovableMedium, MovesWhenNobodyPreventsIt) {
  RemovableMedium medium(true);
  const auto a = nexus_of("a");
  const auto b = nexus_of("b");
  medium.prevent(a);
  medium.prevent(a);
  medium.prevent(b);
  medium.allow(a->id());
  EXPECT_EQ(medium.eject()->code, asc::kMediumRemovalPrevented);
  EXPECT_TRUE(medium.present());
  medium.allow(a->id());
  EXPECT_TRUE(medium.eject().has_value()) << "b has not";
  medium.allow(b->id());
  EXPECT_FALSE(medium.eject());
}
TEST(RemovableMedium, WhoIsGonePreventsNothing) {
  RemovableMedium medium(true);
  auto a = nexus_of("a");
  medium.prevent(a);
  a.reset();
  EXPECT_FALSE(medium.eject());
}

class RemovableUnit : public ::testing::Test {
 protected:
  std::string a(std::string_view cdb) { return rig_.send(cdb).verdict(); }
  std::string b(std::string_view cdb) { return rig_.send_from(b_, cdb).verdict(); }
  void manage(TaskManagementFunction function) {
    rig_.device->manage(function, 0, rig_.nexus, [] {});
    a(kReady);  // the attention
    b(kReady);
  }

  Rig rig_{{.removable = true}};
  std::shared_ptr<Nexus> b_ = rig_.attach("iqn.2026-11.org.example:b");
};

TEST_F(RemovableUnit, SaysSo) {
  EXPECT_EQ(rig_.send("12 00 00 00 02 00").hex_data(), "00 80");
  EXPECT_EQ(Rig().send("12 00 00 00 02 00").hex_data(), "00 00");
}
TEST_F(RemovableUnit, WithoutMediumRefusesWhatNeedsOne) {
  EXPECT_EQ(a(kEject), "good");
  for (const auto* cdb : {"00",
                          kRead,
                          "08",
                          "2a 00 00 00 00 00 00 00 00 00",
                          "2e",
                          "2f",
                          "35",
                          "91",
                          "34",
                          "90",
                          "42 00 00 00 00 00 00 00 00 00",
                          "41 00 00 00 00 00 00 00 01",
                          "9e 12",
                          "25",
                          "9e 10",
                          "37",
                          "48 02",
                          "83 00",
                          "83 10",
                          "89",
                          "8b",
                          "9c",
                          "1d 04"}) {
    EXPECT_EQ(a(cdb), kNoMedium) << cdb;
    EXPECT_EQ(b(cdb), kNoMedium) << cdb;
  }
}
TEST_F(RemovableUnit, WithoutMediumAnswersTheRest) {
  a(kEject);
  for (const auto* cdb : {"12 00 00 00 ff 00", "1a 00 3f 00 ff 00", "5e 00",
                          "a0 00 00 00 00 00 00 00 00 ff", "a3 0c 00 00 00 00 00 00 00 ff",
                          "4d 00 40 00 00 00 00 00 ff", kStop, kStart, kEject, kPrevent, kAllow}) {
    EXPECT_EQ(a(cdb), "good") << cdb;
  }
  EXPECT_EQ(rig_.send("03 00 00 00 12 00").hex_data().substr(0, 8), "70 00 02");
  EXPECT_EQ(rig_.send("1a 00 08 00 08 00").hex_data().substr(12), "00 00 00 00")
      << "a capacity of no blocks";
}
TEST_F(RemovableUnit, IsLoadedForEverybodyAndTellsTheOthers) {
  a(kEject);
  EXPECT_EQ(a(kLoad), "good");
  EXPECT_EQ(a(kReady), "good");
  EXPECT_EQ(b(kRead), "6/28/00");
  EXPECT_EQ(b(kRead), "good");
  EXPECT_EQ(a(kLoad), "good");
  EXPECT_EQ(b(kRead), "good") << "nothing was loaded";
}
TEST_F(RemovableUnit, KeepsWhatIsStored) {
  const std::string block(512, 'x');
  EXPECT_EQ(rig_.send("2a 00 00 00 00 00 00 00 01 00", block).verdict(), "good");
  a(kEject);
  a(kLoad);
  EXPECT_EQ(rig_.send(kRead).text(), block);
}
TEST_F(RemovableUnit, StartsWithoutMediumAndStaysWithoutIt) {
  a(kEject);
  EXPECT_EQ(a(kStart), "good");
  EXPECT_EQ(a(kReady), kNoMedium);
  a(kLoad);
  EXPECT_EQ(a(kReady), "good");
}
TEST_F(RemovableUnit, StopsWithItsMediumIn) {
  EXPECT_EQ(a(kStop), "good");
  EXPECT_EQ(a(kReady), "2/04/02");
  EXPECT_EQ(a("25"), "good") << "it is there";
  EXPECT_EQ(a(kLoad), "good");
  EXPECT_EQ(a(kReady), "good");
}
TEST_F(RemovableUnit, StaysInEveryOtherPowerCondition) {
  for (const auto* condition : {"12", "22", "32", "72", "a2", "b2", "f2"}) {
    EXPECT_EQ(a("1b 00 00 00 " + std::string(condition) + " 00"), "good") << condition;
    EXPECT_EQ(a(kReady), "good") << condition;
  }
  a(kStop);
  for (const auto* nothing : {"70", "f0"}) {
    EXPECT_EQ(a("1b 00 00 00 " + std::string(nothing) + " 00"), "good") << nothing;
    EXPECT_EQ(a(kReady), "2/04/02") << nothing;
  }
  EXPECT_EQ(a("1b 00 00 00 20 00"), "good");
  EXPECT_EQ(a(kReady), "good");
}
TEST_F(RemovableUnit, IsOutBeforeItsEjectionIsAnswered) {
  rig_.layer->record_calls();
  rig_.layer->hold();
  const auto eject = rig_.start(kEject);
  EXPECT_FALSE(eject->has_value()) << "not before all is on stable storage";
  EXPECT_EQ(b(kRead), kNoMedium);
  rig_.layer->release();
  EXPECT_EQ((*eject)->verdict(), "good");
  EXPECT_THAT(rig_.layer->calls(), ElementsAre("flush 0+0"));
}
TEST_F(RemovableUnit, IsLoadedBeforeItsEjectionIsAnswered) {
  rig_.layer->hold();
  const auto eject = rig_.start(kEject);
  EXPECT_EQ(b(kLoad), "good");
  rig_.layer->release();
  EXPECT_EQ((*eject)->verdict(), "good");
  EXPECT_EQ(a(kReady), "6/28/00");
  EXPECT_EQ(a(kReady), "good");
}
TEST_F(RemovableUnit, IsEjectedImmediately) {
  rig_.layer->hold();
  EXPECT_EQ(a(kEjectImmediately), "good");
  EXPECT_EQ(a(kReady), kNoMedium);
  rig_.layer->release();
}
TEST_F(RemovableUnit, IsEjectedWithoutFlush) {
  rig_.layer->record_calls();
  EXPECT_EQ(a("1b 00 00 00 06 00"), "good");
  EXPECT_EQ(a(kReady), kNoMedium);
  EXPECT_THAT(rig_.layer->calls(), ElementsAre());
}

TEST_F(RemovableUnit, MovesNeitherWayWhileThatIsPrevented) {
  EXPECT_EQ(a(kPrevent), "good");
  EXPECT_EQ(a(kEject), kPrevented);
  EXPECT_EQ(b(kEject), kPrevented) << "by another";
  EXPECT_EQ(a(kReady), "good") << "nor is it stopped";
  EXPECT_EQ(b(kAllow), "good");
  EXPECT_EQ(b(kEject), kPrevented) << "who allows it did not prevent it";
  EXPECT_EQ(a(kAllow), "good");
  EXPECT_EQ(a(kEject), "good");
  EXPECT_EQ(a(kPrevent), "good");
  EXPECT_EQ(a(kLoad), kPrevented);
  EXPECT_EQ(a(kEject), "good") << "it is out";
  EXPECT_EQ(a(kAllow), "good");
  EXPECT_EQ(a(kLoad), "good");
}
TEST_F(RemovableUnit, IsAllowedAgainWhenTheNexusEnds) {
  b(kPrevent);
  b_.reset();
  EXPECT_EQ(a(kEject), "good");
}
TEST_F(RemovableUnit, IsAllowedAgainWhenTheNexusIsReinstated) {
  b(kPrevent);
  rig_.attach("iqn.2026-11.org.example:b", false);
  EXPECT_EQ(a(kEject), "good");
}
TEST_F(RemovableUnit, IsAllowedAgainByResetsAndStaysOut) {
  using enum TaskManagementFunction;
  for (const auto function : {kLogicalUnitReset, kTargetReset}) {
    a(kPrevent);
    b(kPrevent);
    manage(function);
    EXPECT_EQ(a(kEject), "good");
    manage(function);
    EXPECT_EQ(a(kReady), kNoMedium) << "a reset loads nothing";
    a(kLoad);
    b(kReady);
  }
  a(kPrevent);
  manage(kClearTaskSet);
  EXPECT_EQ(a(kEject), kPrevented) << "that is none";
}
TEST_F(RemovableUnit, IsAllowedAgainWhenWhoPreventsItIsPreemptedAndAborted) {
  const auto list = [](char key, char action_key) {
    std::string made(24, '\0');
    made[7] = key;
    made[15] = action_key;
    return made;
  };
  const auto reserve = [&](std::shared_ptr<Nexus> nexus, std::string_view cdb, char key,
                           char action_key) {
    return rig_.send_from(nexus, cdb, list(key, action_key)).verdict();
  };
  EXPECT_EQ(reserve(rig_.nexus, "5f 00 00 00 00 00 00 00 18 00", 0, 'A'), "good");
  EXPECT_EQ(reserve(b_, "5f 00 00 00 00 00 00 00 18 00", 0, 'B'), "good");
  b(kPrevent);
  EXPECT_EQ(a(kEject), kPrevented);
  EXPECT_EQ(reserve(rig_.nexus, "5f 05 05 00 00 00 00 00 18 00", 'A', 'B'), "good");
  EXPECT_EQ(a(kEject), "good");
}

TEST(FixedUnit, IsNotEjectedWhateverIsAllowed) {
  Rig rig;
  EXPECT_EQ(rig.send(kPrevent).verdict(), "good");
  EXPECT_EQ(rig.send(kAllow).verdict(), "good");
  EXPECT_EQ(rig.send(kEject).verdict(), "5/24/00@4.1");
  EXPECT_EQ(rig.send(kLoad).verdict(), "5/24/00@4.1");
  EXPECT_EQ(rig.send(kReady).verdict(), "good");
}

}  // namespace
}  // namespace mariner::scsi
