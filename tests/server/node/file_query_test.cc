#include "server/node/file_query.h"

#include <gmock/gmock.h>

#include <atomic>

#include "tests/server/node/files_reply_rig.h"
#include "tests/server/node/loop_thread.h"

namespace mariner::node {
namespace {

using ::testing::HasSubstr;
using testing::LoopThread;
using testing::ReplyTo;
using testing::Seen;

class FileQueryTest : public ::testing::Test {
 protected:
  FileQueryTest() { thread_.begin(); }

  void start(FileQuery::Start start, std::chrono::nanoseconds still_max = std::chrono::minutes(1)) {
    thread_.run([&] {
      auto query = std::make_shared<FileQuery>(FileQuery::Parts{.io = thread_.loop().context(),
                                                                .executor = thread_.loop(),
                                                                .still_max = still_max,
                                                                .ended = [this] { ended_ = true; }},
                                               std::make_unique<ReplyTo>(seen_));
      query_ = query;
      query->start(std::move(start));
    });
  }
  void shell(const std::string& script,
             std::chrono::nanoseconds still_max = std::chrono::minutes(1)) {
    start(
        [script] {
          return ChildProgram::start(
              {.program = "/bin/sh", .words = {"-c", script}, .environment = {}});
        },
        still_max);
  }
  bool ends() {
    return LoopThread::eventually([this] { return ended_.load(); });
  }
  template <typename Look>
  auto look(Look look) {
    return thread_.run([&] { return look(*seen_); });
  }

  const std::shared_ptr<Seen> seen_ = std::make_shared<Seen>();
  std::atomic<bool> ended_ = false;
  std::weak_ptr<FileQuery> query_;
  LoopThread thread_;
};

TEST_F(FileQueryTest, TellsAllThatIsPrintedAndHowItEnds) {
  shell("echo one; echo no >&2; head -c 300000 /dev/zero; exit 3");
  ASSERT_TRUE(ends());
  EXPECT_EQ(look([](Seen& seen) { return seen.bytes.size(); }), 300'004u);
  EXPECT_EQ(look([](Seen& seen) { return seen.exit_code; }), 3);
  EXPECT_EQ(look([](Seen& seen) { return seen.errors; }), "no\n");
  EXPECT_TRUE(LoopThread::eventually([this] { return query_.expired(); }));
}

TEST_F(FileQueryTest, ReadsNoFasterThanTheClientTakes) {
  seen_->takes = false;
  shell("exec cat /dev/zero");
  ASSERT_TRUE(LoopThread::eventually([&] { return look([](Seen& s) { return s.writes; }) == 1; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(look([](Seen& seen) { return seen.writes; }), 1);
  EXPECT_LE(look([](Seen& seen) { return seen.bytes.size(); }), FileQuery::kPieceBytes);
  look([](Seen& seen) {
    seen.take();
    return 0;
  });
  EXPECT_TRUE(LoopThread::eventually([&] { return look([](Seen& s) { return s.writes; }) == 2; }));
  look([](Seen& seen) {
    std::exchange(seen.gone, nullptr)();
    return 0;
  });
  EXPECT_TRUE(ends()) << "its client has gone";
  EXPECT_FALSE(look([](Seen& seen) { return seen.ended(); }));
}

TEST_F(FileQueryTest, ACrashIsSaid) {
  shell("echo half; kill -SEGV $$");
  ASSERT_TRUE(ends());
  EXPECT_EQ(look([](Seen& seen) { return seen.exit_code; }), 1);
  EXPECT_THAT(look([](Seen& seen) { return seen.errors; }),
              HasSubstr("uvfs was ended by signal 11 ("));
  EXPECT_EQ(look([](Seen& seen) { return seen.bytes; }), "half\n");
}

TEST_F(FileQueryTest, WhatStandsStillIsEnded) {
  shell("echo begun; exec sleep 1000", std::chrono::milliseconds(200));
  ASSERT_TRUE(ends());
  ASSERT_TRUE(look([](Seen& seen) { return seen.failed.has_value(); }));
  EXPECT_THAT(look([](Seen& seen) { return seen.failed->message; }), HasSubstr("nothing has come"));
}

TEST_F(FileQueryTest, ErrorsAreBounded) {
  shell("head -c 100000 /dev/zero >&2");
  ASSERT_TRUE(ends());
  EXPECT_EQ(look([](Seen& seen) { return seen.errors.size(); }), FileQuery::kErrorsBytesMax + 4);
}

TEST_F(FileQueryTest, WhatCannotBeStartedIsAnError) {
  start([]() -> Result<ChildProgram> { return Error{ErrorCode::kNotFound, "there is none"}; });
  ASSERT_TRUE(ends());
  EXPECT_EQ(look([](Seen& seen) { return seen.failed->message; }), "there is none");
}

TEST_F(FileQueryTest, IsEndedBeforeItHasStarted) {
  std::atomic<bool> go = false;
  start([&go]() -> Result<ChildProgram> {
    while (!go) std::this_thread::yield();
    return ChildProgram::start(
        {.program = "/bin/sh", .words = {"-c", "exec sleep 1000"}, .environment = {}});
  });
  thread_.run([&] { query_.lock()->end({ErrorCode::kUnavailable, "stopping"}); });
  go = true;
  ASSERT_TRUE(ends());
  EXPECT_EQ(look([](Seen& seen) { return seen.failed->message; }), "stopping");
}

}  // namespace
}  // namespace mariner::node
