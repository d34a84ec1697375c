#include "logging/live_tracks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "tests/logging/array_rig.h"
#include "tests/logging/log_testing.h"
#include "tests/support/watched_disk.h"

namespace mariner::logging {
namespace {

using namespace std::chrono_literals;
using test::ArrayRig;
using test::record_of;

class LiveTracksTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(rig_.open()); }
  void leave() { rig_.member(0).log_disk->leave_track(0ns); }
  void release() {
    LogArray::Member& member = rig_.member(0);
    member.recycler->release(member.tracks.oldest() + 1,
                             [](const Result<void>& result) { EXPECT_TRUE(result.has_value()); });
    rig_.executor.run_ready();
  }
  // The ordinals in a track; "?" if it cannot be read.
  static std::string read(const LiveTracks& live, std::size_t number) {
    const Result<CompleteTrack> track = read_live_track(live, number);
    if (!track) return "?";
    std::string out;
    for (const auto& [record, location] : track->records) {
      out += (out.empty() ? "" : " ") + std::to_string(record.ordinal);
    }
    return out;
  }

  ArrayRig rig_{{.disks = 1, .tracks = 4}};
};

TEST_F(LiveTracksTest, FromTheOldestToTheOneThatIsBeingFilled) {
  for (std::uint64_t i = 1; i <= 3; ++i) rig_.append_now(record_of(1, i));
  leave();
  for (std::uint64_t i = 4; i <= 5; ++i) rig_.append_now(record_of(1, i));
  const std::vector<LiveTracks> disks = live_tracks(*rig_.array);
  ASSERT_EQ(disks.size(), 1u);
  ASSERT_EQ(disks[0].tracks.size(), 2u);
  EXPECT_EQ(read(disks[0], 0), "1 2 3");
  EXPECT_EQ(read(disks[0], 1), "4 5");
  release();
  EXPECT_EQ(live_tracks(*rig_.array)[0].tracks.size(), 1u);
}

// The log is written meanwhile, to the same device.
TEST_F(LiveTracksTest, AreReadInShortPiecesWhereWritesComeOneByOne) {
  for (std::uint64_t i = 1; i <= 400; ++i) rig_.append_now(record_of(1, i));
  leave();
  rig_.append_now(record_of(1, 401));
  std::vector<LiveTracks> disks = live_tracks(*rig_.array);
  EXPECT_EQ(disks[0].read_bytes_max, kShortReadBytesMax);
  auto watched = std::make_shared<mariner::test::WatchedDisk>(*disks[0].disk);
  disks[0].disk = watched;
  EXPECT_TRUE(read(disks[0], 0).ends_with(" 399 400"));
  std::uint64_t longest = 0;
  for (const ByteRange& each : watched->reads()) longest = std::max(longest, each.length);
  EXPECT_EQ(longest, kShortReadBytesMax);
}

// Who reads them takes time, and the log goes round meanwhile.
TEST_F(LiveTracksTest, OneThatHasBeenTakenAnewHasNoneOfThem) {
  rig_.append_now(record_of(1, 1));
  leave();
  rig_.append_now(record_of(1, 2));
  const std::vector<LiveTracks> before = live_tracks(*rig_.array);
  release();
  for (std::uint64_t i = 3; i <= 6; ++i) {
    leave();
    rig_.append_now(record_of(1, i));
    if (i < 6) release();
  }
  EXPECT_EQ(read(before[0], 0), "");
}

TEST_F(LiveTracksTest, ADiskThatIsFinishedHasNoneThatIsBeingFilled) {
  rig_.append_now(record_of(1, 1));
  rig_.member(0).log_disk->finish();
  const std::vector<LiveTracks> disks = live_tracks(*rig_.array);
  EXPECT_TRUE(disks[0].finished);
  EXPECT_EQ(read(disks[0], 0), "1");
}

}  // namespace
}  // namespace mariner::logging
