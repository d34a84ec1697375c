#include "ifsck/mend_quota.h"

#include <gtest/gtest.h>

#include "tests/ifsck/made_mending.h"

namespace mariner::ifsck {
namespace {

constexpr const char* kKind = "-t ext4 -b 4096 -O inline_data,64bit,quota -I 256";

// That it is sound afterwards e2fsck says.
TEST(MendQuota, WhatWasReleasedIsNotCounted) {
  MadeMending made{kKind};
  made.remove("many", "a file with a long name, number 7");
  const Mended mended = made.mend();
  EXPECT_TRUE(MadeMending::has(mended, Finding::Code::kQuota, Repair::Done::kCountSet));
}

TEST(MendQuota, UsersThatAreNewAreCounted) {
  MadeMending made{kKind};
  made.put<std::uint16_t>(made.find("a/large"), 2, 1000);
  made.put<std::uint16_t>(made.find("a/b/sparse"), 24, 77);
  const Mended mended = made.mend();
  EXPECT_TRUE(MadeMending::has(mended, Finding::Code::kQuota, Repair::Done::kCountSet));
}

TEST(MendQuota, AFileThatIsNoneIsMadeAnew) {
  MadeMending made{kKind};
  const InodeNumber number = made.volume->fs()->super->s_usr_quota_inum;
  const FsBlock block = made.map(number).runs.front().physical;
  made.put(made.layout->bytes_of(block).offset, std::array<std::byte, 4096>{});
  (void)made.mend();
}

TEST(MendQuota, WhatIsRightStays) {
  MadeMending made{kKind};
  EXPECT_TRUE(made.mend().repairs.empty());
  EXPECT_EQ(made.overlay.size(), 0u);
}

}  // namespace
}  // namespace mariner::ifsck
