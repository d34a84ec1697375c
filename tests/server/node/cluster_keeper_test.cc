#include "server/node/cluster_keeper.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/server/node/cluster_node_fixture.h"

namespace mariner::node {
namespace {

using testing::BlockClient;

// A log with room for some of what is written.
class ClusterKeeperTest : public testing::ClusterNodeFixture {
 protected:
  ClusterKeeperTest()
      : ClusterNodeFixture({{"a", {Role::kTarget, Role::kStorage}},
                            {"c", {Role::kLogger}},
                            {"b", {Role::kTarget, Role::kStorage}}}) {}
  void SetUp() override {
    ClusterNodeFixture::SetUp();
    if (IsSkipped()) return;
    configure_volume(0, "c", {"a", "b"});
    config(0).volumes[0].window = std::chrono::seconds(1);
    config(1).log.max_size = ByteSize{5 * kTrackSizeMin.bytes};
    config(1).log.on_full = OnFull::kStopWrites;  // or windows and views give way
    start(1);
    start(0);
    ASSERT_TRUE(comes_to_serve());
    start(2);
  }
  // More than the log has room for. Each block of the volume but the first gets new contents again
  // and again.
  void fill() {
    const std::uint64_t blocks = kVolumeBytes / kBlockBytes;
    const std::uint64_t rounds = 3 * kTrackSizeMin.bytes / kVolumeBytes;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      for (std::uint64_t block = 1; block < blocks; ++block) {
        last_ = static_cast<char>('a' + (round + block) % 26);
        write(block, last_);
        ASSERT_FALSE(HasFailure());
      }
    }
  }
  [[nodiscard]] std::uint64_t oldest() { return node(1).show(kVolume)->oldest().sequence(); }

  // Every image has everything.
  bool healed() {
    const api::ReplicatedVolume all = node().replicas(kVolume);
    return std::ranges::all_of(all.replicas(), [&](const api::Replica& replica) {
      return replica.role() == "logger" ||
             (replica.caught_up() && replica.durable() >= all.replicas(0).settled());
    });
  }
  static std::string contents(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  char last_ = 0;
};

TEST_F(ClusterKeeperTest, TheLogGivesUpWhatNoWindowNeedsAndNothingElse) {
  write(0, 'x');
  fill();
  EXPECT_TRUE(eventually([&] { return oldest() > 0; }));
  const std::uint64_t last = kVolumeBytes / kBlockBytes - 1;
  EXPECT_EQ(read(0), 'x') << "which the image alone holds by now";
  EXPECT_EQ(read(last), last_);
  // What only the image holds is logged again before it is overwritten.
  api::ExposeRequest request;
  request.set_volume(kVolume);
  const Result<api::View> view = node().ask(&ClusterControl::view_expose, request);
  ASSERT_TRUE(view) << to_string(view.error());
  write(0, 'y');
  EXPECT_TRUE(eventually([&] { return node().show(kVolume)->unapplied_bytes() == 0; }));
  EXPECT_EQ(read(0), 'y');
  EXPECT_EQ(BlockClient::byte_of(node().client(0).read(view->iqn(), 0)), 'x');
  // Also behind a restart of the logger, whose log begins later by now.
  stop(1);
  start(1);
  ASSERT_TRUE(comes_to_serve());
  EXPECT_TRUE(eventually(
      [&] { return BlockClient::byte_of(node().client(0).read(view->iqn(), 0)) == 'x'; }));
  EXPECT_EQ(read(0), 'y');
}

TEST_F(ClusterKeeperTest, AnImageWhoseNodeWasAwayForTooLongIsBuiltAnew) {
  config(0).cluster.absent_max = std::chrono::seconds(1);
  write(2, 'w');
  ASSERT_TRUE(eventually([&] { return healed(); })) << "it has an image";
  stop(2);
  stop(0);
  start(0);
  ASSERT_TRUE(comes_to_serve());
  write(0, 'x');
  fill();
  ASSERT_TRUE(eventually([&] { return oldest() > 0; })) << "the log waits for nobody";
  start(2);
  EXPECT_TRUE(eventually([&] { return told("the image is made anew", 2) == 1; }));
  write(1, 'z');
  ASSERT_TRUE(eventually([&] { return healed(); })) << node().replicas(kVolume).ShortDebugString();
  EXPECT_EQ(contents(path("state/images/1.raw", 2)), contents(path("state/images/1.raw")));
  EXPECT_EQ(told("the image is made anew", 2), 1u);
  EXPECT_EQ(read(0), 'x');
}

TEST_F(ClusterKeeperTest, AnImageThatIsLostIsBuiltFromAnotherAndTheLog) {
  write(0, 'x');
  fill();
  ASSERT_TRUE(eventually([&] { return oldest() > 0; }));
  stop(2);
  write(1, 'z');
  const std::string lost = path("state/images/1.raw", 2);
  ASSERT_TRUE(std::filesystem::remove(lost));
  start(2);
  ASSERT_TRUE(eventually([&] { return healed(); })) << node().replicas(kVolume).ShortDebugString();
  EXPECT_EQ(contents(lost), contents(path("state/images/1.raw")));
  EXPECT_EQ(contents(lost)[0], 'x');
  stop(0);
  ASSERT_TRUE(comes_to_serve(2));
  EXPECT_EQ(read(0, 2), 'x');
  EXPECT_EQ(read(1, 2), 'z');
}

}  // namespace
}  // namespace mariner::node
