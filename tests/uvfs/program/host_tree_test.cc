#include "uvfs/program/host_tree.h"

#include <ext2fs/ext2_fs.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>

#include "tests/uvfs/program/program_files.h"

namespace mariner::uvfs {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class HostTreeTest : public ProgramFiles {
 protected:
  // Of the root directory, to folder_/to; taken into place. `error`: what reading the contents of
  // a/large ends with.
  Result<HostTree::Done> write(SequenceNumber at, bool privileged = false,
                               std::optional<Error> error = {}) {
    auto past = ifsck::TracePast::open(image_, folder_.file("trace")).value();
    OpenHistory history = open_history(past, {at, at}).value();
    const FileTree tree = FileTree::read(*history.files, {.root = EXT2_ROOT_INO, .at = at}).value();
    auto place = HostPlace::open(to_, false).value();
    const auto contents = [&](ObjectNumber number) -> Result<FileContents> {
      const auto found = std::ranges::find(tree.entries, number, &FileTree::Entry::inode);
      if (!error || found->name != "large") return history.contents(number, at);
      return FileContents::of_reader(
          9000, [&](std::uint64_t, std::span<std::byte>) -> Result<void> { return *error; });
    };
    HostTree host(history, tree, place, {.at = at, .contents = contents, .privileged = privileged});
    auto done = host.write();
    if (done) {
      EXPECT_TRUE(place.take_place().has_value());
    }
    return done;
  }
  struct stat status(const std::string& path) const {
    struct stat status {};
    EXPECT_EQ(lstat((to_ + path).c_str(), &status), 0) << path;
    return status;
  }

  const std::string to_ = folder_.file("to");
};

TEST_F(HostTreeTest, IsAsItWas) {
  file("one", "one\n");
  const SequenceNumber at = change(
      "write {}/one a/set\nset_inode_field a/set mode 0104751\n"
      "set_inode_field a/set mtime @86400\nset_inode_field a/b mtime @172800\n"
      "set_inode_field a/b mode 040500\nea_set a/set user.note noted\n");
  const auto done = write(at);
  ASSERT_TRUE(done.has_value()) << done.error().message;
  EXPECT_FALSE(done->failed);
  EXPECT_EQ(read_host("to/a/set"), "one\n");
  EXPECT_EQ(status("/a/set").st_mtim.tv_sec, 86'400);
  EXPECT_EQ(status("/a/set").st_mode & 07777, 0751u) << "nothing runs as somebody else";
  EXPECT_EQ(status("/a/b").st_mtim.tv_sec, 172'800);
  EXPECT_EQ(status("/a/b").st_mode & 07777, 0500u);
  fs::permissions(to_ + "/a/b", fs::perms::owner_all);  // so that it can be removed
  EXPECT_EQ(fs::read_symlink(to_ + "/short"), "a/large");
  EXPECT_EQ(status("/a/large").st_ino, status("/a/b/c/linked").st_ino);
  EXPECT_EQ(status("/a/large").st_size, 6 << 20);
  EXPECT_LT(status("/a/b/sparse").st_blocks * 512, 16 << 20) << "holes stay holes";
  EXPECT_EQ(status("/a/b/sparse").st_size, 899 * 50'000 + 4);
  EXPECT_EQ(read_host("to/a/b/sparse"), say({"cat", "/a/b/sparse"}));
  EXPECT_THAT(testing::PrintToString(done->notes), HasSubstr("set-user-ID"));
}

TEST_F(HostTreeTest, NothingLeavesIt) {
  fs::create_directories(folder_.file("outside"));
  file("one", "one\n");
  (void)change("mkdir d\nwrite {}/one d/evil-name-one\nsymlink gate " + folder_.file("outside") +
               "\nwrite {}/one evil-gate-x\n");
  (void)forge("evil-name-one", "../../out-one");
  const SequenceNumber at = forge("evil-gate-x", "gate/xxxxxx");
  const auto done = write(at);
  ASSERT_TRUE(done.has_value()) << done.error().message;
  EXPECT_TRUE(fs::is_symlink(to_ + "/gate"));
  EXPECT_TRUE(fs::is_empty(folder_.file("outside")));
  EXPECT_FALSE(fs::exists(folder_.file("out-one")));
  EXPECT_EQ(std::distance(fs::directory_iterator(to_ + "/d"), fs::directory_iterator()), 0);
  EXPECT_THAT(testing::PrintToString(done->notes), HasSubstr("not the name of a file"));
}

TEST_F(HostTreeTest, WhatCannotBeReadOfOneKeepsNothingElseBack) {
  file("one", "one\n");
  const SequenceNumber at = change(
      "write {}/one a/sealed\nset_inode_field a/sealed flags 0x800\n"
      "symlink a/gate nowhere\nset_inode_field a/gate flags 0x800\n");
  const auto done = write(at, false, Error{ErrorCode::kCorrupt, "damaged at byte 0"});
  ASSERT_TRUE(done.has_value()) << done.error().message;
  EXPECT_TRUE(done->failed);
  const std::string notes = testing::PrintToString(done->notes);
  EXPECT_THAT(notes, HasSubstr("/a/sealed: was not made: it is encrypted"));
  EXPECT_THAT(notes, HasSubstr("/a/gate: was not made: it is encrypted"));
  EXPECT_THAT(notes, HasSubstr("/a/large: was not made: damaged at byte 0"));
  for (const char* each : {"/a/sealed", "/a/gate", "/a/large", "/a/b/c/linked"}) {
    EXPECT_FALSE(fs::exists(fs::symlink_status(to_ + each))) << each;
  }
  EXPECT_EQ(read_host("to/a/b/sparse"), say({"cat", "/a/b/sparse"}));
  EXPECT_EQ(fs::read_symlink(to_ + "/short"), "a/large");
  // Where the past cannot be asked, nothing that follows can be read.
  fs::remove_all(to_);
  const auto none = write(at, false, Error{ErrorCode::kUnavailable, "nobody listens"});
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, ErrorCode::kUnavailable);
  EXPECT_FALSE(fs::exists(to_));
}

TEST_F(HostTreeTest, WhatIsTooLargeForThisHostIsLeftOut) {
  const SequenceNumber at = change("mkdir d\n");
  // (As on a file system whose files are smaller.)
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small{.rlim_cur = 8 << 20, .rlim_max = limit.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto done = write(at);
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_TRUE(done.has_value()) << done.error().message;
  EXPECT_TRUE(done->failed);
  EXPECT_THAT(testing::PrintToString(done->notes),
              HasSubstr("/a/b/sparse: was not made: File too"));
  EXPECT_FALSE(fs::exists(to_ + "/a/b/sparse"));
  EXPECT_EQ(status("/a/large").st_size, 6 << 20);
  EXPECT_TRUE(fs::is_directory(to_ + "/d"));
}

TEST_F(HostTreeTest, OwnersAndDevicesAreForRoot) {
  const SequenceNumber at = change("mknod pipe p\nmknod null c 1 3\nset_inode_field a uid 1234\n");
  const auto done = write(at);
  ASSERT_TRUE(done.has_value());
  EXPECT_FALSE(fs::exists(to_ + "/pipe"));
  EXPECT_THAT(testing::PrintToString(done->notes), HasSubstr("only root makes devices and fifos"));
  EXPECT_EQ(done->others, 0u);
  if (geteuid() != 0) GTEST_SKIP() << "the rest is for root";
  fs::remove_all(to_);
  const auto all = write(at, true);
  ASSERT_TRUE(all.has_value()) << all.error().message;
  EXPECT_EQ(status("/a").st_uid, 1234u);
  EXPECT_TRUE(S_ISFIFO(status("/pipe").st_mode));
}

}  // namespace
}  // namespace mariner::uvfs
