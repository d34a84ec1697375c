#include "server/client/folder_fence.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/logging/temporary_directory.h"
#include "tests/server/client/confined.h"

namespace mariner::client {
namespace {

namespace fs = std::filesystem;
using Files = SandboxRules::Files;

class FolderFenceTest : public Confined {
 protected:
  FolderFenceTest() {
    fs::create_directory(folder_.file("within"));
    std::ofstream(folder_.file("within/file")) << "within";
    std::ofstream(folder_.file("outside")) << "outside";
  }

  // Tells whether there is anything to be tested.
  void SetUp() override {
    Confined::SetUp();
    if (IsSkipped()) return;
    if (fenced(Files::kNone, [] { return 0; }) == kNotConfined) {
      GTEST_SKIP() << "the kernel has no Landlock";
    }
  }

  int fenced(Files files, const std::function<int()>& act) {
    return within(
        [&]() -> Result<void> {
          const int folder = ::open(folder_.file("within").c_str(), O_PATH | O_DIRECTORY);
          if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno_error(errno, "prctl");
          const auto fence = fence_folder({.files = files, .folder = folder});
          if (!fence) return fence.error();
          if (!*fence) return Error{ErrorCode::kNotFound, "no Landlock"};
          return {};
        },
        act);
  }
  int open(Files files, const std::string& name, int flags) {
    return fenced(files,
                  [=, this] { return error_of(::open(folder_.file(name).c_str(), flags, 0600)); });
  }

  logging::test::TemporaryDirectory folder_;
};

TEST_F(FolderFenceTest, NothingIsOpenedWithoutAFolder) {
  EXPECT_EQ(open(Files::kNone, "within/file", O_RDONLY), EACCES);
  EXPECT_EQ(open(Files::kNone, "outside", O_RDONLY), EACCES);
  EXPECT_EQ(open(Files::kNone, "new", O_WRONLY | O_CREAT), EACCES);
  EXPECT_EQ(
      fenced(Files::kNone, [&] { return error_of(::mkdir(folder_.file("d").c_str(), 0700)); }),
      EACCES);
}

TEST_F(FolderFenceTest, WhatIsRestoredIsMadeBelow) {
  EXPECT_EQ(open(Files::kMade, "within/new", O_WRONLY | O_CREAT | O_EXCL), 0);
  EXPECT_EQ(open(Files::kMade, "within/file", O_RDONLY), EACCES) << "it reads nothing";
  EXPECT_EQ(open(Files::kMade, "new", O_WRONLY | O_CREAT | O_EXCL), EACCES);
  EXPECT_EQ(open(Files::kMade, "within/../new", O_WRONLY | O_CREAT | O_EXCL), EACCES);
  EXPECT_EQ(fenced(Files::kMade,
                   [&] {
                     const std::string deep = folder_.file("within/deep");
                     if (::mkdir(deep.c_str(), 0700) != 0) return 1;
                     if (::symlink("..", (deep + "/link").c_str()) != 0) return 2;
                     // From one folder to another.
                     const std::string twin = deep + "/twin";
                     if (::link(folder_.file("within/file").c_str(), twin.c_str()) != 0) return 3;
                     if (::truncate(twin.c_str(), 2) != 0) return 4;
                     return ::unlink(twin.c_str()) != 0 ? 5 : 0;
                   }),
            0);
  EXPECT_NE(fenced(Files::kMade,
                   [&] {
                     return error_of(::rename(folder_.file("outside").c_str(),
                                              folder_.file("within/taken").c_str()));
                   }),
            0);
  EXPECT_EQ(
      fenced(Files::kMade, [&] { return error_of(::unlink(folder_.file("outside").c_str())); }),
      EACCES);
}

TEST_F(FolderFenceTest, WhatIsKeptIsReadAndReplacedThere) {
  EXPECT_EQ(open(Files::kKept, "within/file", O_RDONLY), 0);
  EXPECT_EQ(open(Files::kKept, "within/file", O_WRONLY | O_CREAT | O_TRUNC), 0);
  EXPECT_EQ(open(Files::kKept, "outside", O_RDONLY), EACCES);
  EXPECT_EQ(open(Files::kKept, "outside", O_WRONLY | O_TRUNC), EACCES);
  EXPECT_EQ(fenced(Files::kKept,
                   [&] {
                     const std::string file = folder_.file("within/file");
                     std::ofstream(file + ".new") << "new";
                     if (::rename((file + ".new").c_str(), file.c_str()) != 0) return 1;
                     return ::unlink(file.c_str()) != 0 ? 2 : 0;
                   }),
            0);
  EXPECT_EQ(fenced(Files::kKept,
                   [&] { return error_of(::symlink("..", folder_.file("within/link").c_str())); }),
            EACCES);
}

}  // namespace
}  // namespace mariner::client
