#include <gmock/gmock.h>

#include "tests/server/client/daemon.h"

namespace mariner::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class MarkVerbs : public DaemonTest {
 protected:
  void SetUp() override {
    auto& locked = *control.marks.add_marks();
    locked.set_name("pre");
    locked.set_volume("db1");
    *locked.mutable_at() = moment(7, 1795000000'000000000);
    locked.set_locked_until_ns(kNow.ns + 1);
    auto& expired = *control.marks.add_marks();
    expired = locked;
    expired.set_name("old");
    expired.set_locked_until_ns(kNow.ns);
    control.mark_answer = locked;
  }
};

TEST_F(MarkVerbs, Add) {
  run({"mark", "add", "db1", "pre", "--lock", "30d"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(
      control.asked,
      ElementsAre("mark_add volume: \"db1\" name: \"pre\" lock_s: 2592000 at { now: true }"));
  EXPECT_THAT(out, HasSubstr("pre of db1 marks #7  2026-11-18T12:06:40.000000000+01:00  "
                             "(2026-11-18T11:06:40.000000000Z)\n"));
  EXPECT_THAT(out, HasSubstr("Locked until 2026-11-20T14:32:05"));
  run({"mark", "add", "db1@#5", "five", "--dry-run"});
  EXPECT_THAT(
      control.asked,
      ElementsAre("mark_add volume: \"db1\" name: \"five\" at { sequence: 5 } dry_run: true"));
  run({"mark", "add", "db1", "pre", "--lock", "soon"});
  EXPECT_EQ(code, 2);
}

TEST_F(MarkVerbs, List) {
  run({"mark", "list", "db1"});
  EXPECT_THAT(out,
              HasSubstr("pre          7  2026-11-18T12:06:40.000000000+01:00  "
                        "2026-11-18T11:06:40.000000000Z  2026-11-20 14:32:05  an administrator\n"));
}

TEST_F(MarkVerbs, ALockedMarkIsRemovedOnlyWithConfirmation) {
  run({"mark", "remove", "db1", "pre"});
  EXPECT_EQ(code, 5);
  EXPECT_THAT(out, HasSubstr("pre is locked until"));
  EXPECT_THAT(control.asked, ElementsAre("mark_list volume: \"db1\""));
  run({"mark", "remove", "db1", "pre", "--yes"});
  EXPECT_EQ(code, 0);
  EXPECT_EQ(control.asked.back(), "mark_remove volume: \"db1\" name: \"pre\"");
  run({"mark", "remove", "db1", "old"});
  EXPECT_EQ(code, 0) << "its lock has ended";
}

}  // namespace
}  // namespace mariner::client
