#include "server/node/file_desk.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/logging/temporary_directory.h"
#include "tests/server/node/files_reply_rig.h"
#include "tests/server/node/loop_thread.h"

namespace mariner::node {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::LoopThread;
using testing::ReplyTo;
using testing::Seen;

api::FilesRequest question(const std::string& verb, const std::string& object) {
  api::FilesRequest request;
  request.set_verb(verb);
  request.set_object(object);
  request.set_color(true);
  return request;
}

TEST(FileDeskWords, AreThoseOfTheProgram) {
  EXPECT_THAT(*words_of(question("cat", "db1:/a@-1h"), "/s"),
              ElementsAre("cat", "db1:/a@-1h", "--socket=/s"));
  api::FilesRequest diff = question("diff", "db1:/a@#1");
  diff.set_other("@now");
  diff.set_terminal(true);
  diff.set_color(false);
  EXPECT_THAT(*words_of(diff, "/s"),
              ElementsAre("diff", "db1:/a@#1", "@now", "--terminal", "--no-color", "--socket=/s"));
  api::FilesRequest find = question("find", "db1");
  find.set_since("-1d");
  find.set_until("#7");
  find.set_name("--socket");
  find.set_type("f");
  find.set_deleted(true);
  find.set_json(true);
  find.set_quiet(true);
  EXPECT_THAT(*words_of(find, "/s"),
              ElementsAre("find", "db1", "--since=-1d", "--until=#7", "--name=--socket", "--type=f",
                          "--deleted", "--json", "--quiet", "--socket=/s"));
}

TEST(FileDeskWords, NothingElseIsDone) {
  const auto refused = [](const api::FilesRequest& request) {
    const auto words = words_of(request, "/s");
    EXPECT_FALSE(words);
    return words ? std::string() : words.error().message;
  };
  EXPECT_THAT(refused(question("restore", "db1:/a")), HasSubstr("\"restore\" is no question"));
  EXPECT_THAT(refused(question("", "db1:/a")), HasSubstr("expected one of ls, cat, "));
  EXPECT_THAT(refused(question("ls", "--image=/etc/shadow")), HasSubstr("object begins with a -"));
  EXPECT_THAT(refused(question("ls", std::string("a\0b", 3))), HasSubstr("object has a zero byte"));
  api::FilesRequest zone = question("ls", "db1:/");
  zone.set_time_zone(std::string(300, 'z'));
  EXPECT_THAT(refused(zone), HasSubstr("time_zone is longer"));
}

class FileDeskTest : public ::testing::Test {
 protected:
  FileDeskTest() {
    thread_.begin();
    thread_.run([&] {
      desk_ = std::make_unique<FileDesk>(
          thread_.loop().context(), thread_.loop(),
          FileDesk::Options{.socket = "/s", .find = [this]() -> Result<std::string> {
                              return folder_.file("uvfs");
                            }});
    });
  }
  ~FileDeskTest() override {
    thread_.run([&] { desk_.reset(); });
  }
  void program(const std::string& script) {
    std::ofstream(folder_.file("uvfs")) << "#!/bin/sh\n" << script << "\n";
    ::chmod(folder_.file("uvfs").c_str(), 0755);
  }
  std::shared_ptr<Seen> ask(const api::FilesRequest& request) {
    auto seen = std::make_shared<Seen>();
    thread_.run([&] { desk_->ask(request, std::make_unique<ReplyTo>(seen)); });
    return seen;
  }
  bool ended(const std::shared_ptr<Seen>& seen) {
    return LoopThread::eventually([&] { return thread_.run([&] { return seen->ended(); }); });
  }
  std::size_t queries() {
    return thread_.run([&] { return desk_->queries(); });
  }

  logging::test::TemporaryDirectory folder_;
  LoopThread thread_;
  std::unique_ptr<FileDesk> desk_;
};

TEST_F(FileDeskTest, AsksTheProgram) {
  program("echo \"$@\" \"$TZ\" \"$HOME\"");
  api::FilesRequest request = question("ls", "db1:/");
  request.set_time_zone("Asia/Kathmandu");
  const auto seen = ask(request);
  ASSERT_TRUE(ended(seen));
  EXPECT_EQ(seen->bytes, "ls db1:/ --socket=/s Asia/Kathmandu \n");
  EXPECT_EQ(seen->exit_code, 0);
  EXPECT_TRUE(LoopThread::eventually([&] { return queries() == 0; }));
  EXPECT_EQ(ask(question("mount", "db1"))->failed->code, ErrorCode::kInvalidArgument);
}

TEST_F(FileDeskTest, SoManyAtATimeAndNoMore) {
  program("exec sleep 1000");
  std::vector<std::shared_ptr<Seen>> all;
  for (std::size_t i = 0; i < FileDesk::kQueriesMax; ++i) all.push_back(ask(question("ls", "a:/")));
  EXPECT_EQ(queries(), FileDesk::kQueriesMax);
  EXPECT_EQ(ask(question("ls", "a:/"))->failed->code, ErrorCode::kLimit);
  thread_.run([&] { std::exchange(all.front()->gone, nullptr)(); });
  ASSERT_TRUE(LoopThread::eventually([&] { return queries() == FileDesk::kQueriesMax - 1; }));
  thread_.run([&] { desk_->stop(); });
  ASSERT_TRUE(LoopThread::eventually([&] { return queries() == 0; }));
  EXPECT_EQ(all.back()->failed->code, ErrorCode::kUnavailable);
  EXPECT_EQ(ask(question("ls", "a:/"))->failed->code, ErrorCode::kUnavailable);
}

TEST_F(FileDeskTest, KnowsWhomItRuns) {
  program("echo $$; exec sleep 1000");
  const auto seen = ask(question("ls", "a:/"));
  ASSERT_TRUE(
      LoopThread::eventually([&] { return thread_.run([&] { return seen->writes == 1; }); }));
  const pid_t process = std::stoi(thread_.run([&] { return seen->bytes; }));
  EXPECT_TRUE(thread_.run([&] { return desk_->runs(process); }));
  EXPECT_FALSE(thread_.run([&] { return desk_->runs(::getpid()); }));
}

TEST_F(FileDeskTest, GoesWithQueriesUnderWay) {
  program("exec cat /dev/zero");
  const auto seen = ask(question("cat", "a:/b"));
  ASSERT_TRUE(
      LoopThread::eventually([&] { return thread_.run([&] { return seen->writes; }) > 3; }));
  thread_.run([&] { desk_.reset(); });
  EXPECT_TRUE(ended(seen));
}

}  // namespace
}  // namespace mariner::node
