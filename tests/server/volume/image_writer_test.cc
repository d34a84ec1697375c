#include "server/volume/image_writer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/volume/telling_disk.h"
#include "tests/support/faulty_disk.h"
#include "tests/support/manual_executor.h"

namespace mariner::volume {
namespace {

class ImageWriter : public ::testing::Test {
 protected:
  ImageChange stored(BlockRange range, std::uint8_t value, bool repeated = false) {
    ImageChange change;
    change.range = range;
    change.repeated = repeated;
    change.payload = Payload::allocate(repeated ? kBlockBytes : range.count.bytes());
    for (std::byte& b : change.payload.bytes()) b = std::byte{value};
    return change;
  }
  static ImageChange zeros(BlockRange range) {
    ImageChange change;
    change.range = range;
    return change;
  }
  Result<void> write(std::vector<ImageChange> changes) { return write_image(image_, changes); }
  std::uint8_t at(std::uint64_t block) {
    return static_cast<std::uint8_t>(disk_.bytes({block * kBlockBytes, 1})[0]);
  }

  test::ManualExecutor executor_;
  test::FaultyDisk disk_{executor_, {.size_bytes = 2000 * kBlockBytes}};
  std::vector<std::string> calls_;
  test::TellingDisk image_{disk_, [this](ByteRange range, bool discards) {
                             calls_.push_back((discards ? "hole " : "write ") +
                                              std::to_string(range.offset / kBlockBytes) + "+" +
                                              std::to_string(range.length / kBlockBytes));
                           }};
};

TEST_F(ImageWriter, NeighboursGoOutTogether) {
  ASSERT_TRUE(write({stored({{2}, {2}}, 1), stored({{4}, {1}}, 2), stored({{7}, {1}}, 3)}));
  EXPECT_EQ(calls_, (std::vector<std::string>{"write 2+3", "write 7+1"}));
  EXPECT_EQ(at(3), 1);
  EXPECT_EQ(at(4), 2);
  EXPECT_EQ(at(7), 3);
}

TEST_F(ImageWriter, NeighbouringZerosAreOneHoleInItsPlaceInTheOrder) {
  ASSERT_TRUE(write({stored({{0}, {12}}, 9)}));
  calls_.clear();
  ASSERT_TRUE(write({stored({{0}, {1}}, 1), zeros({{1}, {2}}), zeros({{3}, {2}}), zeros({{6}, {1}}),
                     stored({{7}, {1}}, 2)}));
  EXPECT_EQ(calls_, (std::vector<std::string>{"write 0+1", "hole 1+4", "hole 6+1", "write 7+1"}));
  EXPECT_EQ(at(4), 0);
  EXPECT_EQ(at(5), 9);
  EXPECT_EQ(at(6), 0);
}

TEST_F(ImageWriter, ARepeatedBlockFillsItsRangeInPieces) {
  ASSERT_TRUE(write({stored({{1}, {1025}}, 5, true)}));
  EXPECT_EQ(calls_, (std::vector<std::string>{"write 1+512", "write 513+512", "write 1025+1"}));
  EXPECT_EQ(at(0), 0);
  EXPECT_EQ(at(1025), 5);
  EXPECT_EQ(at(1026), 0);
}

TEST_F(ImageWriter, TheDeviceBeginsWithAFewWritesAtATime) {
  image_.begun = [this](ByteRange range) {
    calls_.push_back("begin " + std::to_string(range.offset / kBlockBytes) + "+" +
                     std::to_string(range.length / kBlockBytes));
  };
  std::vector<ImageChange> changes;
  for (std::uint64_t i = 0; i < 70; ++i) changes.push_back(stored({{2 * i}, {1}}, 7));
  ASSERT_TRUE(write_image_and_begin(image_, changes, Begin::kMany));
  ASSERT_EQ(calls_.size(), 73u);
  EXPECT_EQ(calls_[32], "begin 0+63");
  EXPECT_EQ(calls_[65], "begin 64+63");
  EXPECT_EQ(calls_[72], "begin 128+11");  // and with what is left in the end
  EXPECT_EQ(at(138), 7);

  calls_.clear();
  ASSERT_TRUE(write_image_and_begin(
      image_, {stored({{0}, {300}}, 1), zeros({{300}, {4}}), stored({{400}, {10}}, 2)},
      Begin::kMany));
  EXPECT_EQ(calls_, (std::vector<std::string>{"write 0+300", "begin 0+300", "hole 300+4",
                                              "write 400+10", "begin 400+10"}));
  for (const Begin few : {Begin::kFew, Begin::kFewAndYield}) {
    calls_.clear();
    ASSERT_TRUE(write_image_and_begin(image_, changes, few));
    ASSERT_EQ(calls_.size(), 79u);
    EXPECT_EQ(calls_[8], "begin 0+15");
    EXPECT_EQ(calls_[17], "begin 16+15");
    EXPECT_EQ(calls_[78], "begin 128+11");
  }
  calls_.clear();
  ASSERT_TRUE(write(std::move(changes)));
  EXPECT_EQ(calls_.size(), 70u);  // nobody asked for it
}

TEST_F(ImageWriter, TwoRoundsAreWithTheDeviceAtATime) {
  const auto text = [](ByteRange range) { return std::to_string(range.offset / kBlockBytes); };
  image_.begun = [&](ByteRange range) { calls_.push_back("begin " + text(range)); };
  image_.awaited = [&](ByteRange range) {
    calls_.push_back("await " + text(range));
    return Result<void>{};
  };
  std::vector<ImageChange> changes;
  for (std::uint64_t i = 0; i < 128; ++i) changes.push_back(stored({{2 * i}, {1}}, 7));
  ASSERT_TRUE(write_image_and_begin(image_, changes, Begin::kMany));
  std::erase_if(calls_, [](const std::string& call) { return call.starts_with("write"); });
  EXPECT_EQ(calls_, (std::vector<std::string>{"begin 0", "begin 64", "await 0", "begin 128",
                                              "await 64", "begin 192"}));
}

TEST_F(ImageWriter, AnErrorOfWhatWasBegunIsTold) {
  image_.awaited = [](ByteRange) { return Result<void>(Error{ErrorCode::kIo, "a bad sector"}); };
  std::vector<ImageChange> changes;
  for (std::uint64_t i = 0; i < 128; ++i) changes.push_back(stored({{2 * i}, {1}}, 7));
  const Result<void> written = write_image_and_begin(image_, changes, Begin::kMany);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().message, "a bad sector");
}

TEST_F(ImageWriter, LongPiecesThatOnlyOverwriteGoPastTheCache) {
  image_.places = [](ByteRange range) { return range.end() <= 1500 * kBlockBytes; };
  image_.past_cache = [this](auto writes) {
    calls_.push_back("past the cache " + std::to_string(writes.size()));
  };
  image_.begun = [this](ByteRange) { calls_.emplace_back("begin"); };
  ASSERT_TRUE(write_image_and_begin(
      image_,
      {stored({{0}, {63}}, 1), stored({{100}, {64}}, 2), stored({{200}, {60}}, 3),
       stored({{260}, {4}}, 4), zeros({{300}, {4}}), stored({{1450}, {100}}, 5)},
      Begin::kMany));
  EXPECT_EQ(calls_, (std::vector<std::string>{"write 0+63", "hole 300+4", "write 1450+100", "begin",
                                              "past the cache 2", "write 100+64", "write 200+64"}));
  for (const auto& [block, value] : std::vector<std::pair<std::uint64_t, std::uint8_t>>{
           {62, 1}, {163, 2}, {259, 3}, {263, 4}, {1549, 5}}) {
    EXPECT_EQ(at(block), value) << block;
  }
  calls_.clear();
  std::vector<ImageChange> many;
  for (std::uint64_t i = 0; i < 20; ++i) many.push_back(stored({{70 * i}, {64}}, 6));
  ASSERT_TRUE(write_image_and_begin(image_, many, Begin::kMany));
  ASSERT_EQ(calls_.size(), 25u);
  EXPECT_EQ(calls_[0], "past the cache 4") << "1 MiB";
  EXPECT_EQ(calls_[5], "past the cache 4");
  calls_.clear();
  std::vector<ImageChange> row;
  for (std::uint64_t i = 0; i < 9; ++i) row.push_back(stored({{100 * i}, {100}}, 7));
  ASSERT_TRUE(write_image_and_begin(image_, row, Begin::kMany));
  EXPECT_EQ(calls_,
            (std::vector<std::string>{"past the cache 1", "write 0+300", "past the cache 1",
                                      "write 300+300", "past the cache 1", "write 600+300"}))
      << "cut, where it is longer";
  calls_.clear();
  ASSERT_TRUE(write(std::move(many)));
  EXPECT_EQ(calls_.size(), 20u) << "nobody asked for it";
}

TEST_F(ImageWriter, PastTheCacheItIsTheSame) {
  ASSERT_TRUE(write({stored({{0}, {12}}, 9)}));
  calls_.clear();
  ASSERT_TRUE(write_image_past_cache(
      image_, {stored({{0}, {1}}, 1), zeros({{1}, {2}}), stored({{4}, {1}}, 2),
               stored({{5}, {2}}, 3, true), stored({{9}, {1}}, 4)}));
  EXPECT_EQ(calls_, (std::vector<std::string>{"hole 1+2", "write 0+1", "write 4+3", "write 9+1"}));
  for (const auto& [block, value] : std::vector<std::pair<std::uint64_t, std::uint8_t>>{
           {0, 1}, {1, 0}, {2, 0}, {3, 9}, {4, 2}, {5, 3}, {6, 3}, {7, 9}, {9, 4}, {10, 9}}) {
    EXPECT_EQ(at(block), value) << block;
  }
}

TEST_F(ImageWriter, AnErrorPastTheCacheIsTold) {
  disk_.fail_writes(1, test::FaultyDisk::Remains::kNothing);
  EXPECT_FALSE(write_image_past_cache(image_, {stored({{1}, {1}}, 1), stored({{3}, {1}}, 1)}));
}

TEST_F(ImageWriter, AnErrorEndsIt) {
  disk_.fail_writes(1, test::FaultyDisk::Remains::kNothing);
  EXPECT_FALSE(write({stored({{1}, {1}}, 1), stored({{3}, {1}}, 1)}));
  EXPECT_EQ(calls_.size(), 1u);
}

}  // namespace
}  // namespace mariner::volume
