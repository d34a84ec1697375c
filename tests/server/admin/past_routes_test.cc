#include "server/admin/past_routes.h"

#include <gmock/gmock.h>

#include "tests/server/admin/router_rig.h"

namespace mariner::admin {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using web::HttpMethod;

class PastRoutes : public RouterRig {};

TEST_F(PastRoutes, ThePastIsReadInBatches) {
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

TEST_F(PastRoutes, RepairsAreHandedOver) {
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

TEST_F(PastRoutes, QuestionsAboutThePastWithoutSenseReachNobody) {
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

}  // namespace
}  // namespace mariner::admin
