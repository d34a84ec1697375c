#include "server/scsi/report_port_groups.h"

#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

using testing::hex;

constexpr std::uint16_t kOne[] = {1};
constexpr std::uint16_t kThree[] = {1, 2, 0x1234};

TEST(ReportPortGroups, OnePort) {
  EXPECT_EQ(hex(report_port_groups({.extended = false, .allocation_bytes = 512}, kOne)),
            "00 00 00 0c "
            "00 01 00 01 00 00 00 01 "  // active/optimized, which is all it can be; group 1; a port
            "00 00 00 01");
}

TEST(ReportPortGroups, AllPortsAreInOneGroup) {
  EXPECT_EQ(hex(report_port_groups({.extended = false, .allocation_bytes = 512}, kThree)),
            "00 00 00 14 00 01 00 01 00 00 00 03 "
            "00 00 00 01 00 00 00 02 00 00 12 34");
}

TEST(ReportPortGroups, TheExtendedFormatHasAnotherHeader) {
  EXPECT_EQ(hex(report_port_groups({.extended = true, .allocation_bytes = 512}, kOne)),
            "00 00 00 10 10 00 00 00 00 01 00 01 00 00 00 01 00 00 00 01");
}

}  // namespace
}  // namespace mariner::scsi
