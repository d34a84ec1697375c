#include "server/admin/api_router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>

#include "tests/server/admin/fake_control.h"

namespace mariner::admin {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using web::HttpMethod;

class Channel final : public web::HttpChannel {
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

class ApiRouter : public testing::Test {
 protected:
  web::HttpResponse ask(HttpMethod method, const std::string& target,
                        const std::string& body = "") {
    const auto question = target.find('?');
    web::HttpRequest request{method, target.substr(0, question),
                             question == std::string::npos ? "" : target.substr(question + 1), body,
                             peer};
    channel = std::make_shared<Channel>();
    route(std::move(request), web::HttpReply(channel), control);
    EXPECT_EQ(channel->answers, 1);
    return channel->response;
  }
  FakeControl control;
  std::shared_ptr<Channel> channel;
  pid_t peer = 7;
};

TEST_F(ApiRouter, EveryPathReachesItsFunction) {
  struct Case {
    HttpMethod method;
    const char* target;
    const char* body;
    const char* asked;
  };
  api::Volume db1;
  db1.set_name("db1");
  *control.volumes.add_volumes() = db1;
  const Case cases[] = {
      {HttpMethod::kGet, "/v1/status", "", "status"},
      {HttpMethod::kPost, "/v1/log/compact", "{}", "log_compact"},
      {HttpMethod::kGet, "/v1/doctor", "", "doctor"},
      {HttpMethod::kGet, "/v1/volumes", "", "volume_list"},
      {HttpMethod::kPost, "/v1/volumes", "{\"name\":\"a\",\"size_bytes\":\"4096\"}",
       "volume_create name: \"a\" size_bytes: 4096"},
      {HttpMethod::kGet, "/v1/volumes/db1", "", "volume_show name: \"db1\""},
      {HttpMethod::kDelete, "/v1/volumes/db1?dry_run=true&force=true", "",
       "volume_delete name: \"db1\" dry_run: true force: true"},
      {HttpMethod::kPost, "/v1/volumes/a/retain", "{\"retain\":\"daily=3\"}",
       "volume_retain name: \"a\" retain: \"daily=3\""},
      {HttpMethod::kPost, "/v1/volumes/a/prune", "{\"dry_run\":true}",
       "history_prune name: \"a\" dry_run: true"},
      {HttpMethod::kPost, "/v1/volumes/a/resize", "{\"size_bytes\":\"8192\",\"dry_run\":true}",
       "volume_resize name: \"a\" size_bytes: 8192 dry_run: true"},
      {HttpMethod::kPost, "/v1/volumes/a/import", "{\"path\":\"/x\"}",
       "volume_import name: \"a\" path: \"/x\""},
      {HttpMethod::kPost, "/v1/volumes/a/clone", "{\"name\":\"b\",\"at\":{\"time_ns\":\"5\"}}",
       "volume_clone volume: \"a\" at { time_ns: 5 } name: \"b\""},
      {HttpMethod::kGet, "/v1/volumes/a/history?from.sequence=3&to.now=true&buckets=5&max_writes=9",
       "", "history name: \"a\" from { sequence: 3 } to { now: true } buckets: 5 max_writes: 9"},
      {HttpMethod::kPost, "/v1/volumes/a/rollback", "{\"at\":{\"mark\":\"m\"},\"dry_run\":true}",
       "rollback volume: \"a\" at { mark: \"m\" } dry_run: true"},
      {HttpMethod::kGet, "/v1/volumes/a/marks", "", "mark_list volume: \"a\""},
      {HttpMethod::kPost, "/v1/volumes/a/marks", "{\"name\":\"m\",\"lock_s\":\"60\"}",
       "mark_add volume: \"a\" name: \"m\" lock_s: 60"},
      {HttpMethod::kGet, "/v1/volumes/a/verdicts?since.time_ns=5&until.sequence=9", "",
       "verdict_list volume: \"a\" since { time_ns: 5 } until { sequence: 9 }"},
      {HttpMethod::kPut, "/v1/volumes/a/verdicts",
       "{\"verdicts\":[{\"at\":{\"sequence\":\"5\"},\"verdict\":\"clean\",\"level\":1}]}",
       "verdicts_save volume: \"a\" verdicts { at { sequence: 5 } verdict: \"clean\" level: 1 }"},
      {HttpMethod::kDelete, "/v1/volumes/a/marks/m%2F1", "",
       "mark_remove volume: \"a\" name: \"m/1\""},
      {HttpMethod::kGet, "/v1/views", "", "view_list"},
      {HttpMethod::kPost, "/v1/views",
       "{\"volume\":\"a\",\"at\":{\"time_ns\":\"5\"},\"writable\":true,\"ttl_s\":7}",
       "view_expose volume: \"a\" at { time_ns: 5 } writable: true ttl_s: 7"},
      {HttpMethod::kDelete, "/v1/views/v?force=true", "", "view_unexpose name: \"v\" force: true"},
      {HttpMethod::kGet, "/v1/sessions", "", "session_list"},
      {HttpMethod::kDelete, "/v1/sessions/7?dry_run=true", "", "session_kick id: 7 dry_run: true"},
      {HttpMethod::kPost, "/v1/nodes/n2/invitation", "{\"dry_run\":true}",
       "node_invite node: \"n2\" dry_run: true"},
      {HttpMethod::kPost, "/v1/volumes/a/promotion", "{\"node\":\"n2\",\"dry_run\":true}",
       "node_promote volume: \"a\" node: \"n2\" dry_run: true"},
      {HttpMethod::kGet, "/v1/cluster", "", "cluster_status"},
  };
  for (const auto& c : cases) {
    control.asked.clear();
    const auto response = ask(c.method, c.target, c.body);
    EXPECT_EQ(response.status, 200) << c.target << response.body;
    EXPECT_EQ(response.content_type, "application/json");
    EXPECT_THAT(response.body, testing::StartsWith("{\"schema\":1")) << c.target;
    EXPECT_THAT(response.body, testing::EndsWith("}\n")) << c.target;
    EXPECT_THAT(control.asked, ElementsAre(c.asked)) << c.target;
  }
}

TEST_F(ApiRouter, ThePathCountsWhereTheBodyNamesAnother) {
  ask(HttpMethod::kPost, "/v1/volumes/a/marks", "{\"volume\":\"b\",\"name\":\"m\"}");
  EXPECT_THAT(control.asked, ElementsAre("mark_add volume: \"a\" name: \"m\""));
}

TEST_F(ApiRouter, ErrorsHaveTheirStatus) {
  const std::pair<ErrorCode, int> cases[] = {
      {ErrorCode::kInvalidArgument, 400},
      {ErrorCode::kNotFound, 404},
      {ErrorCode::kAlreadyExists, 409},
      {ErrorCode::kOutsideWindow, 422},
      {ErrorCode::kBusy, 423},
      {ErrorCode::kReadOnly, 403},
      {ErrorCode::kNoSpace, 507},
      {ErrorCode::kLimit, 429},
      {ErrorCode::kCorrupt, 500},
      {ErrorCode::kIo, 500},
      {ErrorCode::kProtocol, 500},
      {ErrorCode::kAborted, 503},
      {ErrorCode::kStaleEpoch, 503},
      {ErrorCode::kUnavailable, 503},
      {ErrorCode::kMiscompare, 500},
  };
  for (const auto& [code, status] : cases) {
    control.error = Error{code, "why"};
    const auto response = ask(HttpMethod::kGet, "/v1/status");
    EXPECT_EQ(response.status, status);
    EXPECT_EQ(response.body, "{\"schema\":1,\"error\":{\"code\":\"" +
                                 std::string(error_code_name(code)) + "\",\"message\":\"why\"}}\n");
  }
}

TEST_F(ApiRouter, WrongRequestsNeverReachControl) {
  const std::pair<HttpMethod, const char*> cases[] = {
      {HttpMethod::kGet, "/v1/volumes/a/history?bucket=5"},
      {HttpMethod::kDelete, "/v1/volumes/a?dryrun=true"},
      {HttpMethod::kDelete, "/v1/volumes/%zz"},
      {HttpMethod::kDelete, "/v1/sessions/x"},
      {HttpMethod::kDelete, "/v1/sessions/-1"},
      {HttpMethod::kDelete, "/v1/sessions/18446744073709551616"},
  };
  for (const auto& [method, target] : cases) EXPECT_EQ(ask(method, target).status, 400) << target;
  EXPECT_EQ(ask(HttpMethod::kPost, "/v1/volumes", "{\"name\":").status, 400);
  EXPECT_EQ(ask(HttpMethod::kPost, "/v1/volumes", "{\"dryrun\":true}").status, 400);
  for (const auto* target :
       {"", "/", "/v1", "/v1/", "/v1/volumes/", "/v1/volumes/a/b", "/v1/volumes//marks",
        "/v2/volumes", "v1/volumes", "http://x/v1/volumes", "*"}) {
    EXPECT_EQ(ask(HttpMethod::kGet, target).status, 404) << target;
  }
  EXPECT_TRUE(control.asked.empty());
}

TEST_F(ApiRouter, AWrongMethodIsToldTheRightOnes) {
  EXPECT_EQ(ask(HttpMethod::kDelete, "/v1/volumes").status, 405);
  EXPECT_EQ(ask(HttpMethod::kDelete, "/v1/volumes").allow, "GET, POST");
  EXPECT_EQ(ask(HttpMethod::kOther, "/v1/status").allow, "GET");
}

TEST_F(ApiRouter, AnImportStreamsItsProgress) {
  control.import_progress = {{1, 10}, {5, 10}};
  const auto response = ask(HttpMethod::kPost, "/v1/volumes/a/import", "{\"path\":\"/x\"}");
  EXPECT_THAT(channel->lines,
              ElementsAre("{\"schema\":1,\"done_bytes\":\"1\",\"total_bytes\":\"10\"}\n",
                          "{\"schema\":1,\"done_bytes\":\"5\",\"total_bytes\":\"10\"}\n"));
  EXPECT_THAT(response.body, HasSubstr("\"name\":\"a\""));
}

TEST_F(ApiRouter, ACloneStreamsItsProgress) {
  control.import_progress = {{1, 10}};
  control.clone_answer.set_source("a");
  const auto response = ask(HttpMethod::kPost, "/v1/volumes/a/clone", "{\"name\":\"b\"}");
  EXPECT_THAT(channel->lines,
              ElementsAre("{\"schema\":1,\"done_bytes\":\"1\",\"total_bytes\":\"10\"}\n"));
  EXPECT_THAT(response.body, HasSubstr("\"source\":\"a\""));
}

TEST_F(ApiRouter, AnImportMayFailInTheMiddle) {
  control.import_progress = {{1, 10}};
  control.error = Error{ErrorCode::kNoSpace, "full"};
  const auto response = ask(HttpMethod::kPost, "/v1/volumes/a/import");
  EXPECT_EQ(channel->lines.size(), 1u);
  EXPECT_THAT(response.body, HasSubstr("\"code\":\"no-space\""));
}

TEST_F(ApiRouter, AnyRequestIsAnsweredOnce) {
  EXPECT_TRUE(rc::check(
      [this](const std::string& a, const std::string& b, const std::string& c, std::uint8_t m) {
        const auto method = static_cast<HttpMethod>(m % 5);
        for (const auto& path : {a, "/v1/" + a, "/v1/volumes/" + a,
                                 "/v1/volumes/" + a + "/marks/" + b, "/v1/sessions/" + a}) {
          channel = std::make_shared<Channel>();
          route({method, path, b, c}, web::HttpReply(channel), control);
          RC_ASSERT(channel->answers == 1);
        }
      }));
}

TEST_F(ApiRouter, ThePastIsReadInBatches) {
  FakePast& past = control.of_the_past;
  past.past.set_id("17");
  EXPECT_THAT(
      ask(HttpMethod::kPost, "/v1/volumes/db1/past", "{\"from\":{\"sequence\":\"3\"}}").body,
      HasSubstr("\"id\":\"17\""));
  ask(HttpMethod::kGet, "/v1/past/17");
  ask(HttpMethod::kGet, "/v1/past/17/moment?at.time_ns=5");
  ask(HttpMethod::kDelete, "/v1/past/17");
  past.changed_answers.push_back({{{{1}, {2}}}, {}});
  web::HttpResponse answer = ask(HttpMethod::kGet, "/v1/past/17/changed?from=3&to=9&first_block=1");
  EXPECT_EQ(answer.content_type, web::kOctets);
  EXPECT_EQ(answer.body, pack_changed({{{{1}, {2}}}, {}}));
  past.stored_answers.push_back({{{{1}, {2}}}, {5}});
  answer = ask(HttpMethod::kGet, "/v1/past/17/stored?at=9&first_block=1");
  EXPECT_EQ(answer.body, pack_changed({{{{1}, {2}}}, {5}}));
  past.versions_answers.push_back({{{{1}, {2}, {3}}}, true});
  const VersionsRequest versions{{9}, {{{1}, {0}}}};
  answer = ask(HttpMethod::kPost, "/v1/past/17/versions", pack_versions_request(versions));
  EXPECT_EQ(answer.body, pack_versions({{{{1}, {2}, {3}}}, true}));
  EXPECT_EQ(past.versions_requests, (std::vector<VersionsRequest>{versions}));
  const std::vector<BlockQuestion> questions{{{1}, {2}}, {{3}, {4}}};
  answer = ask(HttpMethod::kPost, "/v1/past/17/blocks", pack_questions(questions));
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.content_type, web::kOctets);
  EXPECT_EQ(past.questions, questions);
  ASSERT_EQ(answer.slices.size(), 2u);
  EXPECT_EQ(answer.slices[1].bytes()[9], std::byte{7});
  EXPECT_EQ(answer.keeps, past.budget);
  EXPECT_THAT(past.asked,
              ElementsAre("open volume: \"db1\" from { sequence: 3 }", "show 17",
                          "moment id: \"17\" at { time_ns: 5 }", "close 17",
                          "changed id: \"17\" from: 3 to: 9 first_block: 1",
                          "stored id: \"17\" at: 9 first_block: 1", "versions 17", "blocks 17"));
}

TEST_F(ApiRouter, RepairsAreHandedOver) {
  std::string records(kRepairRecordBytes * 2, 'x');
  records[kRepairRecordBytes + 7] = 'y';  // the second number is the greater one
  auto answer = ask(HttpMethod::kPost, "/v1/volumes/db1/repairs", "{\"sequence\":\"3\"}");
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.body, HasSubstr("\"id\":\"7\""));
  answer = ask(HttpMethod::kPost, "/v1/repairs/7/blocks", records);
  EXPECT_THAT(answer.body, HasSubstr("\"blocks\":\"2\""));
  EXPECT_EQ(ask(HttpMethod::kDelete, "/v1/repairs/7").status, 200);
  EXPECT_THAT(control.handed_over.asked,
              ElementsAre("open volume: \"db1\" sequence: 3", "add 7 2 blocks", "drop 7"));
  EXPECT_EQ(ask(HttpMethod::kPost, "/v1/repairs/7/blocks", records.substr(1)).status, 400);
  EXPECT_EQ(ask(HttpMethod::kPost, "/v1/repairs/7/blocks?x=1", records).status, 400);
  EXPECT_EQ(control.handed_over.asked.size(), 3u);
}

TEST_F(ApiRouter, QuestionsAboutThePastWithoutSenseReachNobody) {
  EXPECT_EQ(ask(HttpMethod::kPost, "/v1/past/17/blocks", "x").status, 400);
  EXPECT_EQ(ask(HttpMethod::kPost, "/v1/past/17/blocks?x=1", std::string(16, 'x')).status, 400);
  EXPECT_EQ(
      ask(HttpMethod::kPost, "/v1/past/17/blocks", std::string(16 * (kBlockQuestionsMax + 1), 'x'))
          .status,
      429);
  EXPECT_EQ(ask(HttpMethod::kPost, "/v1/past/17/versions", std::string(8, 'x')).status, 400);
  EXPECT_EQ(ask(HttpMethod::kPost, "/v1/past/17/versions?x=1", std::string(24, 'x')).status, 400);
  EXPECT_EQ(ask(HttpMethod::kGet, "/v1/past/17/changed?from=x").status, 400);
  EXPECT_EQ(ask(HttpMethod::kGet, "/v1/past/17/blocks").status, 405);
  EXPECT_TRUE(control.of_the_past.asked.empty());
  control.of_the_past.error = Error{ErrorCode::kOutsideWindow, "gone"};
  const auto answer = ask(HttpMethod::kPost, "/v1/past/17/blocks", std::string(16, 'x'));
  EXPECT_EQ(answer.status, 422);
  EXPECT_THAT(answer.body, HasSubstr("\"code\":\"outside-window\""));
}

TEST_F(ApiRouter, QuestionsAboutFilesAreAsked) {
  EXPECT_EQ(ask(HttpMethod::kPost, "/v1/files", "{\"verb\":\"ls\",\"object\":\"a:/\"}").status,
            404);
  EXPECT_EQ(control.of_files.asked, "verb: \"ls\" object: \"a:/\"");
  EXPECT_EQ(ask(HttpMethod::kPost, "/v1/files", "{\"words\":\"ls\"}").status, 400);
  EXPECT_EQ(ask(HttpMethod::kGet, "/v1/files").status, 405);
}

// Whatever has become of it: it parses what may be forged.
TEST_F(ApiRouter, WhoAnswersQuestionsReadsThePastAndNothingElse) {
  control.of_files.running = peer;
  EXPECT_NE(ask(HttpMethod::kPost, "/v1/volumes/a/past").status, 403);
  EXPECT_NE(ask(HttpMethod::kGet, "/v1/past/id/moment?at.now=true").status, 403);
  EXPECT_NE(ask(HttpMethod::kGet, "/v1/volumes/a/history").status, 403);
  for (const char* path : {"/v1/status", "/v1/volumes", "/v1/volumes/a", "/v1/sessions"}) {
    EXPECT_EQ(ask(HttpMethod::kGet, path).status, 403) << path;
  }
  EXPECT_EQ(ask(HttpMethod::kDelete, "/v1/volumes/a").status, 403);
  EXPECT_EQ(ask(HttpMethod::kPost, "/v1/volumes/a/rollback").status, 403);
  EXPECT_EQ(ask(HttpMethod::kPost, "/v1/volumes/a/import", "{\"path\":\"/x\"}").status, 403);
  EXPECT_EQ(ask(HttpMethod::kPost, "/v1/files", "{\"verb\":\"ls\"}").status, 403);
  peer = 8;
  EXPECT_EQ(ask(HttpMethod::kGet, "/v1/status").status, 200);
}

}  // namespace
}  // namespace mariner::admin
