#include "server/client/restoring_text.h"

#include <gtest/gtest.h>

namespace mariner::client {
namespace {

TEST(RestoringText, SaysHowMuchIsDoneHowFastAndHowLongItTakes) {
  api::Restoring restore;
  restore.set_total_bytes(4ull << 30);
  restore.set_left_bytes(3ull << 30);
  restore.set_bytes_per_second(1ull << 30);
  restore.set_seconds_left(4);
  EXPECT_EQ(restoring_text(restore), "restoring: 1 GiB of 4 GiB (25 %), 1 GiB/s, about 4s left");
}

TEST(RestoringText, GuessesNothing) {
  api::Restoring restore;
  restore.set_total_bytes(4096);
  restore.set_left_bytes(4096);
  EXPECT_EQ(restoring_text(restore), "restoring: 0 B of 4 KiB (0 %)");
}

TEST(RestoringText, DoesNotStumbleOverNumbersThatDoNotFit) {
  api::Restoring restore;
  restore.set_left_bytes(5);
  EXPECT_EQ(restoring_text(restore), "restoring: 0 B of 0 B (0 %)");
}

}  // namespace
}  // namespace mariner::client
