#include "proto/error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>

namespace mariner {
namespace {

TEST(Error, EveryCodeHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(ErrorCode::kMiscompare); ++code) {
    const std::string_view name = error_code_name(static_cast<ErrorCode>(code));
    EXPECT_NE(name, "unknown");
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-"), name.npos) << name;
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  EXPECT_EQ(error_code_name(static_cast<ErrorCode>(255)), "unknown");
}

TEST(Error, AsText) {
  EXPECT_EQ(to_string(Error{ErrorCode::kOutsideWindow, "too old"}), "outside-window: too old");
}

TEST(Error, FromErrno) {
  EXPECT_EQ(errno_error(ENOSPC, "x").code, ErrorCode::kNoSpace);
  EXPECT_EQ(errno_error(EIO, "x").code, ErrorCode::kIo);
  EXPECT_EQ(errno_error(ENOENT, "/a: open").message, "/a: open: No such file or directory");
}

TEST(ErrorDeath, ReadingAFailedResultIsABug) {
  const Result<int> failed = Error{ErrorCode::kIo, "the disk is gone"};
  EXPECT_DEATH(static_cast<void>(failed.value()), "the disk is gone");
}

}  // namespace
}  // namespace mariner
