#include "server/admin/group_routes.h"

#include <gtest/gtest.h>

#include "tests/server/admin/fake_control.h"

namespace mariner::admin {
namespace {

class Channel final : public web::HttpChannel {
 public:
  void progress(std::string /*line*/) override {}
  void send(web::HttpResponse answer) override { response = std::move(answer); }
  void on_gone(UniqueFunction<void()> /*gone*/) override {}
  void write(std::string /*bytes*/, UniqueFunction<void()> taken) override { taken(); }
  void end(web::HttpTrailers /*all*/) override {}
  web::HttpResponse response;
};

TEST(GroupRoutes, EveryPathReachesItsFunction) {
  struct Case {
    web::HttpMethod method;
    const char* path;
    const char* query;
    const char* body;
    const char* asked;
  };
  using web::HttpMethod;
  const Case cases[] = {
      {HttpMethod::kGet, "/v1/groups", "", "", "group_list"},
      {HttpMethod::kPost, "/v1/groups", "", "{\"name\":\"g\",\"volumes\":[\"a\",\"b\"]}",
       "group_create name: \"g\" volumes: \"a\" volumes: \"b\""},
      {HttpMethod::kGet, "/v1/groups/g", "", "", "group_show name: \"g\""},
      {HttpMethod::kDelete, "/v1/groups/g", "dry_run=true", "",
       "group_erase name: \"g\" dry_run: true"},
      {HttpMethod::kPost, "/v1/groups/g/members", "", "{\"volumes\":[\"c\"]}",
       "group_add name: \"g\" volumes: \"c\""},
      {HttpMethod::kDelete, "/v1/groups/g/members/a", "dry_run=true", "",
       "group_remove name: \"g\" volumes: \"a\" dry_run: true"},
      {HttpMethod::kGet, "/v1/groups/g/marks", "", "", "group_mark_list group: \"g\""},
      {HttpMethod::kPost, "/v1/groups/g/marks", "", "{\"name\":\"m\",\"lock_s\":\"5\"}",
       "group_mark_add group: \"g\" name: \"m\" lock_s: 5"},
      {HttpMethod::kDelete, "/v1/groups/g/marks/m", "", "",
       "group_mark_remove group: \"g\" name: \"m\""},
      {HttpMethod::kPost, "/v1/groups/g/views", "", "{\"writable\":true,\"name\":\"v\"}",
       "group_expose group: \"g\" writable: true name: \"v\""},
      {HttpMethod::kPost, "/v1/groups/g/rollback", "", "{\"undo\":true,\"force\":true}",
       "group_rollback group: \"g\" force: true undo: true"},
  };
  FakeControl control;
  for (const Case& c : cases) {
    control.asked.clear();
    const auto channel = std::make_shared<Channel>();
    route({c.method, c.path, c.query, c.body, 7}, web::HttpReply(channel), control);
    EXPECT_EQ(channel->response.status, 200) << c.path << channel->response.body;
    ASSERT_EQ(control.asked.size(), 1u) << c.path;
    EXPECT_EQ(control.asked[0], c.asked);
  }
  EXPECT_EQ(group_routes().size(), std::size(cases)) << "a path that nobody asks";
}

TEST(GroupRoutes, NoneIsForProgramsThatAnswerQuestions) {
  for (const Route& each : group_routes()) EXPECT_FALSE(each.for_queries) << each.pattern;
}

TEST(GroupRoutes, WhatIsMisspelledReachesNobody) {
  FakeControl control;
  const auto channel = std::make_shared<Channel>();
  route({web::HttpMethod::kPost, "/v1/groups/g/rollback", "", "{\"dryrun\":true}", 7},
        web::HttpReply(channel), control);
  EXPECT_EQ(channel->response.status, 400);
  EXPECT_TRUE(control.asked.empty());
}

}  // namespace
}  // namespace mariner::admin
