#include "server/client/files_client.h"

#include <gmock/gmock.h>

#include "tests/server/client/daemon.h"

namespace mariner::client {
namespace {

class FilesClient : public DaemonTest {
 protected:
  Result<FilesEnd> ask() {
    api::FilesRequest request;
    request.set_verb("cat");
    return ask_files({.socket = socket, .timeout = std::chrono::seconds(5)}, request,
                     [this](std::string_view bytes) -> Result<void> {
                       bytes_ += bytes;
                       return {};
                     });
  }
  std::string bytes_;
};

TEST_F(FilesClient, TellsWhatIsPrintedAndHowItEnded) {
  control.of_files.error.reset();
  control.of_files.bytes = std::string(300'000, 'b');
  control.of_files.errors = "uvfs: 100 % \xc3\xa4\n";
  control.of_files.exit_code = 3;
  const auto end = ask();
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(control.of_files.asked, "verb: \"cat\"");
  EXPECT_EQ(bytes_, control.of_files.bytes);
  EXPECT_EQ(end->exit_code, 3);
  EXPECT_EQ(end->errors, control.of_files.errors);
}

TEST_F(FilesClient, ErrorsOfTheDaemonAreErrors) {
  control.of_files.error = Error{ErrorCode::kLimit, "8 questions"};
  EXPECT_EQ(ask().error().code, ErrorCode::kLimit);
  EXPECT_EQ(bytes_, "");
}

}  // namespace
}  // namespace mariner::client
