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
  void TearDown() override {
    for (const char* suffix : {"", ".installed", ".installed.old"}) {
      std::filesystem::remove(file_.string() + suffix);
    }
  }
  void configure(const std::string& text) {
    std::ofstream(file_) << "version = 1\nroles = ['standalone']\n" << text;
  }
  // What the daemon answers: the file that it reads, with other content, and a change.
  void running(const std::string& takes_effect, const std::string& reason = "") {
    const std::string installed = file_.string() + ".installed";
    std::ofstream(installed) << "version = 1\n";
    control.changes.set_file(installed);
    auto& change = *control.changes.add_changes();
    change.set_key("log.max_size");
    change.set_from("\"8G\"");
    change.set_to("\"16G\"");
    change.set_takes_effect(takes_effect);
    change.set_reason(reason);
  }
  static std::string text_of(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] std::string installed() const { return text_of(file_.string() + ".installed"); }
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

TEST_F(ConfigVerbs, ApplyShowsWhatWouldChange) {
  configure("[log]\nmax_size = '16G'\n");
  running("at the next start");
  run({"config", "apply", file_, "--dry-run"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(out, HasSubstr("log.max_size  \"8G\"  \"16G\"  at the next start\n"));
  EXPECT_THAT(out, HasSubstr("Dry run: nothing was changed.\n"));
  ASSERT_EQ(control.asked.size(), 1u);
  EXPECT_THAT(control.asked[0], StartsWith("config_compare text: \"version = 1"));
  EXPECT_EQ(installed(), "version = 1\n");
}

TEST_F(ConfigVerbs, ApplyReplacesTheFileAndHasItRead) {
  configure("[log]\nmax_size = '16G'\n");
  running("at the next start");
  run({"config", "apply", file_});
  EXPECT_EQ(code, 0) << err;
  EXPECT_EQ(installed(), text_of(file_));
  EXPECT_EQ(text_of(file_.string() + ".installed.old"), "version = 1\n");
  ASSERT_EQ(control.asked.size(), 2u);
  EXPECT_EQ(control.asked[1], "config_reload");
  EXPECT_THAT(out, HasSubstr("log.max_size"));
  EXPECT_THAT(out, HasSubstr(".installed was replaced, and read; its former content is in "));
  EXPECT_THAT(out, HasSubstr("systemctl restart marinerd, for log.max_size\n"));
  // A second time there is nothing to replace; the daemon reads it nevertheless: a secret's file
  // may have changed.
  control.changes.clear_changes();
  run({"config", "apply", file_});
  EXPECT_EQ(code, 0) << err;
  EXPECT_EQ(text_of(file_.string() + ".installed.old"), "version = 1\n");
  EXPECT_THAT(out, StartsWith("nothing differs from what the daemon runs with\n"));
  EXPECT_THAT(out, HasSubstr(".installed was read again\n"));
  EXPECT_EQ(control.asked.size(), 2u);
}

TEST_F(ConfigVerbs, ApplyRefusesWhatIsNeverTaken) {
  configure("[log]\nmax_size = '16G'\n");
  running("never", "it never shrinks");
  run({"config", "apply", file_});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(out, HasSubstr("never: it never shrinks\n"));
  EXPECT_THAT(err, HasSubstr("log.max_size cannot be changed: nothing was applied"));
  EXPECT_EQ(installed(), "version = 1\n");
  EXPECT_EQ(control.asked.size(), 1u);
  run({"config", "apply", file_, "--dry-run", "--json"});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(out, HasSubstr("\"takes_effect\":\"never\",\"reason\":\"it never shrinks\""));
  EXPECT_THAT(out, HasSubstr("\"dry_run\":true"));
}

TEST_F(ConfigVerbs, ApplyNamesVolumesThatStay) {
  configure("");
  running("at once");
  auto& change = *control.changes.add_changes();
  change.set_key("volume.db.1.size");
  change.set_from("\"8M\"");
  change.set_takes_effect("at once");
  run({"config", "apply", file_, "--dry-run"});
  EXPECT_THAT(out, HasSubstr("volume.db.1.size  \"8M\"  -      at once\n"));
  EXPECT_THAT(
      out,
      HasSubstr("volume db.1 stays, with its history: mariner volume delete db.1 removes it\n"));
}

TEST_F(ConfigVerbs, ApplyOfAFileWithErrorsAsksNobody) {
  configure("[log]\nmaxsize = '1G'\n");
  running("at once");
  run({"config", "apply", file_});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(out, HasSubstr(":4: log.maxsize: unknown key"));
  run({"config", "apply", file_, "--json"});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(out, HasSubstr("\"valid\":false"));
  run({"config", "apply", file_.string() + "-none"});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(err, HasSubstr("-none cannot be opened"));
  EXPECT_TRUE(control.asked.empty());
  EXPECT_EQ(installed(), "version = 1\n");
  run({"config", "apply"});
  EXPECT_EQ(code, 2) << "which file?";
}

TEST_F(ConfigVerbs, ApplySaysWhereItGotStuck) {
  configure("");
  run_as_is({"config", "apply", file_, "--socket", "/nonexistent/admin.sock"});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(err, HasSubstr("/nonexistent/admin.sock"));
  control.changes.set_file(file_.string() + ".none");
  run({"config", "apply", file_});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(err, HasSubstr(".none cannot be opened"));
  EXPECT_EQ(control.asked.size(), 1u);
  control.reload_error = Error{ErrorCode::kNoSpace, "no room for db2"};
  running("at once");
  run({"config", "apply", file_});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(err, HasSubstr("was replaced (its former content is in "));
  EXPECT_THAT(err, HasSubstr("the daemon did not take all of it: no room for db2"));
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
