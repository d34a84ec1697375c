#include "uvfs/program/host_place.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "tests/logging/temporary_directory.h"

namespace mariner::uvfs {
namespace {

namespace fs = std::filesystem;

class HostPlaceTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string in(const std::string& name) const { return folder_.file(name); }
  static void write(const HostPlace& place, const std::string& text) {
    const HostFd fd(
        openat(place.folder(), place.temporary_name().c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600));
    ASSERT_EQ(::write(fd.fd(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream file(in(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] std::ptrdiff_t entries() const {
    return std::distance(fs::directory_iterator(in("")), fs::directory_iterator());
  }

  logging::test::TemporaryDirectory folder_;
};

TEST_F(HostPlaceTest, IsTakenWhenItIsWhole) {
  auto place = HostPlace::open(in("new/"), false);
  ASSERT_TRUE(place.has_value()) << place.error().message;
  EXPECT_EQ(place->path(), in("new"));
  write(*place, "whole");
  EXPECT_FALSE(fs::exists(in("new")));
  ASSERT_TRUE(place->take_place().has_value());
  EXPECT_EQ(read("new"), "whole");
  EXPECT_EQ(entries(), 1);
}

TEST_F(HostPlaceTest, WhatIsThereIsOnlyReplacedIfThatIsSaid) {
  std::ofstream(in("file")) << "old";
  EXPECT_EQ(HostPlace::open(in("file"), false).error().code, ErrorCode::kAlreadyExists);
  EXPECT_EQ(HostPlace::open(in("none/file"), false).error().code, ErrorCode::kIo);
  EXPECT_EQ(HostPlace::open("/", false).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(HostPlace::open("..", true).error().code, ErrorCode::kInvalidArgument);
  {
    // What came in between is not replaced either.
    auto place = HostPlace::open(in("late"), false);
    write(*place, "new");
    std::ofstream(in("late")) << "old";
    EXPECT_EQ(place->take_place().error().code, ErrorCode::kAlreadyExists);
  }
  EXPECT_EQ(read("late"), "old");
  auto place = HostPlace::open(in("file"), true);
  write(*place, "new");
  ASSERT_TRUE(place->take_place().has_value());
  EXPECT_EQ(read("file"), "new");
  EXPECT_EQ(entries(), 2);
}

TEST_F(HostPlaceTest, ALinkIsReplacedNotFollowed) {
  std::ofstream(in("precious")) << "precious";
  fs::create_symlink(in("precious"), in("link"));
  fs::create_symlink(in("nowhere"), in("dangling"));
  EXPECT_EQ(HostPlace::open(in("link"), false).error().code, ErrorCode::kAlreadyExists);
  EXPECT_EQ(HostPlace::open(in("dangling"), false).error().code, ErrorCode::kAlreadyExists);
  auto place = HostPlace::open(in("link"), true);
  write(*place, "new");
  ASSERT_TRUE(place->take_place().has_value());
  EXPECT_EQ(read("precious"), "precious");
  EXPECT_FALSE(fs::is_symlink(in("link")));
  EXPECT_EQ(read("link"), "new");
}

TEST_F(HostPlaceTest, ADirectoryWithSomethingInItIsNeverReplaced) {
  fs::create_directories(in("folder/more"));
  // Which is said before anything is written.
  const auto none = HostPlace::open(in("folder"), true);
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, ErrorCode::kAlreadyExists);
  EXPECT_THAT(none.error().message, testing::HasSubstr("move it away"));
  // What came in between is not replaced either.
  fs::remove(in("folder/more"));
  auto place = HostPlace::open(in("folder"), true);
  ASSERT_TRUE(place.has_value()) << place.error().message;
  fs::create_directories(in("folder/more"));
  ASSERT_EQ(mkdirat(place->folder(), place->temporary_name().c_str(), 0700), 0);
  const auto taken = place->take_place();
  EXPECT_EQ(taken.error().code, ErrorCode::kAlreadyExists);
  EXPECT_THAT(taken.error().message, testing::HasSubstr("move it away"));
  EXPECT_TRUE(fs::exists(in("folder/more")));
}

TEST_F(HostPlaceTest, AFileAndADirectoryDoNotReplaceEachOther) {
  fs::create_directories(in("folder"));
  std::ofstream(in("file")) << "old";
  fs::create_directory_symlink(in("folder"), in("link"));
  for (const auto& [name, directory] :
       {std::pair{"folder", true}, {"file", false}, {"link", false}}) {
    const auto place = HostPlace::open(in(name), true);
    ASSERT_TRUE(place.has_value()) << name;
    EXPECT_TRUE(place->check(directory).has_value()) << name;
    const auto other = place->check(!directory);
    ASSERT_FALSE(other.has_value()) << name;
    EXPECT_EQ(other.error().code, ErrorCode::kAlreadyExists);
    EXPECT_THAT(other.error().message, testing::HasSubstr("move it away"));
  }
  const auto place = HostPlace::open(in("new"), false);
  EXPECT_TRUE(place->check(true).has_value());
  fs::create_directories(in("new"));
  EXPECT_EQ(place->check(true).error().code, ErrorCode::kAlreadyExists);
}

// (Looked through anew for each that goes, these would be a hundred million calls.)
TEST_F(HostPlaceTest, ManyDirectoriesBesideEachOtherAreRemovedInOneGo) {
  for (int i = 0; i < 2000; ++i) {
    fs::create_directories(in("many/" + std::to_string(i)));
    std::ofstream(in("many/" + std::to_string(i) + "/file"));
  }
  const HostFd folder(::open(in("").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  remove_tree(folder.fd(), "many");
  EXPECT_EQ(entries(), 0);
}

TEST_F(HostPlaceTest, WhatIsNotTakenIsRemoved) {
  fs::create_directories(in("kept"));
  std::ofstream(in("kept/file")) << "kept";
  {
    const auto place = HostPlace::open(in("new"), false);
    const fs::path temporary = in(place->temporary_name());
    fs::create_directories(temporary / "a/b/c");
    std::ofstream(temporary / "a/b/file") << "x";
    fs::create_directory_symlink(in("kept"), temporary / "a/link");
    fs::permissions(temporary / "a/b/c", fs::perms::none);
  }
  EXPECT_EQ(entries(), 1);
  EXPECT_EQ(read("kept/file"), "kept");
}

}  // namespace
}  // namespace mariner::uvfs
