#include "ifsck/repair.h"

#include <gtest/gtest.h>

namespace mariner::ifsck {
namespace {

TEST(Repair, IsALineForPeople) {
  EXPECT_EQ(
      describe(Repair{{.code = Finding::Code::kUnattached, .inode = 20}, Repair::Done::kAttached}),
      "inode 20 is in use and has no name: is in lost+found now");
  EXPECT_EQ(
      describe(Repair{
          {.code = Finding::Code::kFreeBlocks, .group = Finding::kAll, .expected = 4, .found = 5},
          Repair::Done::kCountSet}),
      "the file system: free blocks: 4 are expected, 5 are said: counted anew");
}

}  // namespace
}  // namespace mariner::ifsck
