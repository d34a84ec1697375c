#include "uvfs/program/moment_name.h"

#include <gtest/gtest.h>

namespace mariner::uvfs {
namespace {

TEST(MomentNameTest, SambasNamesAreTimes) {
  EXPECT_EQ(as_time("GMT-2026.11.20-14.32.05"), "2026-11-20T14:32:05Z");
}

TEST(MomentNameTest, AnythingElseStays) {
  for (const char* const each : {"", "-10m", "#4711", "2026-11-20 14:32:05", "mark:before",
                                 "GMT-2026.11.20-14.32.0", "UTC-2026.11.20-14.32.05"}) {
    EXPECT_EQ(as_time(each), each);
  }
}

}  // namespace
}  // namespace mariner::uvfs
