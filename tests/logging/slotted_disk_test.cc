#include "logging/slotted_disk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "logging/pack_extents.h"
#include "logging/slot_store.h"
#include "tests/logging/slot_rig.h"

namespace mariner::logging {
namespace {

using test::kTrackBlocks;
using test::kTrackBytes;
using test::SlotRig;

// A disk under it that can forget, when the test says so.
class ForgettingDisk final : public mariner::test::PassingDisk {
 public:
  using PassingDisk::PassingDisk;
  [[nodiscard]] bool can_forget() const override { return true; }
  void async_forget(ByteRange range, Completion done) override {
    forgotten = range;
    waiting = std::move(done);
  }
  std::optional<ByteRange> forgotten;
  Completion waiting;
};

// Tracks 10 and 11 stand in slots 3 and 1, tracks 12 and 13 in a pack, the others nowhere. Blocks
// of track t hold payload_of(t), of the packed ones text_of(t).
class SlottedDiskTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kSlots = 8;

  void SetUp() override {
    SlotMap map(superblock_);
    map.assign(10, 3);
    map.assign(11, 1);
    map.assign(12, 5);
    map.assign(13, 6);
    ASSERT_TRUE(write_slot_map(disk_, superblock_, map, 2).has_value());
    open();
    for (const std::uint64_t track : {10, 11}) put(track, test::payload_of(track, kTrackBlocks));
    for (const std::uint64_t track : {12, 13}) put(track, test::text_of(track, kTrackBlocks));
    pack();
  }
  void TearDown() override { executor_.run_until_idle(); }

  void open() { slotted_ = *SlottedDisk::open(forgetting_, superblock_, executor_); }
  void put(std::uint64_t track, const Payload& bytes) {
    const ConstBytes part = bytes.bytes();
    ASSERT_TRUE(slotted_->write(at(track), {&part, 1}, Durability::kDurable).has_value());
  }
  class Source final : public PackSource {
   public:
    explicit Source(SlottedDiskTest& test) : test_(test) {}
    Result<void> read(std::size_t track, std::uint64_t offset, std::span<std::byte> to) override {
      return test_.slotted_->read(test_.at(12 + track) + offset, to);
    }

   private:
    SlottedDiskTest& test_;
  };
  // Tracks 12 and 13.
  void pack() {
    PackExtents sink(*slotted_, {.bytes_max = kTrackBytes, .leave_slots = 0});
    Source source(*this);
    const PackTrack whole{
        .bytes = kTrackBytes, .used = kTrackBytes, .payloads = {{0, kTrackBlocks}}};
    const std::vector<PackTrack> tracks{whole, whole};
    const Result<BuiltPack> built = build_pack(tracks, source, sink, {});
    ASSERT_TRUE(built.has_value());
    PackPlace place{.id = 1, .table_at = sink.bytes(), .tracks = {12, 13}};
    const auto bytes = to_bytes(built->table);
    place.table_bytes = static_cast<std::uint32_t>(bytes.size());
    ASSERT_TRUE(sink.append(bytes).has_value());
    ASSERT_TRUE(sink.finish().has_value());
    place.extents = sink.extents();
    SlotMap map = slotted_->map();
    map.add_pack(std::move(place));
    ASSERT_TRUE(write_slot_map(disk_, superblock_, map, 3).has_value());
    slotted_->adopt(std::move(map), 3);
    slotted_->end_building();
  }
  [[nodiscard]] std::uint64_t at(std::uint64_t track) const {
    return superblock_.track_first_sector(track) * kBlockBytes;
  }
  // What stands in block `block` of the whole: 0, or which track and block of it.
  [[nodiscard]] static Payload block_of(std::uint64_t track, std::uint64_t block) {
    Payload one = Payload::zeroed(kBlockBytes);
    static const auto contents = [] {
      std::map<std::uint64_t, Payload> all;
      for (const std::uint64_t t : {10, 11}) all.emplace(t, test::payload_of(t, kTrackBlocks));
      for (const std::uint64_t t : {12, 13}) all.emplace(t, test::text_of(t, kTrackBlocks));
      return all;
    }();
    if (const auto found = contents.find(track); found != contents.end()) {
      std::ranges::copy(found->second.bytes().subspan(block * kBlockBytes, kBlockBytes),
                        one.data());
    }
    return one;
  }
  void expect_blocks(std::uint64_t track, std::uint64_t block, std::span<const std::byte> found) {
    for (std::size_t i = 0; i * kBlockBytes < found.size(); ++i, ++block) {
      if (block == kTrackBlocks) {
        block = 0;
        ++track;
      }
      ASSERT_TRUE(std::ranges::equal(found.subspan(i * kBlockBytes, kBlockBytes),
                                     block_of(track, block).bytes()))
          << "block " << block << " of track " << track;
    }
  }
  Result<void> read_async(std::uint64_t offset, std::span<std::byte> to) {
    std::optional<Result<void>> outcome;
    slotted_->async_read(offset, to, [&](Result<void> result) { outcome = std::move(result); });
    EXPECT_FALSE(outcome.has_value()) << "never before the call has returned";
    for (int i = 0; i < 100'000 && !outcome; ++i) {
      executor_.run_ready();
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return outcome.value_or(Error{ErrorCode::kAborted, "it never ended"});
  }
  std::set<std::uint64_t> promise_all() {
    std::set<std::uint64_t> slots;
    while (const auto slot = slotted_->promise_slot()) slots.insert(*slot);
    return slots;
  }

  test::ManualExecutor executor_;
  test::FaultyDisk disk_{executor_, {.size_bytes = kReservedBytes + kSlots * kTrackBytes}};
  const Superblock superblock_ = *format_log(disk_, test::log_id(), 0, kTrackBytes, 1, true);
  std::shared_ptr<ForgettingDisk> forgetting_ = std::make_shared<ForgettingDisk>(disk_);
  std::unique_ptr<SlottedDisk> slotted_;
};

TEST_F(SlottedDiskTest, IsAsLongAsItsTracks) {
  EXPECT_EQ(slotted_->size_bytes(), kReservedBytes + kSlots * kTracksPerSlot * kTrackBytes);
}

// A place in the log may come from anywhere: it must not end the daemon.
TEST_F(SlottedDiskTest, ReadsBeyondTheTracksAreErrors) {
  Payload to = Payload::allocate(2 * kBlockBytes);
  const std::uint64_t end = slotted_->size_bytes();
  for (const std::uint64_t offset : {end - kBlockBytes, end, end + kTrackBytes,
                                     UINT64_MAX - kBlockBytes + 1, std::uint64_t{1} << 60}) {
    const Result<void> now = slotted_->read(offset, to.bytes());
    ASSERT_FALSE(now.has_value()) << offset;
    EXPECT_EQ(now.error().code, ErrorCode::kIo);
    const Result<void> later = read_async(offset, to.bytes());
    ASSERT_FALSE(later.has_value()) << offset;
    EXPECT_EQ(later.error().code, ErrorCode::kIo);
    EXPECT_FALSE(slotted_->try_read(offset, to.bytes()));
  }
}

TEST_F(SlottedDiskTest, EveryTrackReadsAsItIs) {
  Payload to = Payload::allocate(4 * kBlockBytes);
  for (std::uint64_t track = 9; track <= 15; ++track) {
    for (const std::uint64_t block : {0u, 700u, kTrackBlocks - 4}) {
      ASSERT_TRUE(slotted_->read(at(track) + block * kBlockBytes, to.bytes()).has_value());
      expect_blocks(track, block, to.bytes());
      ASSERT_TRUE(read_async(at(track) + block * kBlockBytes, to.bytes()).has_value());
      expect_blocks(track, block, to.bytes());
    }
  }
}

TEST_F(SlottedDiskTest, ReadsGoAcrossTheBordersOfTracks) {
  Payload to = Payload::allocate(8 * kBlockBytes);
  for (std::uint64_t track = 8; track <= 14; ++track) {
    const std::uint64_t offset = at(track) + (kTrackBlocks - 3) * kBlockBytes;
    ASSERT_TRUE(slotted_->read(offset, to.bytes()).has_value());
    expect_blocks(track, kTrackBlocks - 3, to.bytes());
    ASSERT_TRUE(read_async(offset, to.bytes()).has_value());
    expect_blocks(track, kTrackBlocks - 3, to.bytes());
  }
  Payload three = Payload::allocate(kTrackBytes + 2 * kBlockBytes);
  ASSERT_TRUE(slotted_->read(at(11) - kBlockBytes, three.bytes()).has_value());
  expect_blocks(10, kTrackBlocks - 1, three.bytes());
}

TEST_F(SlottedDiskTest, TheReservedAreaIsTheDisksOwnAndReadsGoBeyondIt) {
  SlotMap map = slotted_->map();
  map.assign(0, 7);
  slotted_->adopt(std::move(map), 4);
  put(0, test::payload_of(99, kTrackBlocks));
  Payload to = Payload::allocate(2 * kBlockBytes);
  Payload raw = Payload::allocate(kBlockBytes);
  const std::uint64_t offset = kReservedBytes - kBlockBytes;
  const Payload last = test::payload_of(98, 1);
  const ConstBytes part = last.bytes();
  ASSERT_TRUE(slotted_->write(offset, {&part, 1}, Durability::kDurable).has_value());
  ASSERT_TRUE(disk_.read(offset, raw.bytes()).has_value());
  EXPECT_TRUE(std::ranges::equal(raw.bytes(), last.bytes()));
  const auto check = [&] {
    EXPECT_TRUE(std::ranges::equal(to.bytes().first(kBlockBytes), last.bytes()));
    EXPECT_TRUE(
        std::ranges::equal(to.bytes().subspan(kBlockBytes), test::payload_of(99, 1).bytes()));
    std::ranges::fill(to.bytes(), std::byte{7});
  };
  ASSERT_TRUE(slotted_->read(offset, to.bytes()).has_value());
  check();
  ASSERT_TRUE(read_async(offset, to.bytes()).has_value());
  check();
  EXPECT_FALSE(slotted_->try_read(offset, to.bytes()));
  // A write must not go to slot 0, where track 0 does not stand.
  const Payload both = test::payload_of(97, 2);
  const ConstBytes across = both.bytes();
  EXPECT_FALSE(slotted_->write(offset, {&across, 1}, Durability::kDurable).has_value());
  ASSERT_TRUE(disk_.read(offset, raw.bytes()).has_value());
  EXPECT_TRUE(std::ranges::equal(raw.bytes(), last.bytes()));
}

TEST_F(SlottedDiskTest, OnlyATrackInASlotIsWrittenTo) {
  const Payload zeros = Payload::zeroed(kBlockBytes);
  const Payload other = test::payload_of(5, 1);
  for (const std::uint64_t track : {12, 20}) {
    const ConstBytes nothing = zeros.bytes();
    const ConstBytes something = other.bytes();
    const std::size_t writes = disk_.writes().size();
    EXPECT_TRUE(slotted_->write(at(track), {&nothing, 1}, Durability::kDurable).has_value());
    EXPECT_EQ(slotted_->write(at(track), {&something, 1}, Durability::kDurable).error().code,
              ErrorCode::kIo);
    std::optional<Result<void>> outcome;
    slotted_->async_write(at(track), {something}, Durability::kDurable,
                          [&](Result<void> result) { outcome = std::move(result); });
    executor_.run_ready();
    ASSERT_TRUE(outcome.has_value());
    EXPECT_EQ(outcome->error().code, ErrorCode::kIo);
    EXPECT_EQ(disk_.writes().size(), writes) << "nothing reached the disk";
  }
  put(11, test::payload_of(11, kTrackBlocks));
  EXPECT_EQ(disk_.writes().back(), (ByteRange{kReservedBytes + kTrackBytes, kTrackBytes}));
}

TEST_F(SlottedDiskTest, ASlotIsGivenToNobodyWhileItIsRead) {
  Payload to = Payload::allocate(kBlockBytes);
  bool done = false;
  disk_.hold();
  slotted_->async_read(at(10), to.bytes(), [&](const Result<void>& result) {
    done = true;
    EXPECT_TRUE(result.has_value());
  });
  executor_.run_ready();
  slotted_->release(10);
  EXPECT_TRUE(slotted_->map().is_free(3));
  EXPECT_FALSE(slotted_->hold(3));
  EXPECT_FALSE(promise_all().contains(3));
  disk_.release();
  executor_.run_ready();
  ASSERT_TRUE(done);
  expect_blocks(10, 0, to.bytes());
  EXPECT_EQ(slotted_->promise_slot(), 3u);
}

// A track whose slot is being forgotten may be packed meanwhile.
TEST_F(SlottedDiskTest, ASlotIsGivenToNobodyWhileItIsForgotten) {
  bool done = false;
  slotted_->async_forget({at(10), kTrackBytes}, [&](const Result<void>&) { done = true; });
  EXPECT_EQ(forgetting_->forgotten, (ByteRange{kReservedBytes + 3 * kTrackBytes, kTrackBytes}));
  slotted_->release(10);
  EXPECT_FALSE(promise_all().contains(3));
  forgetting_->waiting({});
  EXPECT_TRUE(done);
  EXPECT_EQ(slotted_->promise_slot(), 3u);
  // Of what stands in no slot there is nothing to forget.
  forgetting_->forgotten.reset();
  done = false;
  slotted_->async_forget({at(12), kTrackBytes}, [&](const Result<void>&) { done = true; });
  EXPECT_FALSE(done);
  executor_.run_ready();
  EXPECT_TRUE(done);
  EXPECT_FALSE(forgetting_->forgotten.has_value());
}

TEST_F(SlottedDiskTest, PromisingHoldingAndBuildingExcludeOneAnother) {
  const std::uint64_t free = slotted_->map().free_slots();
  ASSERT_EQ(free, 5u) << "two tracks and a pack";
  EXPECT_EQ(slotted_->usable_slots(), free);
  const auto open = slotted_->take_extent(0);
  ASSERT_TRUE(open.has_value());
  EXPECT_GT(open->at, 0u) << "behind the last pack";
  const auto built = slotted_->take_extent(0);
  ASSERT_TRUE(built.has_value());
  EXPECT_EQ(built->at, 0u);
  EXPECT_EQ(built->bytes, kTrackBytes);
  EXPECT_FALSE(slotted_->hold(built->slot));
  const auto promised = slotted_->promise_slot();
  ASSERT_TRUE(promised.has_value());
  EXPECT_NE(*promised, built->slot);
  EXPECT_FALSE(slotted_->hold(*promised));
  EXPECT_EQ(slotted_->usable_slots(), free - 2);
  std::uint64_t held = 0;
  for (; held < kSlots && !slotted_->hold(held); ++held) {
  }
  ASSERT_LT(held, kSlots);
  EXPECT_FALSE(slotted_->hold(held)) << "once";
  std::set<std::uint64_t> rest = promise_all();
  EXPECT_EQ(rest.size(), free - 3);
  EXPECT_FALSE(rest.contains(held) || rest.contains(built->slot) || rest.contains(*promised));
  EXPECT_FALSE(slotted_->take_extent(0).has_value());
  slotted_->let_go_of_held(held);
  EXPECT_EQ(slotted_->promise_slot(), held);
  slotted_->end_building();
  EXPECT_EQ(slotted_->promise_slot(), built->slot);
  EXPECT_EQ(slotted_->usable_slots(), 0u);
  slotted_->adopt(slotted_->map(), 9);
  EXPECT_EQ(slotted_->usable_slots(), free);
}

TEST_F(SlottedDiskTest, ABuilderLeavesWhatItIsToldTo) {
  ASSERT_TRUE(slotted_->take_extent(5).has_value()) << "the open end takes nothing from anybody";
  EXPECT_FALSE(slotted_->take_extent(5).has_value());
  EXPECT_TRUE(slotted_->take_extent(4).has_value());
  EXPECT_FALSE(slotted_->take_extent(4).has_value());
}

// Until then a crash brings the pack back, and its tracks are read.
TEST_F(SlottedDiskTest, TheSlotsOfAPackThatWentWaitForTheNextMap) {
  const std::uint64_t slot = slotted_->map().pack(1).extents.front().slot;
  slotted_->release(12);
  EXPECT_FALSE(slotted_->has_gone());
  slotted_->release(13);
  EXPECT_TRUE(slotted_->has_gone());
  EXPECT_TRUE(slotted_->map().is_free(slot));
  EXPECT_EQ(slotted_->usable_slots(), slotted_->map().free_slots() - 1);
  EXPECT_FALSE(slotted_->hold(slot));
  std::set<std::uint64_t> built;
  while (const auto extent = slotted_->take_extent(0)) built.insert(extent->slot);
  EXPECT_FALSE(built.contains(slot));
  slotted_->end_building();
  slotted_->adopt(slotted_->map(), 9);
  EXPECT_FALSE(slotted_->has_gone());
  EXPECT_TRUE(promise_all().contains(slot));
}

TEST_F(SlottedDiskTest, ADamagedPackIsAnErrorAndNeverWrongBytes) {
  const PackExtent extent = slotted_->map().pack(1).extents.front();
  open();  // nothing of it is in memory
  disk_.flip_bit(slotted_->offset_of(extent) + 1000, 2);
  Payload to = Payload::allocate(kBlockBytes);
  std::uint64_t errors = 0;
  for (std::uint64_t block = 0; block < kTrackBlocks; ++block) {
    const Result<void> read = slotted_->read(at(12) + block * kBlockBytes, to.bytes());
    if (read) {
      expect_blocks(12, block, to.bytes());
    } else {
      ASSERT_EQ(read.error().code, ErrorCode::kCorrupt);
      ASSERT_EQ(read_async(at(12) + block * kBlockBytes, to.bytes()).error().code,
                ErrorCode::kCorrupt);
      ++errors;
    }
  }
  EXPECT_GT(errors, 0u);
}

TEST_F(SlottedDiskTest, OpensWhereItWasLeft) {
  open();
  EXPECT_EQ(slotted_->generation(), 3u);
  EXPECT_EQ(slotted_->map().place_of(13).kind, TrackPlace::Kind::kPack);
  Payload to = Payload::allocate(kTrackBytes);
  for (std::uint64_t track = 10; track <= 14; ++track) {
    ASSERT_TRUE(slotted_->read(at(track), to.bytes()).has_value());
    expect_blocks(track, 0, to.bytes());
  }
}

// Readers and the owner at once; worth most with a thread sanitizer.
TEST_F(SlottedDiskTest, ManyThreadsReadWhileTracksMove) {
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> wrong{0};
  std::atomic<std::uint64_t> reads{0};
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      Payload to = Payload::allocate(kBlockBytes);
      for (std::uint64_t n = i; !stop; n += 7) {
        const std::uint64_t track = 11 + n % 3;
        const std::uint64_t block = n % kTrackBlocks;
        if (!slotted_->read(at(track) + block * kBlockBytes, to.bytes()) ||
            !std::ranges::equal(to.bytes(), block_of(track, block).bytes())) {
          ++wrong;
        }
        ++reads;
      }
    });
  }
  for (std::uint64_t generation = 4; generation < 200 || reads < 3000; ++generation) {
    SlotMap map = slotted_->map();
    map.release(10);
    if (const auto slot = slotted_->promise_slot()) map.assign(10, *slot);
    slotted_->adopt(std::move(map), generation);
    std::this_thread::yield();
  }
  stop = true;
  threads.clear();
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace mariner::logging
