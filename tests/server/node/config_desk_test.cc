#include "server/node/config_desk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/server/node/log_file.h"

namespace mariner::node {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::LogFile;
using ::testing::Not;

// Notes what it is to take.
class NotingDaemon final : public Daemon {
 public:
  Result<void> start() override { return {}; }
  void on_progress(UniqueFunction<void(std::uint64_t)> /*progress*/) override {}
  void stop(UniqueFunction<void()> done) override { done(); }
  Result<void> reload(const Config& read) override {
    ++reloads;
    running = read;
    return answer;
  }
  [[nodiscard]] const Config& config() const override { return running; }

  Config running;
  int reloads = 0;
  Result<void> answer;
};

class ConfigDesk : public ::testing::Test {
 protected:
  ConfigDesk() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    write("");
    daemon_.running = *load_config(file_).config;
  }
  ~ConfigDesk() override { std::filesystem::remove_all(folder_); }

  static std::string text(const std::string& more) {
    return "version = 1\n[log]\ndisks = [\"/log0\"]\n" + more;
  }
  void write(const std::string& more) { std::ofstream(file_) << text(more); }
  Result<api::ConfigChanges> compare(const std::string& whole) {
    api::ConfigCompareRequest request;
    request.set_text(whole);
    request.set_file("new.toml");
    return compare_config(daemon_, file_, request);
  }
  Result<api::ConfigChanges> reload() {
    LogFile log(said_);
    return reload_config(daemon_, file_, log.log());
  }
  [[nodiscard]] std::vector<std::string> said() const { return LogFile::lines(said_); }

  const std::string folder_ =
      std::filesystem::temp_directory_path() / ("mariner-desk-" + std::to_string(getpid()));
  const std::string file_ = folder_ + "/marinerd.toml";
  const std::string said_ = folder_ + "/said";
  NotingDaemon daemon_;
};

TEST_F(ConfigDesk, ComparesWithWhatRuns) {
  const auto answer = compare(text("max_size = \"16G\"\non_full = \"stop-writes\"\n"));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->file(), file_);
  ASSERT_EQ(answer->changes_size(), 2);
  EXPECT_EQ(answer->changes(0).key(), "log.max_size");
  EXPECT_EQ(answer->changes(0).from(), "\"8G\"");
  EXPECT_EQ(answer->changes(0).to(), "\"16G\"");
  EXPECT_EQ(answer->changes(0).takes_effect(), "at the next start");
  EXPECT_EQ(answer->changes(1).takes_effect(), "at once");
  EXPECT_EQ(daemon_.reloads, 0);
  EXPECT_EQ(compare(text(""))->changes_size(), 0);
}

TEST_F(ConfigDesk, AllThatIsWrongWithATextIsSaid) {
  const auto answer = compare(text("maxsize = \"16G\"\nt_wait = \"1\"\n"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(answer.error().message,
              AllOf(HasSubstr("new.toml:4: log.maxsize"), HasSubstr("\nnew.toml:5: log.t_wait")));
}

TEST_F(ConfigDesk, AReloadTakesWhatItCanAndNamesTheRest) {
  write("max_size = \"16G\"\non_full = \"stop-writes\"\n");
  const auto answer = reload();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->changes_size(), 2);
  EXPECT_EQ(daemon_.reloads, 1);
  EXPECT_EQ(daemon_.running.log.on_full, OnFull::kStopWrites);
  EXPECT_THAT(said(), Contains(AllOf(HasSubstr("at the next start"), HasSubstr("log.max_size"),
                                     Not(HasSubstr("on_full")))));
}

TEST_F(ConfigDesk, AFileWithErrorsChangesNothing) {
  write("maxsize = \"16G\"\n");
  const auto answer = reload();
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("log.maxsize"));
  EXPECT_EQ(daemon_.reloads, 0);
  EXPECT_THAT(said(), Contains(HasSubstr("stays as it was")));
}

TEST_F(ConfigDesk, OtherRolesWaitWithEverythingElse) {
  daemon_.running.roles = {Role::kTarget};
  daemon_.running.log.on_full = OnFull::kStopWrites;
  const auto answer = reload();
  ASSERT_TRUE(answer);
  EXPECT_EQ(daemon_.reloads, 0);
  EXPECT_THAT(said(), Contains(AllOf(HasSubstr("at the next start"), HasSubstr("roles"))));
  for (const api::ConfigChange& change : answer->changes()) {
    EXPECT_EQ(change.takes_effect(), "at the next start") << change.key();
  }
}

TEST_F(ConfigDesk, WhatIsNeverTakenIsLogged) {
  daemon_.running.volumes.emplace_back().name = "db1";
  daemon_.running.volumes[0].size = ByteSize{8u << 20};
  write("[[volume]]\nname = \"db1\"\nsize = \"4M\"\n");
  ASSERT_TRUE(reload());
  EXPECT_THAT(said(), Contains(AllOf(HasSubstr("volume.db1.size"), HasSubstr("never shrinks"))));
}

TEST_F(ConfigDesk, WhatTheDaemonRefusesIsAnswered) {
  daemon_.answer = Error{ErrorCode::kNoSpace, "no room"};
  const auto answer = reload();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, "no room");
  EXPECT_THAT(said(), Contains(HasSubstr("applied in part")));
}

TEST_F(ConfigDesk, ProblemsAreLoggedAsWhatTheyAre) {
  {
    LogFile log(said_);
    log_problems(parse_config(text("[server]\nhttp = \"192.0.2.1:1\"\nx = 1\n"), "f"), log.log());
  }
  EXPECT_THAT(said(), Contains(AllOf(HasSubstr("warning"), HasSubstr("server.http"))));
  EXPECT_THAT(said(), Contains(HasSubstr("server.x: unknown key")));
}

}  // namespace
}  // namespace mariner::node
