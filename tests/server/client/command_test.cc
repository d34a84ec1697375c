#include "server/client/command.h"

#include <gmock/gmock.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iterator>

#include "tests/server/client/daemon.h"
#include "tests/support/source_folder.h"

namespace mariner::client {
namespace {

using testing::HasSubstr;

class Command : public DaemonTest {};

TEST_F(Command, HelpAndVersion) {
  run_as_is({"--help"});
  EXPECT_EQ(code, 0);
  EXPECT_THAT(out, HasSubstr("rollback"));
  run_as_is({"--version"});
  EXPECT_EQ(code, 0);
  EXPECT_EQ(out, "mariner " MARINER_VERSION "\n");
  run_as_is({"volume", "create", "--help"});
  EXPECT_EQ(code, 0);
  EXPECT_THAT(out, HasSubstr("--window DURATION"));
}

TEST_F(Command, ErrorsOfEveryKindHaveTheirExitCode) {
  const std::pair<ErrorCode, int> cases[] = {
      {ErrorCode::kInvalidArgument, 2}, {ErrorCode::kNotFound, 1},
      {ErrorCode::kOutsideWindow, 3},   {ErrorCode::kBusy, 4},
      {ErrorCode::kNoSpace, 1},         {ErrorCode::kIo, 1}};
  for (const auto& [error, expected] : cases) {
    control.error = Error{error, "why"};
    run({"status"});
    EXPECT_EQ(code, expected);
    EXPECT_THAT(err, testing::StartsWith("mariner: why\n"));
  }
}

TEST_F(Command, NoDaemon) {
  run_as_is({"status", "--socket", "/nonexistent/admin.sock"});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(
      err,
      HasSubstr("marinerd is not running, or its admin socket is not /nonexistent/admin.sock"));
}

TEST_F(Command, ColorsAreForTerminalsThatWantThem) {
  terminal = true;
  control.volumes.add_volumes()->set_name("db1");
  run({"volume", "list"});
  EXPECT_EQ(out.find('\x1b'), std::string::npos) << "the console of this test wants none";
}

// Every verb and flag of the program stands in the manual page of its noun.
class ManualPages : public testing::Test {
 protected:
  static std::string page(const std::string& name) {
    std::ifstream file(test::source_path("deploy/man/" + name));
    std::string text{std::istreambuf_iterator<char>(file), {}};
    std::erase(text, '\\');
    return text;
  }
  static void expect_described(const CLI::App& verb, const std::string& text) {
    for (const auto* option : verb.get_options()) {
      for (const auto& name : option->get_lnames()) {
        if (name != "help" && name != "version") {
          EXPECT_THAT(text, HasSubstr("--" + name)) << verb.get_name();
        }
      }
    }
    for (const auto* sub : verb.get_subcommands([](const CLI::App*) { return true; })) {
      EXPECT_THAT(text, HasSubstr(sub->get_name()));
      expect_described(*sub, text);
    }
  }
};

TEST_F(ManualPages, SayAllThatTheProgramCan) {
  std::istringstream in;
  std::ostringstream out;
  Console console{.in = in, .out = out, .err = out};
  const SystemZone zone;
  Context context{console, zone, {}, {}, {}};
  const auto app = make_app(context);
  const auto main_page = page("mariner.1");
  for (const auto* option : app->get_options()) {
    for (const auto& name : option->get_lnames()) EXPECT_THAT(main_page, HasSubstr("--" + name));
  }
  for (const auto* noun : app->get_subcommands([](const CLI::App*) { return true; })) {
    EXPECT_THAT(main_page, HasSubstr(noun->get_name()));
    const bool own_page = noun->get_name() != "status" && noun->get_name() != "completion";
    if (own_page) expect_described(*noun, page("mariner-" + noun->get_name() + ".1"));
  }
}

}  // namespace
}  // namespace mariner::client
