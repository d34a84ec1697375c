#include "server/admin/group_routes.h"

#include "tests/server/admin/router_rig.h"

namespace mariner::admin {
namespace {

using web::HttpMethod;

class GroupRoutes : public RouterRig {};

TEST_F(GroupRoutes, EveryPathReachesItsFunction) {
  struct Case {
    HttpMethod method;
    const char* target;
    const char* body;
    const char* asked;
  };
  const Case cases[] = {
      {HttpMethod::kGet, "/v1/groups", "", "group_list"},
      {HttpMethod::kPost, "/v1/groups", "{\"name\":\"g\",\"volumes\":[\"a\",\"b\"]}",
       "group_create name: \"g\" volumes: \"a\" volumes: \"b\""},
      {HttpMethod::kGet, "/v1/groups/g", "", "group_show name: \"g\""},
      {HttpMethod::kDelete, "/v1/groups/g?dry_run=true", "",
       "group_erase name: \"g\" dry_run: true"},
      {HttpMethod::kPost, "/v1/groups/g/members", "{\"volumes\":[\"c\"]}",
       "group_add name: \"g\" volumes: \"c\""},
      {HttpMethod::kDelete, "/v1/groups/g/members/a?dry_run=true", "",
       "group_remove name: \"g\" volumes: \"a\" dry_run: true"},
      {HttpMethod::kGet, "/v1/groups/g/marks", "", "group_mark_list group: \"g\""},
      {HttpMethod::kPost, "/v1/groups/g/marks", "{\"name\":\"m\",\"lock_s\":\"5\"}",
       "group_mark_add group: \"g\" name: \"m\" lock_s: 5"},
      {HttpMethod::kDelete, "/v1/groups/g/marks/m", "",
       "group_mark_remove group: \"g\" name: \"m\""},
      {HttpMethod::kPost, "/v1/groups/g/views", "{\"writable\":true,\"name\":\"v\"}",
       "group_expose group: \"g\" writable: true name: \"v\""},
      {HttpMethod::kPost, "/v1/groups/g/rollback", "{\"undo\":true,\"force\":true}",
       "group_rollback group: \"g\" force: true undo: true"},
  };
  for (const Case& c : cases) {
    control.asked.clear();
    const web::HttpResponse answer = ask(c.method, c.target, c.body);
    EXPECT_EQ(answer.status, 200) << c.target << answer.body;
    ASSERT_EQ(control.asked.size(), 1u) << c.target;
    EXPECT_EQ(control.asked[0], c.asked);
  }
  EXPECT_EQ(group_routes().size(), std::size(cases)) << "a path that nobody asks";
}

TEST_F(GroupRoutes, NoneIsForProgramsThatAnswerQuestions) {
  for (const Route& each : group_routes()) EXPECT_FALSE(each.for_queries) << each.pattern;
}

TEST_F(GroupRoutes, WhatIsMisspelledReachesNobody) {
  EXPECT_EQ(ask(HttpMethod::kPost, "/v1/groups/g/rollback", "{\"dryrun\":true}").status, 400);
  EXPECT_TRUE(control.asked.empty());
}

}  // namespace
}  // namespace mariner::admin
