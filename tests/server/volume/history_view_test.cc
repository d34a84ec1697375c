#include "server/volume/history_view.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "tests/server/volume/logged_rig.h"

namespace mariner::volume {
namespace {

// A base of zeros that is never asked.
class NoBase final : public Base {
 public:
  void read(BlockRange, std::span<std::byte> to, Done done) override {
    std::memset(to.data(), 0, to.size());
    done({});
  }
  [[nodiscard]] bool may_move() const override { return false; }
};

class HistoryViewTest : public ::testing::Test {
 protected:
  HistoryViewTest() { rig_.write(1, {{2}, {2}}, 0, replication::WriteKind::kZero); }

  test::LoggedRig rig_{true};
  NoBase base_;
  HistoryReader parent_{rig_.history, base_};
};

TEST_F(HistoryViewTest, ReadsPartsOfBlocks) {
  HistoryView view(1u << 20, parent_, SequenceNumber{1});
  EXPECT_EQ(view.size_bytes(), 1u << 20);
  std::optional<std::size_t> length;
  view.read({512, 8192}, [&](const Result<PayloadSlice>& read) {
    length = read->bytes().size();
    EXPECT_EQ(read->offset, 512u);
  });
  EXPECT_EQ(length, 8192u);
  EXPECT_TRUE(view.idle());
}

TEST_F(HistoryViewTest, TellsItsAllocation) {
  HistoryView view(1u << 20, parent_, SequenceNumber{1});
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
  rig_.index.index().flush();
  rig_.index.store().set_used_through(1);
  rig_.index.store().commit_all([&](const Result<void>& r) { committed = r.has_value(); });
  rig_.executor.run_until_idle();
  ASSERT_TRUE(committed);
  HistoryView view(1u << 20, parent_, SequenceNumber{1});
  rig_.index.disk().hold();
  std::size_t parts = 0;
  view.allocation({512, 6 * kBlockBytes},
                  [&](const Result<std::vector<Allocation>>& r) { parts = r->size(); });
  rig_.executor.run_ready();
  EXPECT_EQ(parts, 0u);
  EXPECT_FALSE(view.idle());
  rig_.index.disk().release();
  rig_.executor.run_ready();
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
