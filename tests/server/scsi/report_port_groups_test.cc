#include "server/scsi/report_port_groups.h"

#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

using testing::FakePortGroups;
using testing::hex;
using testing::Rig;

constexpr const char* kReport = "a3 0a 00 00 00 00 00 00 02 00";
constexpr const char* kExtendedReport = "a3 2a 00 00 00 00 00 00 02 00";

std::string report(const PortGroupReport& groups, bool extended = false) {
  return hex(report_port_groups({.extended = extended, .allocation_bytes = 512}, groups));
}
// Of a unit that has no port groups of its owner.
PortGroupReport always(const std::vector<std::uint16_t>& ports) {
  return UnitAccess(nullptr, ports).report(ports);
}

TEST(ReportPortGroups, OnePort) {
  EXPECT_EQ(report(always({1})),
            "00 00 00 0c "
            "00 01 00 01 00 00 00 01 "  // active/optimized, which is all it can be; group 1; a port
            "00 00 00 01");
}

TEST(ReportPortGroups, AllPortsAreInOneGroup) {
  EXPECT_EQ(report(always({1, 2, 0x1234})),
            "00 00 00 14 00 01 00 01 00 00 00 03 "
            "00 00 00 01 00 00 00 02 00 00 12 34");
}

TEST(ReportPortGroups, TheExtendedFormatHasAnotherHeader) {
  EXPECT_EQ(report(always({1}), true),
            "00 00 00 10 10 00 00 00 00 01 00 01 00 00 00 01 00 00 00 01");
}

// SPC-4 6.37: the states that can be are T, U, S, AN and AO; STATUS CODE 02h is
// "altered by implicit asymmetric logical unit access behavior".
TEST(ReportPortGroups, EveryGroupWithItsState) {
  EXPECT_EQ(report({.groups = {{.id = 0x101,
                                .state = AccessState::kActiveOptimized,
                                .preferred = true,
                                .ports = {1, 2}},
                               {.id = 0x102, .state = AccessState::kTransitioning, .ports = {}},
                               {.id = 0xFFFF, .state = AccessState::kUnavailable, .ports = {9}}},
                    .changes = true}),
            "00 00 00 24 "
            "80 8f 01 01 00 02 00 02 00 00 00 01 00 00 00 02 "
            "0f 8f 01 02 00 02 00 00 "
            "03 8f ff ff 00 02 00 01 00 00 00 09");
}

TEST(ReportPortGroups, TheExtendedFormatTellsHowLongATransitionMayTake) {
  EXPECT_EQ(report({.groups = {}, .changes = true, .transition_s = 255}, true),
            "00 00 00 04 10 ff 00 00");
}

TEST(ReportPortGroups, HasRoomForAsManyPortsAsTheByteCounts) {
  const std::vector<std::uint16_t> ports(kTargetPortsMax, 1);
  EXPECT_EQ(report_port_groups({}, always(ports))[4 + 7], 0xFF);
  EXPECT_DEATH(report({.groups = {{.ports = std::vector<std::uint16_t>(256, 1)}}}), "");
}

TEST(ReportPortGroupsCommand, TellsTheStatesOfNow) {
  const auto groups = std::make_shared<FakePortGroups>();
  Rig rig({.port_groups = groups});
  EXPECT_EQ(rig.send(kReport).hex_data(),
            "00 00 00 18 "
            "80 8f 01 01 00 02 00 01 00 00 00 01 "
            "02 8f 01 02 00 02 00 01 00 00 00 02");
  groups->first = AccessState::kUnavailable;
  groups->second = AccessState::kActiveNonOptimized;
  EXPECT_EQ(rig.send(kExtendedReport).hex_data(),
            "00 00 00 1c 10 1e 00 00 "
            "83 8f 01 01 00 02 00 01 00 00 00 01 "
            "01 8f 01 02 00 02 00 01 00 00 00 02");
  EXPECT_EQ(rig.send("a3 0a 00 00 00 00 00 00 00 05").hex_data(), "00 00 00 18 83") << "cut";
}

}  // namespace
}  // namespace mariner::scsi
