#include "server/admin/api_router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>

#include "tests/server/admin/router_rig.h"

namespace mariner::admin {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using web::HttpMethod;

class ApiRouter : public RouterRig {};

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
      {HttpMethod::kPost, "/v1/config/compare", R"({"text": "version = 1"})",
       R"(config_compare text: "version = 1")"},
      {HttpMethod::kPost, "/v1/config/reload", "{}", "config_reload"},
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
          channel = std::make_shared<AnswerChannel>();
          route({method, path, b, c}, web::HttpReply(channel), control);
          RC_ASSERT(channel->answers == 1);
        }
      }));
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
