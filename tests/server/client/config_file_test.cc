#include "server/client/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/server/client/image_folder.h"

namespace mariner::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ConfigFile : public ::testing::Test {
 protected:
  ConfigFile() { folder_.put("marinerd.toml", "first"); }
  [[nodiscard]] std::string file() const { return folder_.path("marinerd.toml"); }

  ImageFolder folder_;
};

TEST_F(ConfigFile, IsReplacedAndItsFormerContentKept) {
  ASSERT_EQ(::chmod(file().c_str(), 0640), 0);
  for (const std::string text : {"second", "third"}) {
    const std::string before = folder_.text("marinerd.toml");
    const auto former = replace_config(file(), text);
    ASSERT_TRUE(former) << former.error().message;
    EXPECT_EQ(*former, file() + ".old");
    EXPECT_EQ(folder_.text("marinerd.toml"), text);
    EXPECT_EQ(folder_.text("marinerd.toml.old"), before);
  }
  EXPECT_THAT(folder_.names(), ElementsAre("marinerd.toml", "marinerd.toml.old"));
  struct stat status {};
  ASSERT_EQ(::stat(file().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640u);
}

TEST_F(ConfigFile, KeepsItsOwner) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(::chown(file().c_str(), 1234, 5678), 0);
  ASSERT_TRUE(replace_config(file(), "second"));
  struct stat status {};
  ASSERT_EQ(::stat(file().c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 1234u);
  EXPECT_EQ(status.st_gid, 5678u);
}

TEST_F(ConfigFile, ALinkStaysOne) {
  ASSERT_EQ(::symlink("marinerd.toml", folder_.path("link").c_str()), 0);
  const auto former = replace_config(folder_.path("link"), "second");
  ASSERT_TRUE(former) << former.error().message;
  EXPECT_TRUE(std::filesystem::is_symlink(folder_.path("link")));
  EXPECT_EQ(folder_.text("marinerd.toml"), "second");
  EXPECT_THAT(*former, HasSubstr("marinerd.toml.old"));
}

TEST_F(ConfigFile, WhatCannotBeReplacedIsNamed) {
  const auto gone = replace_config(folder_.path("none"), "second");
  ASSERT_FALSE(gone);
  EXPECT_THAT(gone.error().message, HasSubstr(folder_.path("none")));
  // Where the former content would go, something else is.
  ASSERT_EQ(::mkdir((file() + ".old").c_str(), 0700), 0);
  const auto kept = replace_config(file(), "second");
  ASSERT_FALSE(kept);
  EXPECT_THAT(kept.error().message, HasSubstr(".old"));
  EXPECT_EQ(folder_.text("marinerd.toml"), "first");
  EXPECT_THAT(folder_.names(), ElementsAre("marinerd.toml", "marinerd.toml.old"));
}

TEST_F(ConfigFile, DiffersOrNot) {
  EXPECT_FALSE(differs_from(file(), "first").value());
  EXPECT_TRUE(differs_from(file(), "first ").value());
  const auto gone = differs_from(folder_.path("none"), "");
  ASSERT_FALSE(gone);
  EXPECT_THAT(gone.error().message, HasSubstr(folder_.path("none") + " cannot be opened"));
}

}  // namespace
}  // namespace mariner::client
