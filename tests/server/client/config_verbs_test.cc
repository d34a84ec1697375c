#include <gmock/gmock.h>

#include <fstream>

#include "tests/server/client/daemon.h"
#include "tests/support/source_folder.h"

namespace mariner::client {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class ConfigVerbs : public DaemonTest {
 protected:
  void SetUp() override {
    file_ = std::filesystem::temp_directory_path() / ("mariner-cc-" + std::to_string(getpid()));
  }
  void TearDown() override { std::filesystem::remove(file_); }
  void configure(const std::string& text) {
    std::ofstream(file_) << "version = 1\nroles = ['standalone']\n" << text;
  }
  std::filesystem::path file_;
};

TEST_F(ConfigVerbs, CheckNamesEveryProblemWithItsLine) {
  configure("[log]\nmaxsize = '1G'\nt_wait = '1'\n");
  run({"config", "check", file_});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(
      out,
      HasSubstr(":4: log.maxsize: unknown key; the nearest that exists is \"log.max_size\"\n"));
  EXPECT_THAT(out, HasSubstr(":5: log.t_wait: "));
  EXPECT_THAT(out, testing::Not(HasSubstr("is valid")));
}

TEST_F(ConfigVerbs, CheckSaysTheSameAsJson) {
  configure("[log]\nmaxsize = '1G'\n");
  run({"config", "check", file_, "--json"});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(out, StartsWith("{\"schema\":1,\"file\":\"" + file_.string() + "\""));
  EXPECT_THAT(out, HasSubstr("\"valid\":false,\"problems\":[{\"level\":\"error\""));
  EXPECT_THAT(out, HasSubstr("\"line\":4,\"key\":\"log.maxsize\""));
}

TEST_F(ConfigVerbs, AValidFile) {
  configure("");
  run({"config", "check", file_});
  EXPECT_EQ(code, 0);
  EXPECT_EQ(out, file_.string() + " is valid\n");
  run({"config", "check", file_, "--quiet"});
  EXPECT_EQ(code, 0);
  EXPECT_EQ(out, "") << "the exit code says it";
  run({"config", "check", file_, "--json"});
  EXPECT_EQ(code, 0);
  EXPECT_THAT(out, HasSubstr("\"valid\":true"));
}

TEST_F(ConfigVerbs, QuietDoesNotHideProblems) {
  configure("[log]\nmaxsize = '1G'\n");
  run({"config", "check", file_, "--quiet"});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(out, HasSubstr("log.maxsize"));
}

TEST_F(ConfigVerbs, TheFileThatIsDeployedIsValid) {
  run({"config", "check", test::source_path("deploy/marinerd.toml")});
  EXPECT_EQ(code, 0) << out;
}

TEST_F(ConfigVerbs, AFileThatCannotBeReadIsAProblem) {
  run({"config", "check", file_});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(out, StartsWith(file_.string() + ": cannot be opened"));
  run({"config", "check", std::filesystem::temp_directory_path()});
  EXPECT_EQ(code, 1) << "a directory is no file";
}

// What stands in a file that came from elsewhere must not reach the terminal as it is.
TEST_F(ConfigVerbs, ControlCharactersAreNotPrinted) {
  configure("[log]\n\"\\u001b[31mred\" = 1\n");
  run({"config", "check", file_});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(out, HasSubstr("?[31mred"));
  EXPECT_EQ(out.find('\x1b'), std::string::npos);
}

TEST_F(ConfigVerbs, NeedsNoDaemonButItsVerb) {
  configure("");
  run_as_is({"config", "check", file_, "--socket", "/nonexistent/admin.sock"});
  EXPECT_EQ(code, 0);
  run({"config"});
  EXPECT_EQ(code, 2);
  EXPECT_TRUE(control.asked.empty());
}

}  // namespace
}  // namespace mariner::client
