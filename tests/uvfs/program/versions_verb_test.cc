#include <gmock/gmock.h>

#include "proto/files.pb.h"
#include "tests/uvfs/program/program_files.h"

namespace mariner::uvfs {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

class VersionsVerb : public ProgramFiles {
 protected:
  VersionsVerb() {
    file("one", "one\n");
    file("two", "two lines\nof text\n");
    first_ = change("write {}/one a/b/f\nset_inode_field a/b/f ctime @500\n");
    gone_ = change("rm a/b/f\n");
    second_ = change("write {}/two a/b/f\nset_inode_field a/b/f ctime @1000\n");
    third_ = change("set_inode_field a/b/f uid 77\nset_inode_field a/b/f ctime @2000\n");
  }

  SequenceNumber first_;
  SequenceNumber gone_;
  SequenceNumber second_;
  SequenceNumber third_;
};

TEST_F(VersionsVerb, OfAllIncarnations) {
  const auto history = ask<api::FileHistory>({"versions", "/a/b/f"});
  ASSERT_EQ(history.paths_size(), 1);
  const auto& lives = history.paths(0).incarnations();
  ASSERT_EQ(lives.size(), 2);
  EXPECT_LE(lives[0].end().sequence(), gone_.value);
  EXPECT_GT(lives[0].end().sequence(), first_.value);
  EXPECT_FALSE(lives[1].has_end());
  EXPECT_FALSE(lives[0].from_before());
  ASSERT_EQ(lives[0].versions_size(), 1);
  EXPECT_EQ(lives[0].versions(0).object().size(), 4u);
  ASSERT_EQ(lives[1].versions_size(), 2);
  EXPECT_EQ(lives[1].versions(0).object().size(), 18u);
  EXPECT_EQ(lives[1].versions(1).object().user(), 77u);
  // What is said of a version is what it is read by.
  EXPECT_EQ(say({"cat", lives[0].versions(0).argument()}), "one\n");
  EXPECT_EQ(say({"cat", lives[1].versions(0).argument()}), "two lines\nof text\n");

  const std::string text = say({"versions", "/a/b/f"});
  EXPECT_THAT(text, ContainsRegex("FROM +AT +INODE +MODE +USER +GROUP +SIZE +MODIFIED\n"));
  EXPECT_THAT(text, HasSubstr("  gone\n"));
  EXPECT_THAT(say({"versions", "/a/large"}), HasSubstr("\nearlier "));
}

TEST_F(VersionsVerb, OfAStretchAndBelow) {
  const auto late =
      ask<api::FileHistory>({"versions", "/a/b/f", "--since", "#" + std::to_string(second_.value)});
  ASSERT_EQ(late.paths(0).incarnations_size(), 1);
  EXPECT_TRUE(late.paths(0).incarnations(0).from_before());
  const auto early =
      ask<api::FileHistory>({"versions", "/a/b/f", "--until", "#" + std::to_string(first_.value)});
  EXPECT_EQ(early.paths(0).incarnations_size(), 1);
  const auto below = ask<api::FileHistory>({"versions", "/a/b", "--below", "--every-write"});
  std::vector<std::string> paths;
  for (const auto& each : below.paths()) paths.push_back(each.path().text());
  EXPECT_THAT(paths,
              testing::ElementsAre("/a/b", "/a/b/c", "/a/b/c/linked", "/a/b/f", "/a/b/sparse"));
  EXPECT_THAT(say({"versions", "/a/b", "--below"}), HasSubstr("  /a/b/f\n"));
}

TEST_F(VersionsVerb, Incarnations) {
  const auto history = ask<api::FileHistory>({"incarnations", "/a/b/f"});
  ASSERT_EQ(history.paths(0).incarnations_size(), 2);
  EXPECT_EQ(history.paths(0).incarnations(1).versions_all(), 2u);
  EXPECT_EQ(history.paths(0).incarnations(1).versions_size(), 0);
  EXPECT_THAT(say({"incarnations", "/a/b/f"}),
              ContainsRegex("FROM +AT +UNTIL +AT +INODE +KIND +VERSIONS\n"));
}

TEST_F(VersionsVerb, WhatNeverWasIsSaid) {
  EXPECT_THAT(refuse(1, {"versions", "/none"}),
              HasSubstr("/none never was there in that time; uvfs find --deleted"));
  EXPECT_THAT(refuse(2, {"versions", "/a@#1", "--until", "#2"}), HasSubstr("named twice"));
  EXPECT_THAT(refuse(2, {"versions", "/a", "--since", "#3", "--until", "#2"}),
              HasSubstr("ends before it begins"));
}

}  // namespace
}  // namespace mariner::uvfs
