#include "server/volume/history_view.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/support/faulty_disk.h"
#include "tests/support/index_rig.h"
#include "tests/support/manual_executor.h"

namespace mariner::volume {
namespace {

class HistoryViewTest : public ::testing::Test {
 protected:
  HistoryViewTest() {
    logging::Record zero;
    zero.type = logging::RecordType::kZero;
    zero.sequence = {1};
    zero.time = {1};
    zero.extent = {{2}, {2}};
    index_.insert(zero, {1, 1, 0, 1, 0});
  }

  std::vector<Allocation> allocation(ByteRange range, const BaseMap* base) {
    std::optional<std::vector<Allocation>> out;
    allocation_at(index_.index(), range, SequenceNumber{1}, base,
                  [&](Result<std::vector<Allocation>> found) { out = *std::move(found); });
    executor_.run_ready();
    return out.value();
  }

  test::ManualExecutor executor_;
  test::FaultyDisk disk_{executor_, {.size_bytes = kBlockBytes}};
  logging::LogDisks disks_{disk_, logging::LogId{}};
  logging::LogReader log_{disks_};
  test::IndexRig index_{executor_};
  ZeroBase zeros_;
  BaseMap nowhere_{false};
  HistoryReader parent_{VolumeId{7}, index_.index(), log_, zeros_};
};

TEST_F(HistoryViewTest, ReadsPartsOfBlocks) {
  HistoryView view(1u << 20, parent_, index_.index(), SequenceNumber{1}, &nowhere_);
  EXPECT_EQ(view.size_bytes(), 1u << 20);
  std::optional<std::size_t> length;
  view.read({512, 8192}, [&](const Result<PayloadSlice>& read) {
    length = read->bytes().size();
    EXPECT_EQ(read->offset, 512u);
  });
  EXPECT_EQ(length, 8192u);
  EXPECT_TRUE(view.idle());
}

TEST_F(HistoryViewTest, AllocationJoinsWhatIsAlike) {
  // Zeros over a base of zeros: nothing is stored anywhere.
  EXPECT_EQ(allocation({0, 8 * kBlockBytes}, &nowhere_).size(), 1u);
  // Over a base that holds data: stored, zeros, stored; cut at the bytes that were asked for.
  const auto parts = allocation({512, 6 * kBlockBytes}, nullptr);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].range, (ByteRange{512, 2 * kBlockBytes - 512}));
  EXPECT_TRUE(parts[0].mapped);
  EXPECT_EQ(parts[1].range, (ByteRange{2 * kBlockBytes, 2 * kBlockBytes}));
  EXPECT_FALSE(parts[1].mapped);
  EXPECT_EQ(parts[2].range.end(), 512 + 6 * kBlockBytes);
}

TEST_F(HistoryViewTest, TellsItsAllocation) {
  HistoryView view(1u << 20, parent_, index_.index(), SequenceNumber{1}, nullptr);
  std::vector<Allocation> parts;
  bool idle_then = false;
  view.allocation({512, 6 * kBlockBytes}, [&](Result<std::vector<Allocation>> r) {
    ASSERT_TRUE(r.has_value());
    parts = *std::move(r);
    idle_then = view.idle();
  });
  EXPECT_EQ(parts.size(), 3u);
  EXPECT_TRUE(idle_then) << "what is answered is not under way any more";
}

TEST_F(HistoryViewTest, IsNotIdleWhileItsAllocationIsLookedUp) {
  bool committed = false;
  index_.index().flush();
  index_.store().set_used_through(1);
  index_.store().commit_all([&](const Result<void>& r) { committed = r.has_value(); });
  executor_.run_until_idle();
  ASSERT_TRUE(committed);
  HistoryView view(1u << 20, parent_, index_.index(), SequenceNumber{1}, nullptr);
  index_.disk().hold();
  std::size_t parts = 0;
  view.allocation({512, 6 * kBlockBytes},
                  [&](const Result<std::vector<Allocation>>& r) { parts = r->size(); });
  executor_.run_ready();
  EXPECT_EQ(parts, 0u);
  EXPECT_FALSE(view.idle());
  index_.disk().release();
  executor_.run_ready();
  EXPECT_EQ(parts, 3u);
  EXPECT_TRUE(view.idle());
}

TEST_F(HistoryViewTest, TheBaseOfAWritableViewIsItsParentAtOneMoment) {
  ViewBase base(parent_, SequenceNumber{1});
  EXPECT_FALSE(base.may_move());
  Payload to = Payload::allocate(kBlockBytes);
  bool done = false;
  base.read({{2}, {1}}, to.bytes(), [&](const Result<void>& r) { done = r.has_value(); });
  EXPECT_TRUE(done);
}

TEST_F(HistoryViewTest, CurrentIsWhatIsSettledAtEachRead) {
  int asked = 0;
  HistoryCurrent current(parent_, [&] {
    ++asked;
    return SequenceNumber{1};
  });
  bool done = false;
  current.read({{0}, {3}}, [&](const Result<PayloadSlice>& read) {
    done = read && read->length == 3 * kBlockBytes;
  });
  EXPECT_TRUE(done);
  EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace mariner::volume
