#include "server/manager/etcd_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/manager/fake_member.h"
#include "tests/server/manager/store_rig.h"

namespace mariner::manager {
namespace {

using namespace std::chrono_literals;

// Three real members.
class EtcdStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!EtcdCluster::installed()) GTEST_SKIP() << "Debian's etcd-server is not installed";
    static EtcdCluster cluster(3);
    cluster_ = &cluster;
    rig_ = make(cluster.endpoints());
    ASSERT_TRUE(rig_->ready());
    prefix_ = std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + "/";
  }
  static std::unique_ptr<EtcdRig> make(std::vector<Endpoint> endpoints) {
    return std::make_unique<EtcdRig>(
        EtcdStoreOptions{.endpoints = std::move(endpoints),
                         .calls = {.timeout = 2s, .attempt_timeout = 500ms},
                         .watch_silence = 1s});
  }
  // Commits prefix + name, once: what is unknown is looked up, and done again if it was not done.
  bool commit_once(EtcdRig& rig, const std::string& name) {
    for (int i = 0; i < 20; ++i) {
      const auto answer = rig.commit(
          {.compares = {{prefix_ + name, Revision{}}}, .puts = {{prefix_ + name, name}}});
      if (!answer) continue;
      if (answer->outcome == CommitOutcome::kApplied) return true;
      // An earlier attempt of ours: nobody else writes here.
      if (answer->outcome == CommitOutcome::kNotApplied) return true;
    }
    return false;
  }

  EtcdCluster* cluster_ = nullptr;
  std::unique_ptr<EtcdRig> rig_;
  std::string prefix_;
};

TEST_F(EtcdStoreTest, ALeaderIsKilledInTheMiddleOfAWatchAndOfTransactions) {
  Recorder recorder;
  const auto listing = rig_->list(prefix_);
  ASSERT_TRUE(listing);
  auto watch = rig_->store().watch(prefix_, listing->revision.next(), recorder);
  ASSERT_TRUE(watch);
  const std::size_t victim = rig_->leader();
  std::vector<std::string> names;
  for (int i = 100; i < 160; ++i) {
    if (i == 120) cluster_->kill(victim);
    if (i == 150) cluster_->start(victim);
    names.push_back(std::to_string(i));
    ASSERT_TRUE(commit_once(*rig_, names.back())) << i;
  }
  EXPECT_TRUE(rig_->wait([&] { return recorder.changes.size() >= names.size(); }, 5s));
  ASSERT_EQ(recorder.changes.size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(recorder.changes[i].entry.value, names[i]);
  }
  EXPECT_FALSE(recorder.why);
}

TEST_F(EtcdStoreTest, MembersAreStoppedForLessThanALease) {
  const auto lease = rig_->grant(5s);
  ASSERT_TRUE(lease);
  ASSERT_TRUE(rig_->put(prefix_ + "a", "1", lease->id));
  for (std::size_t i = 0; i < 3; ++i) cluster_->freeze(i);
  rig_->pass(1s);
  for (std::size_t i = 0; i < 3; ++i) cluster_->go_on(i);
  // They may have to elect a leader first.
  auto kept = rig_->keep_alive(lease->id);
  if (!kept) kept = rig_->keep_alive(lease->id);
  ASSERT_TRUE(kept) << to_string(kept.error());
  EXPECT_GT(kept->end(), lease->end());
  const auto reading = rig_->get(prefix_ + "a");
  ASSERT_TRUE(reading);
  EXPECT_TRUE(reading->entry);
}

TEST_F(EtcdStoreTest, MembersAreStoppedForLongerThanALease) {
  const auto lease = rig_->grant(1s);
  ASSERT_TRUE(lease);
  const auto bound = rig_->put(prefix_ + "a", "1", lease->id);
  ASSERT_TRUE(bound);
  Recorder recorder;
  auto watch = rig_->store().watch(prefix_, bound->revision.next(), recorder);
  ASSERT_TRUE(watch);
  rig_->pass(100ms);
  for (std::size_t i = 0; i < 3; ++i) cluster_->kill(i);
  const auto kept = rig_->keep_alive(lease->id);
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().code, ErrorCode::kUnavailable);
  const auto lost = rig_->put(prefix_ + "b", "1");
  ASSERT_FALSE(lost);  // it could not be sent: that is certain
  EXPECT_EQ(lost.error().code, ErrorCode::kUnavailable);
  EXPECT_GT(rig_->executor().monotonic_time(), lease->end());
  for (std::size_t i = 0; i < 3; ++i) cluster_->start(i);
  // The holder had to give up; etcd gives the lease its time anew, and ends it then.
  ASSERT_TRUE(rig_->wait([&] { return !recorder.changes.empty(); }, 10s));
  EXPECT_TRUE(recorder.changes[0].deleted);
  ASSERT_TRUE(rig_->ready());
  const auto late = rig_->keep_alive(lease->id);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kNotFound);
}

TEST_F(EtcdStoreTest, AMemberThatHangsIsLeft) {
  const std::size_t leading = rig_->leader();
  const std::size_t hanging = (leading + 1) % 3;
  // The one that hangs is asked first.
  auto endpoints = cluster_->endpoints();
  std::swap(endpoints[0], endpoints[hanging]);
  const auto rig = make(endpoints);
  const auto listing = rig->list(prefix_);
  ASSERT_TRUE(listing);
  Recorder recorder;
  auto watch = rig->store().watch(prefix_, listing->revision.next(), recorder);
  ASSERT_TRUE(watch);
  rig->pass(100ms);
  cluster_->freeze(hanging);
  EXPECT_TRUE(rig->get(prefix_ + "a"));
  EXPECT_TRUE(commit_once(*rig, "a"));
  EXPECT_TRUE(rig->wait([&] { return !recorder.changes.empty(); }, 5s));
  cluster_->go_on(hanging);
}

TEST_F(EtcdStoreTest, AMinorityAnswersNothing) {
  const std::size_t alone = (rig_->leader() + 1) % 3;
  const auto rig = make({cluster_->endpoints()[alone]});
  const auto listing = rig->list(prefix_);
  ASSERT_TRUE(listing);
  Recorder recorder;
  auto watch = rig->store().watch(prefix_, listing->revision.next(), recorder);
  ASSERT_TRUE(watch);
  for (std::size_t i = 0; i < 3; ++i) {
    if (i != alone) cluster_->kill(i);
  }
  const auto reading = rig->get(prefix_ + "a");
  ASSERT_FALSE(reading);
  EXPECT_EQ(reading.error().code, ErrorCode::kUnavailable);
  const auto answer = rig->put(prefix_ + "a", "1");
  // Refused for want of a leader, or taken and never answered.
  EXPECT_TRUE(!answer || answer->outcome == CommitOutcome::kUnknown);
  for (std::size_t i = 0; i < 3; ++i) {
    if (i != alone) cluster_->start(i);
  }
  ASSERT_TRUE(rig->ready());
  ASSERT_TRUE(rig->put(prefix_ + "b", "2"));
  ASSERT_TRUE(rig->wait(
      [&] { return !recorder.changes.empty() && recorder.changes.back().entry.value == "2"; }, 6s));
}

TEST_F(EtcdStoreTest, AnOldLeaderDoesNotRenewALease) {
  const std::size_t old = rig_->leader();
  const auto pinned = make({cluster_->endpoints()[old]});
  const auto lease = rig_->grant(2s);
  ASSERT_TRUE(lease);
  ASSERT_TRUE(rig_->put(prefix_ + "a", "1", lease->id));
  ASSERT_TRUE(pinned->keep_alive(lease->id));  // its connection stands
  cluster_->freeze(old);
  std::optional<Result<Lease>> kept;
  pinned->store().keep_alive(lease->id, [&](Result<Lease> answer) { kept = std::move(answer); });
  pinned->pass(1200ms);  // meanwhile another leads
  cluster_->go_on(old);
  ASSERT_TRUE(pinned->wait([&] { return kept.has_value(); }, 5s));
  // Whatever it says, what the holder counts with holds.
  while (*kept && rig_->executor().monotonic_time() < (*kept)->end() - 300ms) {
    const auto reading = rig_->get(prefix_ + "a");
    ASSERT_TRUE(reading);
    ASSERT_TRUE(reading->entry.has_value());
    rig_->pass(100ms);
  }
}

// What a member says that is not etcd, or not well.
TEST(EtcdStoreStrangers, AnswersThatAreNotUnderstoodLeaveACommitUnknown) {
  std::string body = "{}";
  boost::asio::io_context io(1);
  iscsi::AsioExecutor executor(io);
  FakeMember member(io, [&](auto&, auto&) { return FakeMember::Reply{FakeMember::http(body)}; });
  EtcdStore store(io, executor, {.endpoints = {member.endpoint()}});
  const auto wait = [&](const auto& result) {
    for (int i = 0; i < 400 && !result; ++i) {
      io.restart();
      io.run_one_for(5ms);
    }
    EXPECT_TRUE(result.has_value());
  };
  const auto commit = [&] {
    std::optional<Result<CommitAnswer>> result;
    store.commit({.deletes = {"a"}}, [&](auto answer) { result = std::move(answer); });
    wait(result);
    return result->value();
  };
  const auto get = [&] {
    std::optional<Result<Reading>> result;
    store.get("a", [&](auto answer) { result = std::move(answer); });
    wait(result);
    return std::move(*result);
  };
  EXPECT_EQ(commit().outcome, CommitOutcome::kUnknown);
  EXPECT_EQ(get().error().code, ErrorCode::kProtocol);
  body = R"({"header":{"cluster_id":"1","revision":"5","raft_term":"1"},"succeeded":true})";
  EXPECT_EQ(commit().outcome, CommitOutcome::kApplied);
  EXPECT_TRUE(get());
  // Its data were replaced by another cluster's.
  body = R"({"header":{"cluster_id":"2","revision":"5","raft_term":"1"},"succeeded":true})";
  EXPECT_EQ(commit().outcome, CommitOutcome::kUnknown);
  EXPECT_EQ(get().error().code, ErrorCode::kProtocol);
}

TEST(EtcdStoreStrangers, AListingComesInPagesOfOneRevision) {
  boost::asio::io_context io(1);
  iscsi::AsioExecutor executor(io);
  std::vector<std::string> asked;
  const auto page = [](const std::string& revision, const std::string& key, const char* more) {
    return R"({"header":{"cluster_id":"1","revision":")" + revision +
           R"(","raft_term":"1"},"kvs":[{"key":")" + key +
           R"(","value":"YQ==","mod_revision":"4"}],"more":)" + more + "}";
  };
  // The second listing's second page is one that was there.
  FakeMember member(io, [&](auto&, const std::string& body) {
    asked.push_back(body);
    const bool second = asked.size() == 2;
    return FakeMember::Reply{
        FakeMember::http(second ? page("7", "Zm9vYg==", "false") : page("5", "Zm9v", "true"))};
  });
  EtcdStore store(io, executor, {.endpoints = {member.endpoint()}});
  const auto list = [&] {
    std::optional<Result<Listing>> result;
    store.list("fo", [&](auto answer) { result = std::move(answer); });
    for (int i = 0; i < 400 && !result; ++i) {
      io.restart();
      io.run_one_for(5ms);
    }
    EXPECT_TRUE(result.has_value());
    return std::move(*result);
  };
  const auto whole = list();
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->revision, Revision{5});
  ASSERT_EQ(whole->entries.size(), 2u);
  EXPECT_EQ(whole->entries[0].key, "foo");
  EXPECT_EQ(whole->entries[1].key, "foob");
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_EQ(asked[0], list_request("fo").body);
  EXPECT_EQ(asked[1], list_request("fo", "foo", Revision{5}).body);
  EXPECT_EQ(list().error().code, ErrorCode::kProtocol);
  EXPECT_EQ(asked.size(), 4u);
}

TEST(EtcdStoreStrangers, ARenewalAcrossAChangeOfLeadersDoesNotCount) {
  boost::asio::io_context io(1);
  iscsi::AsioExecutor executor(io);
  int asked = 0;
  FakeMember member(io, [&](const std::string& path, auto&) {
    // Another leader from the second request on, and once more from the sixth on.
    const int term = asked < 1 ? 1 : asked < 5 ? 2 : 3;
    ++asked;
    const std::string head = R"({"header":{"cluster_id":"1","revision":"5","raft_term":")" +
                             std::to_string(term) + "\"}";
    return FakeMember::Reply{FakeMember::http(
        path == "/v3/lease/keepalive" ? R"({"result":)" + head + R"(,"ID":"7","TTL":"5"}})"
                                      : head + "}")};
  });
  EtcdStore store(io, executor, {.endpoints = {member.endpoint()}});
  std::optional<Result<Lease>> result;
  store.keep_alive(LeaseId{7}, [&](auto answer) { result = std::move(answer); });
  for (int i = 0; i < 400 && !result; ++i) {
    io.restart();
    io.run_one_for(5ms);
  }
  ASSERT_TRUE(result && *result);
  EXPECT_EQ((*result)->ttl, 5s);
  EXPECT_EQ(asked, 9);
}

TEST(EtcdStoreStrangers, WatchesAreCounted) {
  boost::asio::io_context io(1);
  iscsi::AsioExecutor executor(io);
  EtcdStore store(io, executor,
                  {.endpoints = {{.address = "127.0.0.1", .port = 1}}, .watches_max = 1});
  Recorder recorder;
  auto first = store.watch("a", Revision{1}, recorder);
  ASSERT_TRUE(first);
  const auto second = store.watch("a", Revision{1}, recorder);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kLimit);
  first->reset();
  EXPECT_TRUE(store.watch("a", Revision{1}, recorder));
}

}  // namespace
}  // namespace mariner::manager
