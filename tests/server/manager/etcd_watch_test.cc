#include "server/manager/etcd_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/manager/etcd_members.h"
#include "tests/server/iscsi/asio_executor.h"
#include "tests/server/manager/fake_member.h"
#include "tests/server/manager/store_rig.h"

namespace mariner::manager {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Change at(std::uint64_t revision, const std::string& key = "k") {
  return {false, {key, "v", Revision{revision}, {}}};
}
WatchLine line(std::vector<Change> changes, std::uint64_t newest, bool fragment = false) {
  return {.header = {1, 1, Revision{newest}}, .fragment = fragment, .changes = std::move(changes)};
}
std::vector<std::uint64_t> revisions(const Result<std::vector<Change>>& changes) {
  std::vector<std::uint64_t> numbers;
  EXPECT_TRUE(changes);
  if (!changes) return numbers;
  for (const Change& change : *changes) numbers.push_back(change.entry.revision.value);
  return numbers;
}

TEST(WatchCursor, TellsNothingTwice) {
  WatchCursor cursor(Revision{5});
  EXPECT_THAT(revisions(cursor.take(line({at(4), at(5), at(5, "l"), at(7)}, 9))),
              ElementsAre(5, 5, 7));
  EXPECT_EQ(cursor.next(), Revision{8});
  cursor.reconnected();
  EXPECT_THAT(revisions(cursor.take(line({at(7)}, 9))), IsEmpty());
  // What was told again says nothing about how far the store is.
  EXPECT_EQ(cursor.next(), Revision{8});
  EXPECT_THAT(revisions(cursor.take(line({at(7), at(8)}, 9))), ElementsAre(8));
}

TEST(WatchCursor, APieceMayEndWithinARevision) {
  WatchCursor cursor(Revision{1});
  EXPECT_THAT(revisions(cursor.take(line({at(1), at(2)}, 9, true))), ElementsAre(1));
  EXPECT_EQ(cursor.next(), Revision{2});
  EXPECT_THAT(revisions(cursor.take(line({at(2, "l")}, 9, true))), IsEmpty());
  cursor.reconnected();  // it comes again, from 2 on
  EXPECT_THAT(revisions(cursor.take(line({at(2)}, 9, true))), IsEmpty());
  EXPECT_THAT(revisions(cursor.take(line({at(2, "l"), at(3)}, 9))), ElementsAre(2, 2, 3));
  EXPECT_EQ(cursor.next(), Revision{4});
}

TEST(WatchCursor, OnlyAWordOfProgressMovesItWithoutChanges) {
  WatchCursor cursor(Revision{5});
  WatchLine created = line({}, 9);
  created.created = true;
  EXPECT_THAT(revisions(cursor.take(std::move(created))), IsEmpty());
  EXPECT_EQ(cursor.next(), Revision{5});
  EXPECT_THAT(revisions(cursor.take(line({}, 9))), IsEmpty());
  EXPECT_EQ(cursor.next(), Revision{10});
  EXPECT_THAT(revisions(cursor.take(line({}, 3))), IsEmpty());
  EXPECT_EQ(cursor.next(), Revision{10});
}

TEST(WatchCursor, GapsAndEndsAreToldApart) {
  WatchCursor cursor(Revision{5});
  WatchLine canceled;
  canceled.canceled = true;
  EXPECT_EQ(cursor.take(canceled).error().code, ErrorCode::kUnavailable);
  canceled.compacted = Revision{6};
  EXPECT_EQ(cursor.take(canceled).error().code, ErrorCode::kOutsideWindow);
  EXPECT_THAT(revisions(cursor.take(line({at(7)}, 9, true))), IsEmpty());
  EXPECT_EQ(cursor.take(line({at(6)}, 9)).error().code, ErrorCode::kUnavailable);
}

TEST(WatchCursor, ARevisionThatDoesNotEndIsTooLarge) {
  WatchCursor cursor(Revision{5});
  const std::vector<Change> many(kHeldChangesMax, at(5));
  EXPECT_THAT(revisions(cursor.take(line(many, 9, true))), IsEmpty());
  EXPECT_EQ(cursor.take(line({at(5)}, 9, true)).error().code, ErrorCode::kLimit);

  WatchCursor bytes(Revision{5});
  Change large = at(5);
  large.entry.value = std::string(kHeldBytesMax, 'v');
  EXPECT_EQ(bytes.take(line({large}, 9, true)).error().code, ErrorCode::kLimit);
}

// A watch of a member that says what a test wants, each connection something else.
class EtcdWatchTest : public testing::Test {
 protected:
  static std::string event(int revision) {
    const std::string n = std::to_string(revision);
    return R"({"result":{"header":{"cluster_id":"1","revision":")" + n +
           R"(","raft_term":"1"},"events":[{"kv":{"key":"aw==","mod_revision":")" + n + "\"}}]}}\n";
  }
  void serve(std::vector<std::string> connections) {
    member_ = std::make_unique<FakeMember>(
        io_, [this, connections = std::move(connections)](auto&, auto& body) {
          bodies_.push_back(body);
          const std::size_t n = std::min(bodies_.size(), connections.size()) - 1;
          return FakeMember::Reply{connections[n], bodies_.size() < connections.size()};
        });
    members_ = std::make_unique<EtcdMembers>(std::vector{member_->endpoint()});
    watch_ = std::make_shared<EtcdWatch>(
        io_, executor_, *members_,
        EtcdWatchOptions{
            .prefix = "k", .from = Revision{5}, .answer_timeout = 500ms, .silence = 200ms},
        BackoffTimes{.least = 1ms, .most = 5ms}, recorder_);
    watch_->start();
  }
  ~EtcdWatchTest() override {
    watch_->stop();
    io_.restart();
    io_.run_for(20ms);
  }
  void run_until(const std::function<bool()>& holds) {
    const auto end = std::chrono::steady_clock::now() + 5s;
    while (!holds() && std::chrono::steady_clock::now() < end) {
      io_.restart();
      io_.run_one_for(5ms);
    }
    EXPECT_TRUE(holds());
  }

  boost::asio::io_context io_{1};
  iscsi::AsioExecutor executor_{io_};
  std::vector<std::string> bodies_;
  std::unique_ptr<FakeMember> member_;
  std::unique_ptr<EtcdMembers> members_;
  Recorder recorder_;
  std::shared_ptr<EtcdWatch> watch_;
};

TEST_F(EtcdWatchTest, GoesOnWhereItWasThroughWhateverAMemberSays) {
  const std::string head = FakeMember::stream_head();
  serve({"nonsense", head + FakeMember::chunk(event(5)) + FakeMember::chunk("half a l"),
         FakeMember::http("{}", "503 Service Unavailable"),
         head + FakeMember::chunk(R"({"error":{"grpc_code":14,"message":"etcdserver: no leader"}})"
                                  "\n"),
         head + FakeMember::chunk(event(5) + event(6)), head + FakeMember::chunk(event(7))});
  run_until([this] { return recorder_.changes.size() >= 3; });
  ASSERT_EQ(recorder_.changes.size(), 3u);
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(recorder_.changes[i].entry.revision, Revision{5 + i});
  }
  EXPECT_THAT(bodies_[0], HasSubstr(R"("start_revision":"4")"));
  EXPECT_THAT(bodies_[2], HasSubstr(R"("start_revision":"5")"));
  EXPECT_THAT(bodies_[5], HasSubstr(R"("start_revision":"6")"));
  // Silence is the end of a connection, too.
  const std::size_t before = bodies_.size();
  run_until([&] { return bodies_.size() > before; });
}

TEST_F(EtcdWatchTest, AnotherClusterIsNotBelieved) {
  std::string other = event(5);
  other.replace(other.find(R"("1")"), 3, R"("2")");
  const std::string head = FakeMember::stream_head();
  serve({head + FakeMember::chunk(event(5)), head + FakeMember::chunk(other),
         head + FakeMember::chunk(event(6))});
  run_until([this] { return recorder_.changes.size() >= 2; });
  EXPECT_EQ(recorder_.changes[1].entry.revision, Revision{6});
  EXPECT_GE(bodies_.size(), 3u);
}

TEST_F(EtcdWatchTest, WhoIsNeverUnderstoodIsGivenUp) {
  const std::string strange = FakeMember::stream_head() + FakeMember::chunk("{}{\n");
  serve({strange, FakeMember::http("{}", "503 Service Unavailable"), strange});
  run_until([this] { return recorder_.why.has_value(); });
  EXPECT_EQ(recorder_.why->code, ErrorCode::kProtocol);
  // Only those in a row count.
  EXPECT_EQ(bodies_.size(), 2u + kMisunderstoodMax);
}

TEST_F(EtcdWatchTest, AGapEndsIt) {
  serve({FakeMember::stream_head() +
         FakeMember::chunk(R"({"result":{"canceled":true,"compact_revision":"7"}})"
                           "\n")});
  run_until([this] { return recorder_.why.has_value(); });
  EXPECT_EQ(recorder_.why->code, ErrorCode::kOutsideWindow);
  io_.restart();
  io_.run_for(50ms);
  EXPECT_EQ(bodies_.size(), 1u);
}

}  // namespace
}  // namespace mariner::manager
