#include "server/volume/live_volume.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/server/volume/sectors.h"
#include "tests/server/volume/volume_rig.h"

namespace mariner::volume {
namespace {

using logging::RecordType;
using test::Sectors;
using test::VolumeRig;

constexpr std::uint64_t kSector = test::kSectorBytes;
constexpr std::uint64_t kBlocks = 16;

class LiveVolumeTest : public ::testing::Test {
 protected:
  LiveVolumeTest() {
    rig_.start();
    content_.assign(kBlocks * test::kSectorsPerBlock, 0);
  }
  LiveVolume& live() { return rig_.volume().live(); }
  Done count() {
    return [this](const Result<void>& r) { answered_ += r ? 1 : 100; };
  }
  // In sectors. Applies the same to content_.
  void write(std::uint64_t first, std::uint64_t count_, std::uint64_t tag) {
    expect(first, count_, tag);
    Payload data = test::bytes_of(Sectors(count_, tag));
    live().write({first * kSector, count_ * kSector}, {std::move(data), 0, count_ * kSector},
                 count());
  }
  void write_same(std::uint64_t first, std::uint64_t count_, std::uint64_t tag) {
    expect(first, count_, tag);
    live().write_same({first * kSector, count_ * kSector},
                      {test::bytes_of(Sectors{tag}), 0, kSector}, count());
  }
  void zero(std::uint64_t first, std::uint64_t count_) {
    expect(first, count_, 0);
    live().trim({first * kSector, count_ * kSector}, TrimMode::kZero, count());
  }
  void expect(std::uint64_t first, std::uint64_t count_, std::uint64_t tag) {
    std::fill_n(content_.begin() + static_cast<std::ptrdiff_t>(first), count_, tag);
  }
  void check() {
    rig_.manual().run_ready();
    bool checked = false;
    live().read({0, live().size_bytes()}, [&](const Result<PayloadSlice>& read) {
      ASSERT_TRUE(read);
      const auto bad = test::mismatch(read->bytes(), content_);
      EXPECT_FALSE(bad) << "sector " << *bad;
      checked = true;
    });
    rig_.manual().run_ready();
    EXPECT_TRUE(checked);
  }
  struct Logged {
    RecordType type;
    std::uint64_t first;
    std::uint64_t count;
    std::uint32_t payload_blocks;
    friend bool operator==(const Logged&, const Logged&) = default;
  };
  std::vector<Logged> logged() {
    std::vector<Logged> out;
    rig_.answers().for_each(
        SequenceNumber{0}, SequenceNumber{UINT64_MAX}, [&](const index::IndexedWrite& w) {
          out.push_back({w.type, w.extent.first.value, w.extent.count.value, w.payload_blocks});
          return true;
        });
    return out;
  }

  VolumeRig rig_{{.blocks = kBlocks,
                  .blocks_max = 2 * kBlocks,
                  .storage = {.apply_delay = std::chrono::seconds(1)}}};
  Sectors content_;
  int answered_ = 0;
};

TEST_F(LiveVolumeTest, WholeBlocksAreLoggedAsTheyAre) {
  write(8, 16, 1);
  check();
  EXPECT_EQ(logged(), (std::vector<Logged>{{RecordType::kWrite, 1, 2, 2}}));
}

TEST_F(LiveVolumeTest, PartsOfBlocksAreMergedAndLoggedWhole) {
  write(0, 48, 1);
  write(1, 1, 2);    // inside of a block
  write(13, 20, 3);  // both edges
  write(40, 9, 4);   // one edge
  check();
  EXPECT_EQ(answered_, 4);
  EXPECT_EQ(logged()[1], (Logged{RecordType::kWrite, 0, 1, 1}));
  EXPECT_EQ(logged()[2], (Logged{RecordType::kWrite, 1, 4, 4}));
  EXPECT_EQ(logged()[3], (Logged{RecordType::kWrite, 5, 2, 2}));
}

TEST_F(LiveVolumeTest, RepeatedBlocksAreStoredOnce) {
  write(0, 128, 1);
  write_same(8, 64, 2);
  write_same(75, 20, 3);  // both edges
  write_same(97, 3, 4);   // within a block
  write_same(103, 2, 5);  // over two blocks, without a whole one
  check();
  EXPECT_EQ(logged()[1], (Logged{RecordType::kWrite, 1, 8, 1}));
  EXPECT_EQ(logged()[2], (Logged{RecordType::kWrite, 9, 3, 3}));
  EXPECT_EQ(logged()[3], (Logged{RecordType::kWrite, 12, 1, 1}));
  EXPECT_EQ(logged()[4], (Logged{RecordType::kWrite, 12, 2, 2}));
}

TEST_F(LiveVolumeTest, ZerosCarryTheirEdgesOnly) {
  write(0, 128, 1);
  zero(8, 64);
  zero(75, 13);           // a head
  zero(88, 13);           // a tail
  write_same(105, 2, 0);  // zeros are zeros however they are written
  check();
  EXPECT_EQ(logged()[1], (Logged{RecordType::kZero, 1, 8, 0}));
  EXPECT_EQ(logged()[2], (Logged{RecordType::kZero, 9, 2, 1}));
  EXPECT_EQ(logged()[3], (Logged{RecordType::kZero, 11, 2, 1}));
  EXPECT_EQ(logged()[4], (Logged{RecordType::kWrite, 13, 1, 1}));
}

TEST_F(LiveVolumeTest, UnmapLeavesPartialBlocksAlone) {
  write(0, 128, 1);
  live().trim({3 * kSector, 18 * kSector}, TrimMode::kUnmap, count());
  expect(8, 8, 0);
  live().trim({81 * kSector, 6 * kSector}, TrimMode::kUnmap, count());
  check();
  EXPECT_EQ(answered_, 3);
  EXPECT_EQ(logged().size(), 2u) << "an UNMAP of no whole block is no write";
}

TEST_F(LiveVolumeTest, OverlappingWritesKeepTheirOrderWhileSomeAreMerged) {
  for (std::uint64_t i = 0; i < 60; ++i) {
    switch (i % 4) {
      case 0: write(8 + i % 3, 9, 100 + i); break;
      case 1: write(8, 16, 100 + i); break;
      case 2: write_same(9, 20, 100 + i); break;
      default: zero(11 + i % 5, 7); break;
    }
  }
  check();
  EXPECT_EQ(answered_, 60);
}

TEST_F(LiveVolumeTest, AReadSeesWhatWasAnsweredBefore) {
  write(0, 8, 1);
  bool read = false;
  live().write({0, kBlockBytes}, {test::bytes_of(Sectors(8, 2)), 0, kBlockBytes},
               [&](const Result<void>&) {
                 live().read({0, kSector}, [&](const Result<PayloadSlice>& r) {
                   EXPECT_FALSE(test::mismatch(r->bytes(), Sectors{2}));
                   read = true;
                 });
               });
  rig_.manual().run_ready();
  EXPECT_TRUE(read);
}

// Each adds one to the first byte of a sector, which whole and partial writes touch, too.
TEST_F(LiveVolumeTest, NothingComesBetweenReadAndWriteOfAnUpdate) {
  const auto add_one = [this](std::uint64_t sector) {
    live().update(
        {sector * kSector, kSector},
        [](const PayloadSlice& current) -> std::optional<PayloadSlice> {
          Payload next = Payload::copy_of(current.bytes());
          next.data()[0] = static_cast<std::byte>(std::to_integer<unsigned>(next.data()[0]) + 1);
          return PayloadSlice{next, 0, next.size()};
        },
        count());
  };
  Payload zeros = Payload::zeroed(kBlockBytes);
  live().write({0, kBlockBytes}, {zeros, 0, kBlockBytes}, count());
  for (int i = 0; i < 5; ++i) {
    add_one(3);
    write(4, 1, 77);
    add_one(3);
    live().write({kBlockBytes, kBlockBytes}, {zeros, 0, kBlockBytes}, count());
  }
  rig_.manual().run_ready();
  std::optional<std::byte> found;
  live().read({3 * kSector, kSector},
              [&](const Result<PayloadSlice>& read) { found = read->bytes()[0]; });
  rig_.manual().run_ready();
  EXPECT_EQ(found, std::byte{10});
  EXPECT_EQ(answered_, 21);
}

TEST_F(LiveVolumeTest, AnUpdateThatChangesNothingWritesNothing) {
  write(0, 16, 5);
  rig_.manual().run_ready();
  const std::size_t before = logged().size();
  bool seen = false;
  live().update(
      {kBlockBytes, kBlockBytes},
      [&](const PayloadSlice& current) -> std::optional<PayloadSlice> {
        seen = !test::mismatch(current.bytes(), Sectors(8, 5)).has_value();
        return std::nullopt;
      },
      count());
  rig_.manual().run_ready();
  EXPECT_TRUE(seen);
  EXPECT_EQ(answered_, 2);
  EXPECT_EQ(logged().size(), before);
  EXPECT_TRUE(live().idle());
}

TEST_F(LiveVolumeTest, RollbackTakesItsPlaceAmongWrites) {
  write(0, 8, 1);
  check();
  write(1, 1, 2);  // being merged
  std::optional<SequenceNumber> stamp;
  live().rollback({SequenceNumber{1}, {}},
                  [&](const Result<replication::Stamp>& r) { stamp = r->sequence; });
  expect(1, 1, 1);
  write(5, 1, 3);
  check();
  EXPECT_EQ(stamp, SequenceNumber{3}) << "behind the merge, before what came later";
}

// One block at a time, each of one tag.
class Repairs final : public RepairSource {
 public:
  Repairs(std::vector<std::uint64_t> blocks, std::uint64_t tag)
      : blocks_(std::move(blocks)), tag_(tag) {}
  Result<std::vector<RepairedRun>> next() override {
    std::vector<RepairedRun> out;
    if (fails_at && done_ == *fails_at) return Error{ErrorCode::kIo, "the file is damaged"};
    if (done_ == blocks_.size()) return out;
    const Payload data = test::bytes_of(Sectors(test::kSectorsPerBlock, tag_));
    out.push_back({{Lbn{blocks_[done_++]}, BlockCount{1}}, {data, 0, kBlockBytes}});
    return out;
  }
  std::optional<std::size_t> fails_at;

 private:
  const std::vector<std::uint64_t> blocks_;
  const std::uint64_t tag_;
  std::size_t done_ = 0;
};

// Every step of the way, a reader sees the volume before the rollback or as it was mended.
TEST_F(LiveVolumeTest, NobodySeesARollbackWithoutItsRepairs) {
  write(0, 8, 1);
  check();
  write(8, 8, 2);
  check();
  bool done = false;
  live().rollback({SequenceNumber{1}, {}},
                  std::make_shared<Repairs>(std::vector<std::uint64_t>{1, 2, 3}, 7),
                  [&](const Result<replication::Stamp>& r) {
                    EXPECT_EQ(r->sequence, SequenceNumber{3});
                    done = true;
                  });
  const Sectors before = content_;
  Sectors mended = content_;
  std::fill_n(mended.begin() + 8, 24, 7);
  Sectors written = mended;
  std::fill_n(written.begin() + 20, 8, 9);
  int seen = 0;
  int asked = 0;
  const auto look = [&] {
    ++asked;
    live().read({0, live().size_bytes()}, [&](const Result<PayloadSlice>& read) {
      ASSERT_TRUE(read);
      EXPECT_TRUE(!test::mismatch(read->bytes(), before) ||
                  !test::mismatch(read->bytes(), mended) ||
                  !test::mismatch(read->bytes(), written));
      ++seen;
    });
    ++asked;
    live().snapshot([&](const Result<std::shared_ptr<Layer>>& taken) {
      ASSERT_TRUE(taken);
      ++seen;
    });
    ++asked;
    live().allocation({0, live().size_bytes()},
                      [&](const Result<std::vector<Allocation>>& r) { seen += r.has_value(); });
  };
  while (!done && rig_.manual().turn() > 0) look();
  write(20, 8, 9);
  content_ = written;
  check();
  EXPECT_TRUE(done);
  EXPECT_GT(asked, 3);
  EXPECT_EQ(seen, asked);
  EXPECT_TRUE(live().idle());
}

TEST_F(LiveVolumeTest, RepairsThatFailAreToldAndTheRollbackStays) {
  write(0, 8, 1);
  write(8, 8, 2);
  check();
  auto repairs = std::make_shared<Repairs>(std::vector<std::uint64_t>{2, 3}, 7);
  repairs->fails_at = 1;
  bool done = false;
  live().rollback({SequenceNumber{1}, {}}, repairs, [&](const Result<replication::Stamp>& r) {
    EXPECT_EQ(r->sequence, SequenceNumber{3});
    done = true;
  });
  expect(8, 8, 0);
  expect(16, 8, 7);
  check();
  EXPECT_TRUE(done);
  ASSERT_TRUE(repairs->failure());
  EXPECT_EQ(repairs->failure()->message, "the file is damaged");
  EXPECT_TRUE(live().idle());
}

TEST_F(LiveVolumeTest, WithoutRepairsToWriteARollbackIsAsAnyOther) {
  write(0, 8, 1);
  write(8, 8, 2);
  check();
  int stamps = 0;
  live().rollback({SequenceNumber{1}, {}},
                  std::make_shared<Repairs>(std::vector<std::uint64_t>{}, 7),
                  [&](const Result<replication::Stamp>& r) { stamps += r.has_value(); });
  expect(8, 8, 0);
  check();
  EXPECT_EQ(stamps, 1);
}

// The one behind stops readers in the moment in which the first one lets them go.
TEST_F(LiveVolumeTest, TwoRollbacksWithRepairsOneBehindTheOther) {
  write(0, 8, 1);
  write(8, 8, 2);
  check();
  int stamps = 0;
  for (const std::uint64_t tag : {7u, 8u}) {
    live().rollback({SequenceNumber{1}, {}},
                    std::make_shared<Repairs>(std::vector<std::uint64_t>{2}, tag),
                    [&](const Result<replication::Stamp>& r) { stamps += r.has_value(); });
  }
  expect(8, 8, 0);
  expect(16, 8, 8);
  check();
  EXPECT_EQ(stamps, 2);
  EXPECT_TRUE(live().idle());
}

// What the rollback does not know of must not be written before it has its place.
TEST_F(LiveVolumeTest, AWriteBehindTheOldEndWaitsForARollbackToo) {
  write(0, 8, 1);
  check();
  write(1, 1, 2);  // being merged: the rollback waits for it
  live().rollback({SequenceNumber{1}, {}}, [](const Result<replication::Stamp>& r) {
    EXPECT_EQ(r->sequence, SequenceNumber{3});
  });
  rig_.grow(2 * kBlocks);
  const std::uint64_t behind = kBlocks * test::kSectorsPerBlock;
  content_.resize(2 * behind, 0);
  expect(1, 1, 1);
  write(behind, 8, 3);
  check();
  const auto now = rig_.volume().view_layer(SequenceNumber{4});
  EXPECT_EQ(now->size_bytes(), 2 * kBlocks * kBlockBytes);
  bool same = false;
  now->read({0, now->size_bytes()}, [&](const Result<PayloadSlice>& read) {
    same = !test::mismatch(read->bytes(), content_);
  });
  rig_.manual().run_ready();
  EXPECT_TRUE(same) << "the image and the history say the same";
}

TEST_F(LiveVolumeTest, SettleWaitsForEveryWriteBegun) {
  write(1, 1, 2);
  bool settled = false;
  int answered_then = 0;
  rig_.manual().run_ready();
  write(8, 8, 3);
  live().settle([&](const Result<void>&) {
    settled = true;
    answered_then = answered_;
  });
  EXPECT_FALSE(settled);
  rig_.manual().run_ready();
  EXPECT_TRUE(settled);
  EXPECT_EQ(answered_then, 2);
}

// After an answered reset nothing may land that was begun before it, however it waited: for a lock,
// or for what it merges with.
TEST_F(LiveVolumeTest, SettleWaitsForWritesThatHaveNoPlaceYet) {
  write(0, 8, 1);
  check();
  answered_ = 0;
  const auto settles_with = [this](int answered, const char* what) {
    std::optional<int> answered_then;
    live().settle([&](const Result<void>&) { answered_then = answered_; });
    write(32, 1, 9);  // later ones do not matter
    rig_.manual().run_ready();
    EXPECT_EQ(answered_then.value_or(-1) >= answered, true) << what;
    check();
    rig_.manual().advance(std::chrono::seconds(2));  // to the image: reads take a while
    answered_ = 0;
  };
  write(1, 1, 2);
  write(9, 14, 3);
  settles_with(2, "merged");
  write(1, 1, 4);
  write(0, 8, 5);
  settles_with(2, "a whole block behind a merged one");
  live().update(
      {0, kSector}, [](const PayloadSlice& current) { return current; }, count());
  settles_with(1, "an update");
  live().rollback({SequenceNumber{1}, {}}, [](const Result<replication::Stamp>&) {});
  write(8, 8, 6);
  content_.assign(content_.size(), 0);
  expect(0, 8, 1);
  expect(8, 8, 6);
  settles_with(1, "behind a rollback");
}

TEST_F(LiveVolumeTest, AllocationTellsWhatIsStored) {
  write(8, 16, 1);
  zero(16, 8);
  check();
  std::vector<Allocation> allocation;
  bool idle_then = false;
  live().allocation({kSector, 4 * kBlockBytes}, [&](Result<std::vector<Allocation>> r) {
    ASSERT_TRUE(r.has_value());
    allocation = *std::move(r);
    idle_then = live().idle();
  });
  rig_.manual().run_ready();
  EXPECT_TRUE(idle_then) << "what is answered is not under way any more";
  ASSERT_EQ(allocation.size(), 3u);
  EXPECT_EQ(allocation[0].range, (ByteRange{kSector, kBlockBytes - kSector}));
  EXPECT_FALSE(allocation[0].mapped);
  EXPECT_EQ(allocation[1].range, (ByteRange{kBlockBytes, kBlockBytes}));
  EXPECT_TRUE(allocation[1].mapped);
  EXPECT_EQ(allocation[2].range.end(), kSector + 4 * kBlockBytes);
}

TEST_F(LiveVolumeTest, AfterCloseWritesAreRefusedAndReadsGoOn) {
  write(0, 8, 1);
  check();
  rig_.volume().close(Error{ErrorCode::kUnavailable, "stopping"});
  std::optional<ErrorCode> refused;
  const auto note = [&](const Result<void>& r) { refused = r.error().code; };
  live().write({0, kBlockBytes}, {Payload::zeroed(kBlockBytes), 0, kBlockBytes}, note);
  EXPECT_EQ(refused, ErrorCode::kUnavailable);
  refused.reset();
  live().write({0, kSector}, {Payload::zeroed(kSector), 0, kSector}, note);
  rig_.manual().run_ready();
  EXPECT_EQ(refused, ErrorCode::kUnavailable);
  EXPECT_TRUE(live().idle());
  check();
}

// A log that died with writes under way: whoever waits is answered, and the volume can be stopped.
TEST_F(LiveVolumeTest, NothingHangsWhenTheLogDies) {
  write(0, 8, 1);
  check();
  rig_.log_disk().fail_writes(1000, test::FaultyDisk::Remains::kNothing);
  std::optional<bool> whole;
  std::optional<bool> part;
  bool settled = false;
  live().write({0, kBlockBytes}, {Payload::zeroed(kBlockBytes), 0, kBlockBytes},
               [&](const Result<void>& r) { whole = r.has_value(); });
  live().write({kSector, kSector}, {Payload::zeroed(kSector), 0, kSector},
               [&](const Result<void>& r) { part = r.has_value(); });
  live().settle([&](const Result<void>&) { settled = true; });
  rig_.manual().advance(std::chrono::seconds(1));
  EXPECT_EQ(whole, false);
  EXPECT_EQ(part, false);
  EXPECT_TRUE(settled);
  EXPECT_TRUE(live().idle());
  check();
}

}  // namespace
}  // namespace mariner::volume
