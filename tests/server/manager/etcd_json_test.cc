#include "server/manager/etcd_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mariner::manager {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const std::string kHead =
    R"("header":{"cluster_id":"10144879847569953045","member_id":"7","revision":"9","raft_term":"2"})";
const std::string kFoo =
    R"({"key":"Zm9v","create_revision":"2","mod_revision":"5","version":"1","value":"AP8="})";

std::string with(const std::string& rest) { return "{" + kHead + rest + "}"; }
std::string line(const std::string& rest) { return R"({"result":)" + with(rest) + "}"; }
template <typename T>
ErrorCode code(const Result<T>& result) {
  return result ? ErrorCode::kIo : result.error().code;
}

TEST(EtcdJson, RequestsAreThoseOfTheGateway) {
  EXPECT_EQ(get_request("foo").body, R"({"key":"Zm9v"})");
  EXPECT_EQ(list_request("foo").body, R"({"key":"Zm9v","range_end":"Zm9w","limit":"32"})");
  // Behind the prefix FF FF nothing comes; an empty prefix is everything.
  EXPECT_EQ(list_request("\xFF\xFF").body, R"({"key":"//8=","range_end":"AA==","limit":"32"})");
  EXPECT_EQ(list_request("").body, R"({"key":"AA==","range_end":"AA==","limit":"32"})");
  EXPECT_EQ(list_request("a\xFF").body, R"({"key":"Yf8=","range_end":"Yg==","limit":"32"})");
  // What comes behind a key begins with that and a zero byte.
  EXPECT_EQ(list_request("fo", "foo", Revision{5}).body,
            R"({"key":"Zm9vAA==","range_end":"ZnA=","limit":"32","revision":"5"})");
  EXPECT_EQ(grant_request(5s).body, R"({"TTL":"5"})");
  EXPECT_EQ(revoke_request(LeaseId{7}).body, R"({"ID":"7"})");
  EXPECT_EQ(watch_request("foo", Revision{9}).body,
            R"({"create_request":{"key":"Zm9v","range_end":"Zm9w","start_revision":"8",)"
            R"("progress_notify":true,"fragment":true}})");
  EXPECT_THAT(watch_request("foo", Revision{1}).body, HasSubstr(R"("start_revision":"1")"));
  EXPECT_EQ(commit_request({.compares = {{"foo", Revision{0}}, {"foo", LeaseId{7}}},
                            .puts = {{"foo", std::string("\0\xFF", 2), LeaseId{7}}},
                            .deletes = {"bar"}})
                .body,
            R"({"compare":[{"target":"MOD","key":"Zm9v","mod_revision":"0"},)"
            R"({"target":"LEASE","key":"Zm9v","lease":"7"}],)"
            R"("success":[{"request_put":{"key":"Zm9v","value":"AP8=","lease":"7"}},)"
            R"({"request_delete_range":{"key":"YmFy"}}],)"
            R"("failure":[{"request_range":{"key":"Zm9v"}},{"request_range":{"key":"Zm9v"}}]})");
}

TEST(EtcdJson, ReadsARange) {
  const auto reading = parse_get(with(R"(,"kvs":[)" + kFoo + R"(],"count":"1","new":[{}])"), "foo");
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->revision, Revision{9});
  EXPECT_EQ(*reading->entry, (Entry{"foo", std::string("\0\xFF", 2), Revision{5}, {}}));
  EXPECT_FALSE(parse_get(with(""), "foo")->entry);
  const auto header = header_of(with(""));
  EXPECT_EQ(header->cluster, 10144879847569953045u);
  EXPECT_EQ(header->term, 2u);
}

TEST(EtcdJson, APageSaysWhetherMoreFollows) {
  const auto last = parse_list(with(R"(,"kvs":[)" + kFoo + "]"), "f");
  ASSERT_TRUE(last);
  EXPECT_FALSE(last->more);
  EXPECT_EQ(last->revision, Revision{9});
  EXPECT_EQ(last->entries.size(), 1u);
  EXPECT_TRUE(parse_list(with(R"(,"kvs":[)" + kFoo + R"(],"more":true)"), "f")->more);
}

TEST(EtcdJson, AStrangeRangeIsRefused) {
  for (const std::string& answer :
       {std::string(), std::string("{}"), std::string("nonsense"), std::string("[]"),
        std::string("\xFF"), with(R"(,"kvs":5)"), with(R"(,"kvs":[{}])"),
        with(R"(,"kvs":[{"key":"Zm9v"}])"), with(R"(,"kvs":[{"key":"*","mod_revision":"5"}])"),
        with(R"(,"kvs":[{"key":"YmFy","mod_revision":"5"}])"),
        with(R"(,"kvs":[{"key":"Zm9v","mod_revision":"-5"}])"),
        with(R"(,"kvs":[{"key":"Zm9v","mod_revision":"10"}])"),
        with(R"(,"kvs":[{"key":"Zm9v","mod_revision":"99999999999999999999"}])"),
        with(R"(,"kvs":[{"key":"Zm9v","mod_revision":"5","lease":"-1"}])"),
        with(R"(,"kvs":[)" + kFoo + "," + kFoo + "]"),
        R"({"header":{"revision":"-1","raft_term":"1"}})" + std::string(),
        std::string(R"({"header":{"revision":"1"}})")}) {
    EXPECT_EQ(code(parse_get(answer, "foo")), ErrorCode::kProtocol) << answer;
  }
  EXPECT_EQ(code(parse_list(with(R"(,"kvs":[)" + kFoo + "," + kFoo + "]"), "f")),
            ErrorCode::kProtocol);
  EXPECT_EQ(code(parse_list(with(R"(,"kvs":[)" + kFoo + "]"), "b")), ErrorCode::kProtocol);
  EXPECT_EQ(code(parse_list(with(R"(,"more":true)"), "f")), ErrorCode::kProtocol);
}

TEST(EtcdJson, DepthAndSizeAreBounded) {
  const std::string deep = R"({"x":)" + std::string(100000, '[');
  EXPECT_EQ(code(parse_get(deep, "foo")), ErrorCode::kProtocol);
  std::string deep_objects;
  for (int i = 0; i < 50000; ++i) deep_objects += R"({"x":)";
  EXPECT_EQ(code(parse_get(deep_objects, "foo")), ErrorCode::kProtocol);
  EXPECT_FALSE(parse_failure(500, deep_objects).refused);
  std::string many = R"(,"kvs":[{})";
  for (std::size_t i = 0; i < kAnswerObjectsMax; ++i) many += ",{}";
  EXPECT_THAT(parse_list(with(many + "]"), "foo").error().message, HasSubstr("too many objects"));
  EXPECT_EQ(code(parse_get(std::string(kAnswerBytesMax + 1, ' '), "foo")), ErrorCode::kProtocol);
}

TEST(EtcdJson, ReadsATransaction) {
  const Transaction transaction{.compares = {{"foo", Revision{1}}, {"foo", LeaseId{3}}},
                                .deletes = {"a"}};
  const auto applied = parse_commit(with(R"(,"succeeded":true,"responses":[{}])"), transaction);
  ASSERT_TRUE(applied);
  EXPECT_EQ(applied->outcome, CommitOutcome::kApplied);
  const std::string range =
      R"({"response_range":{"header":{"revision":"9"},"kvs":[)" + kFoo + "]}}";
  const auto refused =
      parse_commit(with(R"(,"responses":[)" + range + "," + range + "]"), transaction);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->outcome, CommitOutcome::kNotApplied);
  EXPECT_EQ(refused->present.size(), 1u);
  for (const std::string& rest :
       {std::string(), R"(,"responses":[)" + range + "]",
        R"(,"responses":[)" + range + R"(,{"response_range":{"kvs":[{}]}}])"}) {
    EXPECT_EQ(code(parse_commit(with(rest), transaction)), ErrorCode::kProtocol) << rest;
  }
  EXPECT_EQ(code(parse_commit(with(""), {.deletes = {"a"}})), ErrorCode::kProtocol);
}

TEST(EtcdJson, ReadsLeases) {
  const auto granted = parse_grant(with(R"(,"ID":"7","TTL":"5")"), 4s);
  ASSERT_TRUE(granted);
  EXPECT_EQ(granted->id, LeaseId{7});
  EXPECT_EQ(granted->ttl, 5s);
  EXPECT_EQ(code(parse_grant(with(R"(,"ID":"7","TTL":"3")"), 4s)), ErrorCode::kProtocol);
  EXPECT_EQ(code(parse_grant(with(R"(,"ID":"-7","TTL":"4")"), 4s)), ErrorCode::kProtocol);
  EXPECT_EQ(code(parse_grant(with(R"(,"ID":"7","TTL":"9000000000")"), 4s)), ErrorCode::kProtocol);
  EXPECT_EQ(parse_keep_alive(line(R"(,"ID":"7","TTL":"5")"), LeaseId{7})->ttl, 5s);
  EXPECT_EQ(code(parse_keep_alive(line(R"(,"ID":"7")"), LeaseId{7})), ErrorCode::kNotFound);
  EXPECT_EQ(code(parse_keep_alive(line(R"(,"ID":"8","TTL":"5")"), LeaseId{7})),
            ErrorCode::kProtocol);
  EXPECT_EQ(code(parse_keep_alive(line(R"(,"ID":"7","TTL":"-5")"), LeaseId{7})),
            ErrorCode::kProtocol);
  const std::string no_leader = R"({"error":{"grpc_code":14,"message":"etcdserver: no leader"}})";
  EXPECT_EQ(code(parse_keep_alive(no_leader, LeaseId{7})), ErrorCode::kUnavailable);
  EXPECT_EQ(stream_header_of(line(""))->term, 2u);
}

TEST(EtcdJson, OnlyWhatEtcdSaysItRefusedIsRefused) {
  const auto failure = [](const std::string& grpc, const std::string& words) {
    return parse_failure(
        400, R"({"error":")" + words + R"(","message":")" + words + R"(","code":)" + grpc + "}");
  };
  const auto gone = failure("5", "etcdserver: requested lease not found");
  EXPECT_TRUE(gone.refused);
  EXPECT_EQ(gone.error.code, ErrorCode::kNotFound);
  EXPECT_THAT(gone.error.message, HasSubstr("requested lease not found"));
  EXPECT_EQ(failure("8", "etcdserver: mvcc: database space exceeded").error.code,
            ErrorCode::kNoSpace);
  EXPECT_EQ(failure("8", "etcdserver: too many requests").error.code, ErrorCode::kLimit);
  EXPECT_TRUE(failure("11", "compacted").refused);
  for (const char* grpc : {"14", "4", "2", "13", "1", "0", "-3", "99"}) {
    const auto lost = failure(grpc, "etcdserver: request timed out");
    EXPECT_FALSE(lost.refused) << grpc;
    EXPECT_EQ(lost.error.code, ErrorCode::kUnavailable) << grpc;
  }
  for (const char* text : {"", "{}", "Not Found", R"({"code":5})", R"({"message":5,"code":5})",
                           R"({"error":{"grpc_code":"x","message":"y"}})"}) {
    EXPECT_FALSE(parse_failure(404, text).refused) << text;
  }
}

TEST(EtcdJson, ReadsALineOfAWatch) {
  const auto watch =
      parse_watch_line(line(R"(,"fragment":true,"events":[{"kv":)" + kFoo +
                            R"(},{"type":"DELETE","kv":{"key":"Zm9v","mod_revision":"6"}}])"),
                       "fo");
  ASSERT_TRUE(watch);
  EXPECT_TRUE(watch->fragment);
  ASSERT_EQ(watch->changes.size(), 2u);
  EXPECT_FALSE(watch->changes[0].deleted);
  EXPECT_TRUE(watch->changes[1].deleted);
  EXPECT_EQ(watch->changes[1].entry, (Entry{"foo", "", Revision{6}, {}}));

  const auto compacted = parse_watch_line(
      R"({"result":{"header":{"cluster_id":"1","raft_term":"2"},"canceled":true,"compact_revision":"3"}})",
      "fo");
  ASSERT_TRUE(compacted);
  EXPECT_TRUE(compacted->canceled);
  EXPECT_EQ(compacted->compacted, Revision{3});
  EXPECT_TRUE(parse_watch_line(line(R"(,"created":true)"), "fo")->created);
}

TEST(EtcdJson, AStrangeLineOfAWatchIsRefused) {
  for (const std::string& text :
       {std::string("{}"), std::string(R"({"error":{"grpc_code":14,"message":"no leader"}})"),
        line(R"(,"events":[{}])"), line(R"(,"events":[{"type":"OTHER","kv":)" + kFoo + "}]"),
        line(R"(,"events":[{"kv":{"key":"YmFy","mod_revision":"6"}}])"),
        line(R"(,"events":[{"kv":{"key":"Zm9v","mod_revision":"6"}},{"kv":)" + kFoo + "}]"),
        line(R"(,"compact_revision":"-1")")}) {
    EXPECT_FALSE(parse_watch_line(text, "fo")) << text;
  }
}

}  // namespace
}  // namespace mariner::manager
