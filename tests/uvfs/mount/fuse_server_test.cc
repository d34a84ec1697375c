#include "uvfs/mount/fuse_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "tests/uvfs/made_files.h"

namespace mariner::uvfs {
namespace {

namespace fs = std::filesystem;

// Another process answers: one that asks itself would wait for ever.
class FuseServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::access("/dev/fuse", R_OK | W_OK) != 0) GTEST_SKIP() << "without FUSE";
    const auto file = made_.volume.find("/a/large");
    made_.set_mode(file, 0100600);
    made_.put<std::uint16_t>(file, ifsck::InodeAt::kLinks, 0);
    fs::create_directory(root());
    int mounted[2];
    ASSERT_EQ(::pipe2(mounted, O_CLOEXEC), 0);
    server_ = ::fork();
    ASSERT_GE(server_, 0);
    if (server_ == 0) serve(mounted[1]);
    ::close(mounted[1]);
    char said = 0;
    EXPECT_EQ(::read(mounted[0], &said, 1), 1);  // else it has ended
    ::close(mounted[0]);
    ASSERT_TRUE(fs::exists(root() / "marks"));
  }
  void TearDown() override {
    if (server_ <= 0) return;
    ::kill(server_, SIGTERM);
    int status = 0;
    ASSERT_EQ(::waitpid(server_, &status, 0), server_);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    EXPECT_FALSE(fs::exists(root() / "marks"));  // it is not mounted any more
  }
  fs::path root() const { return folder_.file("mounted"); }
  static std::string contents(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static std::set<std::string> names(const fs::path& path) {
    std::set<std::string> all;
    for (const auto& each : fs::directory_iterator(path)) all.insert(each.path().filename());
    return all;
  }

  MadeWrites made_{"-t ext4 -b 4096 -O inline_data,64bit,quota -I 256"};

 private:
  [[noreturn]] void serve(int say_mounted) {
    MadeFiles files(made_);
    const auto mounted = FuseServer::mount(*files.files, {.folder = root(), .name = "test"});
    if (!mounted || ::write(say_mounted, "m", 1) != 1) ::_exit(2);
    const bool good = (*mounted)->run().has_value();
    const_cast<std::unique_ptr<FuseServer>&>(*mounted).reset();
    ::_exit(good ? 0 : 1);
  }

  logging::test::TemporaryDirectory folder_;
  pid_t server_ = 0;
};

TEST_F(FuseServerTest, FilesOfAMomentAreReadAsAnyOthers) {
  const fs::path then = root() / "@#1";
  EXPECT_EQ(names(root()),
            (std::set<std::string>{"deleted", "latest", "marks", "snapshots", "versions"}));
  EXPECT_EQ(names(then / "many").size(), 600u);
  EXPECT_EQ(contents(then / "many/a file with a long name, number 3"), std::string(2100, 'x'));
  const std::string large = contents(then / "a/large");
  EXPECT_EQ(large.size(), 6u << 20);
  EXPECT_EQ(large[4 * 4096], '\0');  // punched
  EXPECT_EQ(large[3 * 4096], 'l');
  EXPECT_EQ(fs::read_symlink(then / "short"), "a/large");
  struct stat about {};
  ASSERT_EQ(::stat((then / "a/large").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode, 0100600u);
  EXPECT_EQ(about.st_nlink, 2u);
  struct stat link {};
  ASSERT_EQ(::stat((then / "a/b/c/linked").c_str(), &link), 0);
  EXPECT_EQ(about.st_ino, link.st_ino);
  EXPECT_FALSE(fs::exists(root() / "@#2/a/large"));
  EXPECT_TRUE(fs::exists(root() / "deleted/a/large"));
  EXPECT_EQ(fs::read_symlink(root() / "latest"), "@#2");
  // (Its name is there still: that is mended when it is met.)
  EXPECT_EQ(names(root() / "latest/a"), (std::set<std::string>{"b"}));
  EXPECT_EQ(names(root() / "versions/a/large").size(), 2u);
}

TEST_F(FuseServerTest, AQuestionThatNeedsTooMuchMemoryEndsAlone) {
  struct stat about {};
  EXPECT_EQ(::stat((root() / "@greedy").c_str(), &about), -1);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(::stat((root() / "@#1").c_str(), &about), 0);
}

TEST_F(FuseServerTest, NothingCanBeChanged) {
  const fs::path then = root() / "@#1";
  const auto fails_with = [](int result, int error) {
    EXPECT_EQ(result, -1);
    EXPECT_EQ(errno, error);
  };
  fails_with(::open((then / "new").c_str(), O_WRONLY | O_CREAT, 0644), EROFS);
  fails_with(::open((then / "a/b/sparse").c_str(), O_WRONLY), EROFS);
  fails_with(::unlink((then / "a/b/sparse").c_str()), EROFS);
  fails_with(::mkdir((then / "new").c_str(), 0755), EROFS);
  fails_with(::rmdir((then / "a").c_str()), EROFS);
  fails_with(::rename((then / "a").c_str(), (then / "c").c_str()), EROFS);
  fails_with(::chmod((then / "a").c_str(), 0700), EROFS);
  fails_with(::truncate((then / "a/b/sparse").c_str(), 0), EROFS);
  fails_with(::symlink("x", (root() / "new").c_str()), EROFS);
  fails_with(::open((root() / "@never").c_str(), O_RDONLY), ENOENT);
}

}  // namespace
}  // namespace mariner::uvfs
