#include <gmock/gmock.h>

#include <algorithm>

#include "server/node/cluster_control.h"
#include "tests/server/node/cluster_node_fixture.h"
#include "tests/server/node/initiator_session.h"

namespace mariner::node {
namespace {

using ::testing::HasSubstr;

class ClusterPromotionTest : public testing::ClusterNodeFixture {
 protected:
  ClusterPromotionTest()
      : ClusterNodeFixture({{"a", {Role::kTarget, Role::kStorage}},
                            {"b", {Role::kTarget, Role::kStorage}},
                            {"c", {Role::kLogger}}}) {
    for (const std::size_t member : {0, 1}) configure_volume(member, "c", {"a", "b"});
  }
  void start_all() {
    for (const std::size_t member : {2, 0, 1}) start(member);
    ASSERT_TRUE(eventually([&] { return node(0).serves(kVolume) || node(1).serves(kVolume); }));
    first_ = node(0).serves(kVolume) ? 0 : 1;
    second_ = 1 - first_;
    ASSERT_TRUE(eventually([&] { return all_have_it(); }));
  }
  bool all_have_it() {
    const api::ReplicatedVolume replicas = node(first_).replicas(kVolume);
    return replicas.replicas(1).caught_up() && replicas.replicas(2).caught_up();
  }
  Result<api::Promotion> promote(std::size_t asked, const std::string& to, bool dry_run = false,
                                 const std::string& volume = kVolume) {
    api::PromoteRequest request;
    request.set_volume(volume);
    request.set_node(to);
    request.set_dry_run(dry_run);
    return node(asked).ask(&ClusterControl::node_promote, request);
  }
  std::string refused(std::size_t asked, const std::string& to, ErrorCode code,
                      const std::string& volume = kVolume) {
    const Result<api::Promotion> answer = promote(asked, to, false, volume);
    if (answer) return "it was done";
    EXPECT_EQ(answer.error().code, code);
    return answer.error().message;
  }
  static std::string name(std::size_t member) {
    return std::string(1, static_cast<char>('a' + member));
  }

  std::size_t first_ = 0;
  std::size_t second_ = 1;
};

TEST_F(ClusterPromotionTest, ANodeServesWhenItHasAnswered) {
  start_all();
  write(3, 'x', first_);
  const Result<api::Promotion> planned = promote(2, name(second_), true);
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_FALSE(planned->already());
  EXPECT_TRUE(node(first_).serves(kVolume));

  const Result<api::Promotion> done = promote(2, name(second_));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_TRUE(node(second_).serves(kVolume));
  EXPECT_EQ(done->volume(), kVolume);
  EXPECT_EQ(done->node(), name(second_));
  EXPECT_EQ(done->from(), name(first_));
  EXPECT_GT(done->epoch(), planned->epoch());
  EXPECT_FALSE(done->already());
  EXPECT_EQ(read(3, second_), 'x');
  ASSERT_TRUE(eventually([&] { return node(2).replicas(kVolume).server() == name(second_); }));

  const Result<api::Promotion> again = promote(second_, "");  // itself
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->already());
  EXPECT_EQ(again->epoch(), done->epoch());
}

TEST_F(ClusterPromotionTest, WhatIsNotPossibleIsRefusedByName) {
  start_all();
  EXPECT_THAT(refused(0, "b", ErrorCode::kNotFound, "db2"), HasSubstr("no volume db2"));
  EXPECT_THAT(refused(0, "z", ErrorCode::kNotFound), HasSubstr("no node z"));
  EXPECT_THAT(refused(0, "c", ErrorCode::kInvalidArgument), HasSubstr("expected a or b"));
  EXPECT_THAT(refused(2, "", ErrorCode::kInvalidArgument), HasSubstr("node c may not serve db1"));
  stop(second_);
  EXPECT_THAT(refused(first_, name(second_), ErrorCode::kUnavailable), HasSubstr("is not alive"));
  EXPECT_TRUE(node(first_).serves(kVolume));
  etcd().kill(0);
  ASSERT_TRUE(eventually([&] { return !node(first_).serves(kVolume); }));
  EXPECT_THAT(refused(first_, name(first_), ErrorCode::kUnavailable),
              HasSubstr("store does not answer"));
}

TEST_F(ClusterPromotionTest, WhoServesNoHostsIsNotPromoted) {
  config(1).roles = {Role::kStorage};
  for (const std::size_t member : {2, 0, 1}) start(member);
  ASSERT_TRUE(comes_to_serve(0));
  ASSERT_TRUE(eventually([&] { return get("/mariner/alive/2").has_value(); }));
  // Until it is known that b is alive, that is what it says.
  ASSERT_TRUE(eventually([&] {
    const Result<api::Promotion> answer = promote(0, "b");
    return !answer && answer.error().code != ErrorCode::kUnavailable;
  }));
  EXPECT_THAT(refused(0, "b", ErrorCode::kInvalidArgument), HasSubstr("role \"target\""));
}

TEST_F(ClusterPromotionTest, WhatGoesOnWhenTheNodeStopsIsAnswered) {
  start_all();
  ASSERT_TRUE(eventually([&] {
    const auto status = node(second_).ask(&ClusterControl::cluster_status);
    return status && std::ranges::all_of(status->nodes(), &api::ClusterNode::alive);
  }));
  // A wish that nobody follows: who coordinates is not there, and its lease goes on.
  auto record = manager::decode_volume_record(VolumeId{1}, *get("/mariner/volumes/1"));
  ASSERT_TRUE(record);
  put("/mariner/alive/9", "somebody");
  record->coordinator = {9};
  record->epoch = record->epoch.next();
  put("/mariner/volumes/1", manager::encode(*record));
  const std::string answer = node(second_).on_loop([this](ClusterNode& node) {
    ClusterControl control(node);
    std::string said = "nothing";
    api::PromoteRequest request;
    request.set_volume(kVolume);
    control.node_promote(request, [&said](const Result<api::Promotion>& r) {
      said = r ? "it was done" : r.error().message;
    });
    EXPECT_EQ(said, "nothing");
    control.stop();
    control.stop();
    return said;
  });
  EXPECT_EQ(answer, "the node is stopping");
}

TEST_F(ClusterPromotionTest, AStopHandsOverWhileHostsAreLoggedIn) {
  start_all();
  write(3, 'x', first_);
  testing::InitiatorSession host(node(first_).ask(&ClusterControl::status)->portals(0), kIqn);
  host.use();
  const std::uint64_t epoch = node(second_).replicas(kVolume).epoch();
  stop(first_);
  EXPECT_TRUE(node(second_).serves(kVolume)) << "before the stop has ended";
  EXPECT_GT(node(second_).replicas(kVolume).epoch(), epoch);
  EXPECT_EQ(read(3, second_), 'x');
  EXPECT_EQ(told("state=standby", first_) > 0, true) << "hosts were told where to go";
}

}  // namespace
}  // namespace mariner::node
