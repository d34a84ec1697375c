#include "server/admin/files_route.h"

#include <gmock/gmock.h>

#include <optional>
#include <string>
#include <vector>

namespace mariner::admin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

struct Channel final : web::HttpChannel {
  void progress(std::string) override {}
  void send(web::HttpResponse answer) override { response = std::move(answer); }
  void on_gone(UniqueFunction<void()> run) override { gone = std::move(run); }
  void write(std::string some, UniqueFunction<void()> run) override {
    bytes += some;
    taken = std::move(run);
  }
  void end(web::HttpTrailers all) override { trailers = std::move(all); }

  std::optional<web::HttpResponse> response;
  UniqueFunction<void()> gone;
  std::string bytes;
  UniqueFunction<void()> taken;
  web::HttpTrailers trailers;
};

struct Source final : FilesSource {
  void ask(const api::FilesRequest& request, std::unique_ptr<FilesReply> to) override {
    verb = request.verb();
    reply = std::move(to);
  }
  [[nodiscard]] bool runs(pid_t /*process*/) const override { return false; }
  std::string verb;
  std::unique_ptr<FilesReply> reply;
};

class FilesRoute : public ::testing::Test {
 protected:
  FilesRoute() {
    api::FilesRequest request;
    request.set_verb("ls");
    answer_files(request, web::HttpReply(channel_), source_);
  }
  const std::shared_ptr<Channel> channel_ = std::make_shared<Channel>();
  Source source_;
};

TEST_F(FilesRoute, BytesThenTheEndInTrailers) {
  EXPECT_EQ(source_.verb, "ls");
  int taken = 0;
  source_.reply->write("one", [&] { ++taken; });
  EXPECT_EQ(taken, 0);
  channel_->taken();
  EXPECT_EQ(taken, 1);
  source_.reply->end(3, "uvfs: a\n");
  EXPECT_EQ(channel_->bytes, "one");
  EXPECT_THAT(channel_->trailers,
              ElementsAre(Pair("Mariner-Exit", "3"), Pair("Mariner-Errors", "uvfs%3A%20a%0A")));
}

TEST_F(FilesRoute, AnErrorInsteadIsAsAnyOther) {
  source_.reply->fail({ErrorCode::kLimit, "8 questions"});
  ASSERT_TRUE(channel_->response);
  EXPECT_EQ(channel_->response->status, 429);
  EXPECT_THAT(channel_->response->body, HasSubstr("\"message\":\"8 questions\""));
}

TEST_F(FilesRoute, AnErrorBehindBytesIsInTheTrailers) {
  source_.reply->write("one", [] {});
  channel_->taken();
  source_.reply->fail({ErrorCode::kAborted, "ended"});
  EXPECT_THAT(channel_->trailers, ElementsAre(Pair("Mariner-Exit", "1"),
                                              Pair("Mariner-Errors", "marinerd%3A%20ended%0A")));
}

// The reply is dropped: the connection is closed.
TEST_F(FilesRoute, WhoTakesNothingSeesItBreakOff) {
  source_.reply->write("one", [] {});
  source_.reply->fail({ErrorCode::kAborted, "ended"});
  EXPECT_TRUE(channel_->trailers.empty());
  ASSERT_TRUE(channel_->response);
  EXPECT_EQ(channel_->response->status, 500);
}

TEST_F(FilesRoute, WhoGoesIsNoticed) {
  bool gone = false;
  source_.reply->on_gone([&] { gone = true; });
  channel_->gone();
  EXPECT_TRUE(gone);
}

}  // namespace
}  // namespace mariner::admin
