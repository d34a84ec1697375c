#include "server/client/application.h"

#include <gmock/gmock.h>

#include <CLI/CLI.hpp>
#include <new>
#include <sstream>

namespace mariner::client {
namespace {

using testing::HasSubstr;

class ApplicationTest : public ::testing::Test {
 protected:
  int run(const std::vector<std::string>& words, Result<ExitCode> result = ExitCode::kDone) {
    CLI::App app("Does things.", "thing");
    add_common_flags(app, context_, "Print JSON");
    app.add_subcommand("do", "Do it")->callback([this, result] {
      context_.action = [this, result] {
        ++done_;
        return result;
      };
    });
    return run_application(app, context_, words);
  }

  std::istringstream in_;
  std::ostringstream out_;
  std::ostringstream err_;
  Console console_{.in = in_, .out = out_, .err = err_, .out_is_terminal = true, .color = true};
  SystemZone zone_;
  Context context_{console_, zone_, [] { return VersionTime{}; }, {}, {}};
  int done_ = 0;
};

TEST_F(ApplicationTest, DoesWhatWasSaidWithTheFlagsWhereverTheyStand) {
  EXPECT_EQ(run({"do", "--quiet", "--socket", "/s"}), 0);
  EXPECT_EQ(done_, 1);
  EXPECT_TRUE(console_.quiet);
  EXPECT_TRUE(console_.color);
  EXPECT_EQ(context_.flags.socket, "/s");
  EXPECT_EQ(run({"--no-color", "do"}, ExitCode::kErrorsFound), 10);
  EXPECT_FALSE(console_.color);
}

TEST_F(ApplicationTest, WrongWordsAndErrorsHaveTheirCodes) {
  EXPECT_EQ(run({}), 2);
  EXPECT_EQ(run({"undo"}), 2);
  EXPECT_EQ(done_, 0);
  EXPECT_EQ(run({"--version"}), 0);
  EXPECT_EQ(out_.str(), "thing " MARINER_VERSION "\n");
  EXPECT_EQ(run({"do", "--no-color"}, Error{ErrorCode::kOutsideWindow, "too old"}), 3);
  EXPECT_THAT(err_.str(), HasSubstr("thing: too old"));
}

TEST_F(ApplicationTest, WithoutMemoryItSaysSo) {
  CLI::App app("Does things.", "thing");
  add_common_flags(app, context_, "Print JSON");
  app.add_subcommand("do", "Do it")->callback([this] {
    context_.action = []() -> Result<ExitCode> { throw std::bad_alloc(); };
  });
  EXPECT_EQ(run_application(app, context_, {"do", "--no-color"}), 1);
  EXPECT_THAT(err_.str(), HasSubstr("thing: more memory would be needed"));
}

}  // namespace
}  // namespace mariner::client
