#include <gmock/gmock.h>

#include <fstream>

#include "tests/server/client/daemon.h"
#include "tests/support/source_folder.h"

namespace mariner::client {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kDeployed = test::source_path("deploy/marinerd.toml");
constexpr auto kMissing = "/nonexistent/m.toml";

class DoctorVerb : public DaemonTest {
 protected:
  void add_finding(const std::string& level) {
    auto& finding = *control.findings.add_findings();
    finding.set_check("log");
    finding.set_level(level);
    finding.set_found("the log is full");
    finding.set_advice("make it larger");
  }
};

TEST_F(DoctorVerb, AddsWhatTheDaemonKnowsToWhatItSees) {
  add_finding("error");
  run({"doctor", "--config", kMissing});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(out, HasSubstr("error    log: the log is full\n         make it larger\n"));
  EXPECT_THAT(out, HasSubstr("error    configuration: /nonexistent/m.toml: cannot be opened"));
  run({"doctor", "--config", kDeployed, "--json"});
  EXPECT_EQ(code, 1) << "the daemon's finding is an error still";
  EXPECT_THAT(out, HasSubstr("\"check\":\"log\",\"level\":\"error\""));
  EXPECT_THAT(out, HasSubstr("\"check\":\"configuration\",\"level\":\"ok\""));
}

TEST_F(DoctorVerb, OnlyAnErrorFails) {
  run({"doctor", "--config", kDeployed});
  EXPECT_EQ(code, 0);
  EXPECT_THAT(out, HasSubstr("ok       configuration: "));
  add_finding("warning");
  run({"doctor", "--config", kDeployed});
  EXPECT_EQ(code, 0);
  EXPECT_THAT(out, HasSubstr("warning  log: the log is full\n"));
}

TEST_F(DoctorVerb, QuietLeavesOutWhatIsWell) {
  add_finding("warning");
  run({"doctor", "--config", kDeployed, "--quiet"});
  EXPECT_EQ(out, "warning  log: the log is full\n         make it larger\n");
}

TEST_F(DoctorVerb, LooksAtTheConfigurationThatTheDaemonRunsOn) {
  const std::string file = std::filesystem::temp_directory_path() /
                           ("mariner-doctor-" + std::to_string(getpid()) + ".toml");
  std::ofstream(file) << "version = 1\nroles = ['standalone']\n";
  control.status_answer.set_config_path(file);
  run({"doctor"});
  EXPECT_EQ(code, 0) << out;
  EXPECT_THAT(out, HasSubstr("configuration: " + file + " is valid\n"));
  run({"doctor", "--config", kMissing});
  EXPECT_EQ(code, 1) << "what was named goes before it";
  EXPECT_THAT(out, Not(HasSubstr(file)));
  std::filesystem::remove(file);
}

TEST_F(DoctorVerb, ADaemonThatDoesNotSayMeansTheUsualFile) {
  run({"doctor"});
  EXPECT_THAT(out, HasSubstr("configuration: /etc/mariner/marinerd.toml"));
}

TEST_F(DoctorVerb, WithoutADaemonItLooksForTheReason) {
  run_as_is({"doctor", "--config", kMissing, "--socket", "/nonexistent/admin.sock"});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(out, HasSubstr("error    configuration: /nonexistent/m.toml: cannot be opened"));
  EXPECT_THAT(out, HasSubstr("error    socket: /nonexistent/admin.sock: No such file"));
  EXPECT_EQ(err, "") << "that nobody answers is a finding, no failure of the doctor";
  run_as_is({"doctor", "--socket", "/nonexistent/admin.sock"});
  EXPECT_THAT(out, HasSubstr("configuration: /etc/mariner/marinerd.toml"));
}

TEST_F(DoctorVerb, ADaemonThatAnswersWithAnErrorIsAFinding) {
  control.error = Error{ErrorCode::kIo, "why"};
  run({"doctor", "--config", kMissing});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(out, HasSubstr("warning  socket: the daemon accepts connections at " + socket));
}

TEST_F(DoctorVerb, ControlCharactersAreNotPrinted) {
  control.findings.add_findings()->set_found("\x1b[31m");
  control.findings.mutable_findings(0)->set_advice("a\nb");
  run({"doctor", "--config", kDeployed});
  EXPECT_THAT(out, HasSubstr(": ?[31m\n         a?b\n"));
}

}  // namespace
}  // namespace mariner::client
