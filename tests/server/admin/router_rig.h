// Asks the admin API without a connection: of a FakeControl.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "server/admin/api_router.h"
#include "tests/server/admin/fake_control.h"

namespace mariner::admin {

class AnswerChannel final : public web::HttpChannel {
 public:
  void progress(std::string line) override { lines.push_back(std::move(line)); }
  void send(web::HttpResponse answer) override {
    ++answers;
    response = std::move(answer);
  }
  void on_gone(UniqueFunction<void()> /*gone*/) override {}
  void write(std::string bytes, UniqueFunction<void()> taken) override {
    lines.push_back(std::move(bytes));
    taken();
  }
  void end(web::HttpTrailers all) override { trailers = std::move(all); }
  web::HttpTrailers trailers;
  std::vector<std::string> lines;
  web::HttpResponse response;
  int answers = 0;
};

class RouterRig : public testing::Test {
 protected:
  web::HttpResponse ask(web::HttpMethod method, const std::string& target,
                        const std::string& body = "") {
    const auto question = target.find('?');
    web::HttpRequest request{method, target.substr(0, question),
                             question == std::string::npos ? "" : target.substr(question + 1), body,
                             peer};
    channel = std::make_shared<AnswerChannel>();
    route(std::move(request), web::HttpReply(channel), control);
    EXPECT_EQ(channel->answers, 1);
    return channel->response;
  }
  FakeControl control;
  std::shared_ptr<AnswerChannel> channel;
  pid_t peer = 7;
};

}  // namespace mariner::admin
