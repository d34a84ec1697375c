#include "server/manager/etcd_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/iscsi/asio_executor.h"
#include "tests/server/manager/fake_member.h"

namespace mariner::manager {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

struct Outcome {
  std::vector<std::string> answers;
  std::optional<Error> error;
  bool unknown = false;
};

class EtcdCallsTest : public testing::Test {
 protected:
  void use(std::vector<Endpoint> endpoints, std::size_t calls_max = 4) {
    members_ = std::make_unique<EtcdMembers>(std::move(endpoints));
    calls_ = std::make_shared<EtcdCalls>(io_, executor_, *members_,
                                         EtcdCallLimits{.timeout = 600ms,
                                                        .attempt_timeout = 150ms,
                                                        .calls_max = calls_max,
                                                        .backoff = {.least = 1ms, .most = 10ms}});
  }
  ~EtcdCallsTest() override {
    if (calls_ != nullptr) calls_->stop();
    io_.restart();
    io_.run_for(20ms);
  }
  Outcome run(bool repeatable, std::vector<EtcdRequest> requests = {{"/x", "body"}}) {
    std::optional<Outcome> outcome;
    begin(repeatable, std::move(requests), outcome);
    EXPECT_FALSE(outcome.has_value());
    wait([&] { return outcome.has_value(); });
    EXPECT_TRUE(outcome.has_value());
    return outcome.value_or(Outcome{});
  }
  void begin(bool repeatable, std::vector<EtcdRequest> requests, std::optional<Outcome>& outcome) {
    calls_->run({.requests = std::move(requests),
                 .repeatable = repeatable,
                 .take = [this, &outcome](const EtcdAttempt& attempt) -> Result<void> {
                   if (useless_-- > 0) return Error{ErrorCode::kUnavailable, "no use"};
                   outcome = Outcome{attempt.answers, std::nullopt, false};
                   return {};
                 },
                 .fail =
                     [&outcome](Error error, bool unknown) {
                       outcome = Outcome{{}, error, unknown};
                     }});
  }
  void wait(const std::function<bool()>& holds) {
    const auto end = std::chrono::steady_clock::now() + 3s;
    while (!holds() && std::chrono::steady_clock::now() < end) {
      io_.restart();
      io_.run_one_for(5ms);
    }
  }
  FakeMember& member(FakeMember::Respond respond) {
    fakes_.push_back(std::make_unique<FakeMember>(io_, std::move(respond)));
    return *fakes_.back();
  }
  FakeMember& good() {
    return member(
        [](auto& path, auto&) { return FakeMember::Reply{FakeMember::http("good" + path)}; });
  }
  Endpoint nobody() {
    const FakeMember gone(io_, nullptr);
    return gone.endpoint();
  }

  boost::asio::io_context io_{1};
  iscsi::AsioExecutor executor_{io_};
  std::vector<std::unique_ptr<FakeMember>> fakes_;
  std::unique_ptr<EtcdMembers> members_;
  std::shared_ptr<EtcdCalls> calls_;
  int useless_ = 0;
};

TEST_F(EtcdCallsTest, ConnectionsAreKept) {
  FakeMember& fake = good();
  use({fake.endpoint()});
  EXPECT_THAT(run(true, {{"/a", ""}, {"/b", ""}}).answers, ElementsAre("good/a", "good/b"));
  EXPECT_THAT(run(false).answers, ElementsAre("good/x"));
  EXPECT_EQ(fake.accepted(), 1u);
  // A member that was restarted has forgotten them; nothing is lost by it.
  fake.hang_up();
  io_.restart();
  io_.run_for(20ms);
  EXPECT_THAT(run(false).answers, ElementsAre("good/x"));
  EXPECT_EQ(calls_->under_way(), 0u);
}

TEST_F(EtcdCallsTest, WhatMayBeRepeatedFindsAMemberThatAnswers) {
  const auto silent = [](auto&, auto&) { return FakeMember::Reply{}; };
  const auto rude = [](auto&, auto&) { return FakeMember::Reply{"", true}; };
  const auto ill = [](auto&, auto&) {
    return FakeMember::Reply{FakeMember::http("{}", "503 Service Unavailable")};
  };
  use({nobody(), member(silent).endpoint(), member(rude).endpoint(), member(ill).endpoint(),
       good().endpoint()});
  EXPECT_THAT(run(true).answers, ElementsAre("good/x"));
  // It stays there.
  EXPECT_EQ(members_->preferred(), fakes_.back()->endpoint());
}

TEST_F(EtcdCallsTest, WhatMayNotBeRepeatedIsUnknownOnceItWasSent) {
  FakeMember& last = good();
  for (const FakeMember::Reply& reply :
       {FakeMember::Reply{"", true}, FakeMember::Reply{""}, FakeMember::Reply{"nonsense\r\n\r\n"},
        FakeMember::Reply{FakeMember::http("{}", "500 Error")},
        FakeMember::Reply{FakeMember::http(R"({"message":"timed out","code":14})", "503 Error")}}) {
    if (calls_ != nullptr) calls_->stop();
    use({member([reply](auto&, auto&) { return reply; }).endpoint(), last.endpoint()});
    const Outcome outcome = run(false);
    EXPECT_TRUE(outcome.error.has_value()) << reply.bytes;
    EXPECT_TRUE(outcome.unknown) << reply.bytes;
    // The next call asks another.
    EXPECT_THAT(run(false).answers, ElementsAre("good/x"));
  }
}

TEST_F(EtcdCallsTest, WhatWasNotSentGoesToTheNext) {
  use({nobody(), good().endpoint()});
  EXPECT_THAT(run(false).answers, ElementsAre("good/x"));
}

TEST_F(EtcdCallsTest, ARefusalIsFinalAndCertain) {
  int asked = 0;
  use({member([&](auto&, auto&) {
         ++asked;
         return FakeMember::Reply{
             FakeMember::http(R"({"message":"lease not found","code":5})", "404 Not Found")};
       }).endpoint()});
  for (const bool repeatable : {true, false}) {
    const Outcome outcome = run(repeatable);
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->code, ErrorCode::kNotFound);
    EXPECT_FALSE(outcome.unknown);
  }
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(fakes_[0]->accepted(), 1u);
}

TEST_F(EtcdCallsTest, NobodyAnswersInTime) {
  use({nobody(), nobody()});
  const auto begun = executor_.monotonic_time();
  const Outcome outcome = run(false);
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->code, ErrorCode::kUnavailable);
  EXPECT_FALSE(outcome.unknown);
  EXPECT_LT(executor_.monotonic_time() - begun, 1500ms);
}

TEST_F(EtcdCallsTest, AnswersThatAreNoUseAreAskedForAgain) {
  use({good().endpoint()});
  useless_ = 3;
  EXPECT_THAT(run(true).answers, ElementsAre("good/x"));
}

TEST_F(EtcdCallsTest, TooManyAtOnceAreRefused) {
  use({good().endpoint()}, 2);
  std::optional<Outcome> outcomes[3];
  for (auto& outcome : outcomes) begin(true, {{"/x", ""}}, outcome);
  wait([&] { return outcomes[0] && outcomes[1] && outcomes[2]; });
  ASSERT_TRUE(outcomes[0] && outcomes[1] && outcomes[2]);
  EXPECT_FALSE(outcomes[0]->error || outcomes[1]->error);
  ASSERT_TRUE(outcomes[2]->error);
  EXPECT_EQ(outcomes[2]->error->code, ErrorCode::kLimit);
}

TEST_F(EtcdCallsTest, NothingComesAfterTheEnd) {
  use({good().endpoint()});
  std::optional<Outcome> outcomes[2];
  begin(true, {{"/x", ""}}, outcomes[0]);
  io_.restart();
  io_.run_one_for(20ms);  // it is on its way
  begin(true, {{"/x", ""}}, outcomes[1]);
  calls_->stop();
  calls_ = nullptr;
  io_.restart();
  io_.run_for(100ms);
  EXPECT_FALSE(outcomes[0] || outcomes[1]);
}

}  // namespace
}  // namespace mariner::manager
