#include "server/client/consistent.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/logging/temporary_directory.h"
#include "tests/server/client/daemon.h"

namespace mariner::client {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// In the place of ifsck stands a script; what it is asked stands in the file `words`.
class Consistent : public DaemonTest {
 protected:
  Consistent() {
    const char* const path = std::getenv("PATH");
    path_ = path == nullptr ? "" : path;
    ::setenv("PATH", (folder_ + ":" + path_).c_str(), 1);
    *control.view_answer.mutable_at() = moment(7, kNow.ns);
    control.view_answer.set_name("v");
    *control.rollback_answer.mutable_target() = moment(7, kNow.ns);
    control.rollback_answer.set_volume("db1");
  }
  ~Consistent() override { ::setenv("PATH", path_.c_str(), 1); }
  // It writes these records, prints `out`, and ends with `code`.
  void script(std::size_t records, const std::string& printed, int exit_code) {
    std::ofstream data(folder_ + "/data", std::ios::binary);
    for (std::size_t i = 0; i < records; ++i) {
      std::string record(admin::kRepairRecordBytes, 'x');
      for (int k = 0; k < 8; ++k) record[k] = static_cast<char>(i >> (8 * k));
      data << record;
    }
    data.close();
    const std::string program = folder_ + "/ifsck";
    std::ofstream(program) << "#!/bin/sh\nset -e\necho \"$*\" > " << folder_ << "/words\n"
                           << "[ " << exit_code << " != 0 ] || cp " << folder_
                           << "/data \"$4\"\necho '" << printed << "'\nexit " << exit_code << "\n";
    ::chmod(program.c_str(), 0755);
  }
  std::string words() {
    std::ifstream in(folder_ + "/words");
    std::string line;
    std::getline(in, line);
    return line;
  }
  static void expect_nothing_left() {
    for (const auto& each :
         std::filesystem::directory_iterator(std::filesystem::temp_directory_path())) {
      if (!each.path().filename().string().starts_with("mariner-")) continue;
      EXPECT_FALSE(std::filesystem::exists(each.path() / "repairs")) << each.path();
    }
  }

  logging::test::TemporaryDirectory made_;
  const std::string folder_ = made_.file("");
  std::string path_;
};

TEST_F(Consistent, AViewGetsItsRepairsInParts) {
  script(300, "{}", 0);
  run({"view", "expose", "db1@-10m", "--consistent"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(words(),
              testing::MatchesRegex("repairs db1@#7 --output .*/repairs --json --socket .*"));
  EXPECT_THAT(control.handed_over.asked, ElementsAre("open volume: \"db1\" sequence: 7",
                                                     "add 7 255 blocks", "add 7 45 blocks"));
  ASSERT_EQ(control.asked.size(), 2u);
  EXPECT_THAT(control.asked[0], HasSubstr("dry_run: true"));
  EXPECT_EQ(control.asked[1], "view_expose volume: \"db1\" at { sequence: 7 } repairs: \"7\"");
  EXPECT_THAT(out, HasSubstr("300 blocks, so that its file system is sound"));
  expect_nothing_left();
}

TEST_F(Consistent, TheAnswerSaysHowMuchWasRepaired) {
  script(1, "{}", 0);
  run({"view", "expose", "db1", "--consistent", "--writable", "--json"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(out, HasSubstr("\"repaired_blocks\":\"1\""));
}

TEST_F(Consistent, ASoundMomentNeedsNothing) {
  script(0, "{}", 0);
  run({"view", "expose", "db1", "--consistent"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_TRUE(control.handed_over.asked.empty());
  EXPECT_EQ(control.asked.back(), "view_expose volume: \"db1\" at { sequence: 7 }");
  EXPECT_THAT(out, HasSubstr("nothing: its file system is sound as it is"));
}

TEST_F(Consistent, ADryRunChangesNothing) {
  script(3, "{}", 0);
  run({"view", "expose", "db1", "--consistent", "--dry-run"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_TRUE(control.handed_over.asked.empty());
  EXPECT_THAT(out, HasSubstr("3 blocks"));
  run({"rollback", "db1@#9", "--consistent", "--dry-run"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_TRUE(control.handed_over.asked.empty());
  EXPECT_THAT(control.asked, Not(Contains(HasSubstr("repairs"))));
}

TEST_F(Consistent, ARollbackIsMendedBeforeItIsConfirmedAndHandsOverBehind) {
  script(3, "{}", 0);
  run({"rollback", "db1@-10m", "--consistent"});
  EXPECT_EQ(code, 5);
  EXPECT_THAT(out, HasSubstr("Repaired:   3 blocks, so that its file system is sound\n"));
  EXPECT_TRUE(control.handed_over.asked.empty());
  run({"rollback", "db1@-10m", "--consistent", "--yes"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_EQ(control.asked.back(), "rollback volume: \"db1\" at { sequence: 7 } repairs: \"7\"");
  expect_nothing_left();
}

TEST_F(Consistent, UndoingHasNothingToMend) {
  run({"rollback", "--consistent", "undo", "db1", "--yes"});
  EXPECT_EQ(code, 2);
  EXPECT_TRUE(control.asked.empty());
}

TEST_F(Consistent, WhatIsNotUnderstoodGoesNoFurther) {
  script(0, R"({"schema":1,"error":{"code":"invalid-argument","message":"this is btrfs"}})", 1);
  run({"view", "expose", "db1", "--consistent"});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(err,
              HasSubstr("db1@#7 cannot be made consistent: this is btrfs. Nothing was changed; "
                        "without --consistent the moment is used as it is"));
  EXPECT_EQ(control.asked.size(), 1u) << "the dry run";
  script(0, R"({"schema":1,"error":{"code":"outside-window","message":"gone"}})", 3);
  run({"rollback", "db1@#7", "--consistent", "--yes"});
  EXPECT_EQ(code, 3);
  script(0, "what", 1);
  run({"rollback", "db1@#7", "--consistent", "--yes"});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(err, HasSubstr("ifsck ended with 1"));
  script(0, R"({"left":[{},{}]})", 10);
  run({"rollback", "db1@#7", "--consistent", "--yes"});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(err, HasSubstr("2 findings cannot be mended; `mariner fsck db1@#7` lists what"));
  EXPECT_EQ(control.asked.size(), 1u);
}

TEST_F(Consistent, WhatTheDaemonDoesNotTakeIsAnError) {
  script(3, "{}", 0);
  control.handed_over.error = Error{ErrorCode::kLimit, "too many"};
  run({"view", "expose", "db1", "--consistent"});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(err, HasSubstr("too many"));
  EXPECT_EQ(control.asked.size(), 1u);
}

}  // namespace
}  // namespace mariner::client
