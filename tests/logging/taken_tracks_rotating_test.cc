#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>

#include "logging/taken_tracks.h"
#include "tests/logging/log_testing.h"

namespace mariner::logging {
namespace {

using test::area_of;
using test::FaultyDisk;
using test::log_id;
using test::ManualExecutor;
using test::payload_of;
using test::record_of;

// A rotating disk of eight tracks of 32 sectors, whose first four are in their second use: the list
// goes from allocation 5 (track 4) to 12 (track 3).
class TakenTracksOfARotatingDisk : public ::testing::Test {
 protected:
  TakenTracksOfARotatingDisk() : list_(superblock_of()) {
    static_cast<void>(list_.release(5));
    list_.committed();
  }

  static Superblock superblock_of() {
    Superblock superblock;
    superblock.log = log_id();
    superblock.track_sectors = 32;
    superblock.track_count = 8;
    superblock.first_sector = kReservedBlocks;
    superblock.rotation = std::chrono::milliseconds(8);
    superblock.list_blocks = list_blocks_for(8);
    return superblock;
  }

  struct Given {
    std::uint64_t allocation = 0;
    std::uint64_t number = 0;
    std::uint64_t sector = 0;  // counted from the track's first
    std::uint32_t blocks = 1;  // of payload
  };
  void put(const Given& given) {
    const std::uint64_t sector =
        superblock_.track_first_sector((given.allocation - 1) % 8) + given.sector;
    const Payload area = area_of({.batch_number = given.number,
                                  .allocation = given.allocation,
                                  .sector = sector,
                                  .track_first_batch = given.number},
                                 {record_of(1, given.number, given.blocks)}, log_id());
    disk_.overwrite(sector * kBlockBytes, area.bytes());
    disk_.overwrite((sector + 1) * kBlockBytes, payload_of(given.number, given.blocks).bytes());
  }

  // "5:50 6:60": allocations and their first batches.
  std::string taken() {
    const auto tracks = taken_tracks(disk_, superblock_, list_);
    if (!tracks) return to_string(tracks.error());
    std::string text;
    for (const TrackHeader& track : *tracks) {
      text += (text.empty() ? "" : " ") + std::to_string(track.allocation) + ":" +
              std::to_string(track.first_batch);
    }
    return text;
  }

  ManualExecutor executor_;
  FaultyDisk disk_{executor_, {.size_bytes = 4u << 20}};
  const Superblock superblock_ = superblock_of();
  TrackList list_;
};

TEST_F(TakenTracksOfARotatingDisk, AnyBatchOfAnAllocationSaysThatItWasTaken) {
  put({.allocation = 5, .number = 50, .sector = 0});
  put({.allocation = 6, .number = 60, .sector = 30});
  put({.allocation = 7, .number = 70, .sector = 17});
  EXPECT_EQ(taken(), "5:50 6:60 7:70");
}

TEST_F(TakenTracksOfARotatingDisk, WhatAnEarlierUseHasLeftSaysNothing) {
  put({.allocation = 5, .number = 50, .sector = 0});
  put({.allocation = 1, .number = 10, .sector = 3});
  put({.allocation = 2, .number = 20, .sector = 3});
  EXPECT_EQ(taken(), "5:50");
}

// Only the header of the older batch is whole.
TEST_F(TakenTracksOfARotatingDisk, ABatchWithinAnOlderOnesPayloadIsSeen) {
  for (std::uint64_t a = 5; a <= 8; ++a) put({.allocation = a, .number = 10 * a, .sector = 1});
  for (std::uint64_t a = 1; a <= 4; ++a) {
    put({.allocation = a, .number = 10 * a, .sector = 2, .blocks = 25});
    put({.allocation = a + 8, .number = 10 * a + 80, .sector = 9 + 4 * a});
  }
  EXPECT_EQ(taken(), "5:50 6:60 7:70 8:80 9:90 10:100 11:110 12:120");
}

TEST_F(TakenTracksOfARotatingDisk, NothingIsTakenOnANewDisk) { EXPECT_EQ(taken(), ""); }

}  // namespace
}  // namespace mariner::logging
