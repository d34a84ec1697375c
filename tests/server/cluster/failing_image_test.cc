// A volume of two images, one on a disk that fails while its node lives; the logger, the test
// plays.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "replication/coordinator_host.h"
#include "server/cluster/storage_part.h"
#include "tests/server/cluster/letters_base.h"
#include "tests/server/cluster/memory_promises.h"
#include "tests/server/volume/asked_history.h"
#include "tests/server/volume/inline_worker.h"
#include "tests/server/volume/telling_disk.h"
#include "tests/support/faulty_disk.h"
#include "tests/support/manual_executor.h"

namespace mariner::cluster {
namespace {

using namespace std::chrono_literals;
using replication::CoordinatorHost;
using replication::NodeId;
using test::AskedHistory;

constexpr VolumeId kVolume{7};
constexpr Epoch kEpoch{1};
constexpr NodeId kMaster{1};
constexpr NodeId kMirror{2};
constexpr NodeId kLogger{3};
constexpr std::uint64_t kBlocks = 16;

struct Node {
  explicit Node(Executor& executor)
      : disk(executor, {.size_bytes = kBlocks * kBlockBytes}),
        worker(executor),
        promises(executor) {
    part = std::make_unique<StoragePart>(
        std::make_unique<test::TellingDisk>(disk, [](ByteRange, bool) {}),
        replication::StorageRole::Start{kVolume, {}, {}}, volume::Storage::Options{},
        StoragePart::Parts{history, &other, worker, executor, promises}, StoragePart::Events{});
  }
  // Nothing is stored that this volume has not written, and nothing is anybody's base.
  void answer() {
    while (!history.locates.empty()) {
      AskedHistory::Locate asked = AskedHistory::next(history.locates);
      volume::History::Located none;
      for (const volume::History::Lookup& lookup : asked.lookups) {
        none.runs.push_back({lookup.range, volume::PastRun::Source::kZero, false, {}});
      }
      asked.done(std::move(none));
    }
    while (!history.changes.empty()) {
      AskedHistory::Changed asked = AskedHistory::next(history.changes);
      asked.portion(std::vector<BlockRange>{{{0}, {1}}});
      asked.done({});
    }
  }

  test::FaultyDisk disk;
  test::InlineWorker worker;
  AskedHistory history;
  test::LettersBase other;
  MemoryPromises promises;
  std::unique_ptr<StoragePart> part;
  std::optional<replication::ConnectionId> connection;
};

class FailingImageTest : public ::testing::Test, private CoordinatorHost::Transport {
 protected:
  void SetUp() override {
    executor_.post([this] { coordinator_.logger_connected(kLogger); });
    connect(kMaster);
    connect(kMirror);
    pass(5s);
  }
  ~FailingImageTest() override {
    coordinator_.end();
    for (auto& [id, node] : nodes_) {
      if (node.connection) node.part->host().closed(*node.connection);
      node.part->close();
    }
    pass(5s);
    for (auto& [id, node] : nodes_) EXPECT_TRUE(node.part->idle());
  }
  // A write a second.
  void pass(std::chrono::seconds time, bool writes = false) {
    for (; time.count() > 0; time -= 1s) {
      if (writes) write();
      for (int part = 0; part < 10; ++part) {
        executor_.advance(100ms);
        for (auto& [id, node] : nodes_) node.answer();
        executor_.run_ready();
      }
      if (wants_room_) coordinator_.received(kLogger, replication::RoomWanted{kVolume, kEpoch});
    }
  }
  void write() {
    ASSERT_TRUE(coordinator_.ready());
    replication::WriteRequest request;
    request.extent = {{0}, {1}};
    const Payload payload = Payload::allocate(kBlockBytes);
    request.payload = {payload, 0, payload.size()};
    coordinator_.submit(std::move(request), [this](const auto& result) {
      EXPECT_TRUE(result);
      ++answered_;
    });
  }
  [[nodiscard]] SequenceNumber settled() const { return coordinator_.role().settled(); }

  test::ManualExecutor executor_;
  std::map<NodeId, Node> nodes_ = make_nodes(executor_);
  SequenceNumber frontier_;  // as the logger was told
  bool wants_room_ = false;
  int answered_ = 0;

 private:
  static std::map<NodeId, Node> make_nodes(Executor& executor) {
    std::map<NodeId, Node> nodes;
    nodes.try_emplace(kMaster, executor);
    nodes.try_emplace(kMirror, executor);
    return nodes;
  }
  void connect(NodeId id) {
    executor_.after(50ms, [this, id] {
      nodes_.at(id).connection =
          nodes_.at(id).part->host().accept([this, id](const replication::FromStorage& message) {
            executor_.post([this, id, message] { coordinator_.received(id, message); });
          });
      coordinator_.storage_connected(id);
    });
  }
  void answer(replication::FromLogger message) {
    executor_.post([this, message] { coordinator_.received(kLogger, message); });
  }
  void send_log(NodeId /*node*/, const replication::ToLogger& message) override {
    if (std::holds_alternative<replication::OpenLog>(message)) {
      return answer(replication::LogOpened{kVolume, kEpoch, {}, {}, {}, {}, {}});
    }
    if (const auto* write = std::get_if<replication::WriteMessage>(&message)) {
      frontier_ = std::max(frontier_, write->frontier);
      return answer(replication::Logged{kVolume, kEpoch, write->stamp.sequence});
    }
    if (const auto* lost = std::get_if<replication::VoidMessage>(&message)) {
      return answer(replication::Logged{kVolume, kEpoch, lost->last});
    }
    if (const auto* frontier = std::get_if<replication::FrontierMessage>(&message)) {
      frontier_ = std::max(frontier_, frontier->frontier);
    }
  }
  void send_storage(NodeId id, const replication::ToStorage& message) override {
    Node& node = nodes_.at(id);
    if (node.connection) node.part->host().received(*node.connection, message);
  }
  void reopen_log(NodeId /*node*/, const Error& why) override { ADD_FAILURE() << to_string(why); }
  void reopen_storage(NodeId id, const Error& /*why*/) override {
    Node& node = nodes_.at(id);
    if (node.connection) node.part->host().closed(*std::exchange(node.connection, std::nullopt));
    connect(id);
  }
  void fetch(SequenceNumber /*from*/, SequenceNumber /*to*/,
             UniqueFunction<void(Result<replication::LogSource::Portion>)> /*done*/) override {}

  CoordinatorHost coordinator_{
      {kVolume, kEpoch, {kMaster, kMirror}, kMaster, kLogger}, {}, executor_, *this, {}};
};

TEST_F(FailingImageTest, TheLogNeedNotKeepWhatTheMirrorLacks) {
  pass(10s, true);
  pass(5s);
  EXPECT_EQ(frontier_, settled());
  nodes_.at(kMirror).disk.fail_writes(1'000'000, test::FaultyDisk::Remains::kNothing);
  wants_room_ = true;
  pass(25s, true);
  EXPECT_GE(frontier_.value + 10, settled().value) << "the master's image has it";
  EXPECT_EQ(answered_, 35);
  // It works again.
  nodes_.at(kMirror).disk.fail_writes(0, test::FaultyDisk::Remains::kNothing);
  wants_room_ = false;
  pass(90s);
  EXPECT_EQ(nodes_.at(kMirror).part->storage().durable(), settled());
}

TEST_F(FailingImageTest, TheLogKeepsWhatNoImageHas) {
  pass(10s, true);
  pass(5s);
  const SequenceNumber before = frontier_;
  for (auto& [id, node] : nodes_) {
    node.disk.fail_writes(1'000'000, test::FaultyDisk::Remains::kNothing);
  }
  wants_room_ = true;
  pass(60s, true);
  EXPECT_EQ(frontier_, before);
  for (auto& [id, node] : nodes_) node.disk.fail_writes(0, test::FaultyDisk::Remains::kNothing);
  pass(30s);
  EXPECT_EQ(frontier_, settled());
}

}  // namespace
}  // namespace mariner::cluster
