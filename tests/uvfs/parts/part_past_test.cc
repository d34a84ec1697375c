#include "uvfs/parts/part_past.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "ifsck/write_trace.h"
#include "tests/logging/temporary_directory.h"
#include "tests/uvfs/counted_past.h"

namespace mariner::uvfs {
namespace {

using ifsck::Past;
using ifsck::TracePast;
using Bytes = std::vector<std::byte>;

std::uint64_t rounds(std::uint64_t few) {
  const char* const more = std::getenv("MARINER_TEST_SEEDS");
  return more != nullptr ? std::strtoull(more, nullptr, 10) : few;
}

// A volume with random writes, and all its bytes at every moment.
class MadeVolumeHistory {
 public:
  static constexpr std::uint64_t kBlocks = 48;
  static constexpr std::uint64_t kBytes = kBlocks * kBlockBytes;

  explicit MadeVolumeHistory(std::mt19937_64& random) {
    Bytes now(kBytes);
    fill(now, random);
    std::ofstream(folder_.file("image"), std::ios::binary)
        .write(reinterpret_cast<const char*>(now.data()), kBytes);
    auto writer = ifsck::TraceWriter::create(folder_.file("trace"), kBytes).value();
    moments.push_back(now);
    written.emplace_back();
    for (std::uint64_t i = 1; i <= 30; ++i) {
      const std::uint64_t first = random() % kBlocks;
      const BlockRange range{
          Lbn{first}, BlockCount{1 + random() % std::min<std::uint64_t>(5, kBlocks - first)}};
      const auto bytes = std::span(now).subspan(to_bytes(range).offset, to_bytes(range).length);
      if (random() % 5 == 0) {
        std::ranges::fill(bytes, std::byte{0});
        EXPECT_TRUE(writer.zero(VersionTime{i * 10}, range).has_value());
      } else {
        fill(bytes, random);
        EXPECT_TRUE(writer.write(VersionTime{i * 10}, range.first, bytes).has_value());
      }
      moments.push_back(now);
      written.push_back(range);
    }
  }
  [[nodiscard]] TracePast past() {
    return TracePast::open(folder_.file("image"), folder_.file("trace")).value();
  }

  std::vector<Bytes> moments;
  std::vector<BlockRange> written;  // by the write of that number

 private:
  static void fill(std::span<std::byte> bytes, std::mt19937_64& random) {
    for (std::byte& each : bytes) each = static_cast<std::byte>(random());
  }
  logging::test::TemporaryDirectory folder_;
};

// Extents whose ends are multiples of `unit`, in any order.
std::vector<ByteRange> random_extents(std::mt19937_64& random, std::uint64_t unit) {
  std::set<std::uint64_t> cuts;
  const std::size_t count = 2 * (1 + random() % 5);
  while (cuts.size() < count) cuts.insert(random() % (MadeVolumeHistory::kBytes / unit + 1) * unit);
  std::vector<ByteRange> extents;
  for (auto each = cuts.begin(); each != cuts.end();) {
    const std::uint64_t begin = *each++;
    extents.push_back({begin, *each++ - begin});
  }
  std::ranges::shuffle(extents, random);
  return extents;
}

// The same by looking at every byte.
class Truth {
 public:
  Truth(const MadeVolumeHistory& history, const std::vector<ByteRange>& extents)
      : history_(history) {
    for (const ByteRange& each : extents) {
      for (std::uint64_t i = 0; i < each.length; ++i) places_.push_back(each.offset + i);
    }
  }
  [[nodiscard]] std::uint64_t blocks() const { return places_.size() / kBlockBytes; }
  [[nodiscard]] Bytes block(Lbn lbn, SequenceNumber at) const {
    Bytes bytes;
    for (std::uint64_t i = 0; i < kBlockBytes; ++i) {
      bytes.push_back(history_.moments[at.value][places_[lbn.byte_offset() + i]]);
    }
    return bytes;
  }
  [[nodiscard]] std::vector<Past::Version> versions(const std::vector<Lbn>& blocks,
                                                    SequenceNumber from, SequenceNumber to) {
    std::vector<Past::Version> all;
    for (const Lbn lbn : blocks) {
      if (lbn.value >= this->blocks()) continue;
      for (std::uint64_t i = from.value + 1; i <= to.value; ++i) {
        if (touches(i, lbn)) all.push_back({lbn, {i}, {i * 10}});
      }
    }
    return all;
  }
  [[nodiscard]] std::set<std::uint64_t> changed(SequenceNumber from, SequenceNumber to) {
    std::set<std::uint64_t> all;
    for (std::uint64_t i = from.value + 1; i <= to.value; ++i) {
      for (std::uint64_t lbn = 0; lbn < blocks(); ++lbn) {
        if (touches(i, Lbn{lbn})) all.insert(lbn);
      }
    }
    return all;
  }

 private:
  // Blocks of the volume in which a block's bytes are.
  [[nodiscard]] const std::set<std::uint64_t>& volume_blocks(Lbn lbn) {
    auto& found = on_volume_[lbn];
    if (found.empty()) {
      for (std::uint64_t i = 0; i < kBlockBytes; ++i) {
        found.insert(places_[lbn.byte_offset() + i] / kBlockBytes);
      }
    }
    return found;
  }
  bool touches(std::uint64_t write, Lbn lbn) {
    return std::ranges::any_of(volume_blocks(lbn), [&](std::uint64_t each) {
      return history_.written[write].contains(Lbn{each});
    });
  }

  const MadeVolumeHistory& history_;
  std::vector<std::uint64_t> places_;
  std::map<Lbn, std::set<std::uint64_t>> on_volume_;
};

void compare(MadeVolumeHistory& history, const std::vector<ByteRange>& extents,
             std::mt19937_64& random) {
  TracePast volume = history.past();
  CountedPast counted(volume);
  auto part = PartPast::open(counted, extents).value();
  Truth truth(history, extents);
  ASSERT_EQ(part.size_bytes(), truth.blocks() * kBlockBytes);
  const SequenceNumber newest{history.moments.size() - 1};
  const auto any_moment = [&] { return SequenceNumber{random() % (newest.value + 1)}; };

  // Every block at every moment, in any order, some at a time.
  std::vector<Past::Question> questions;
  for (std::uint64_t lbn = 0; lbn < truth.blocks(); ++lbn) {
    for (std::uint64_t at = 0; at <= newest.value; ++at) questions.push_back({Lbn{lbn}, {at}});
  }
  if (random() % 2 == 0) std::ranges::shuffle(questions, random);
  for (std::size_t done = 0; done < questions.size();) {
    const std::size_t count = std::min<std::size_t>(1 + random() % 40, questions.size() - done);
    const auto some = std::span(questions).subspan(done, count);
    Bytes bytes(count * kBlockBytes);
    const std::uint64_t before = counted.reads;
    ASSERT_TRUE(part.read(some, bytes).has_value());
    ASSERT_EQ(counted.reads, before + 1);
    for (std::size_t i = 0; i < count; ++i) {
      const Bytes expected = truth.block(some[i].block, some[i].at);
      ASSERT_TRUE(
          std::ranges::equal(std::span(bytes).subspan(i * kBlockBytes, kBlockBytes), expected))
          << some[i].block.value << " at " << some[i].at.value;
    }
    done += count;
  }
  for (int i = 0; i < 60; ++i) {
    SequenceNumber from = any_moment();
    SequenceNumber to = any_moment();
    if (from > to) std::swap(from, to);
    std::set<std::uint64_t> changed;
    std::optional<Lbn> end;
    for (const BlockRange& each : part.changed(from, to).value()) {
      ASSERT_FALSE(each.empty());
      ASSERT_TRUE(!end || *end < each.first);  // with gaps
      end = each.end();
      for (std::uint64_t j = 0; j < each.count.value; ++j) changed.insert(each.first.value + j);
    }
    ASSERT_EQ(changed, truth.changed(from, to));
    std::vector<Lbn> blocks;
    for (std::uint64_t lbn = 0; lbn < truth.blocks() + 3; ++lbn) {
      if (random() % 3 == 0) blocks.push_back(Lbn{lbn});
    }
    ASSERT_EQ(part.versions(blocks, from, to).value(), truth.versions(blocks, from, to));
  }
}

TEST(PartPastTest, IsItsBytesOfTheVolumeAtEveryMoment) {
  const std::uint64_t count = rounds(24);
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    std::mt19937_64 random(seed);
    MadeVolumeHistory history(random);
    for (const std::uint64_t unit :
         {std::uint64_t{kBlockBytes}, std::uint64_t{512}, std::uint64_t{1}}) {
      compare(history, random_extents(random, unit), random);
      ASSERT_FALSE(::testing::Test::HasFatalFailure()) << "seed " << seed << ", unit " << unit;
    }
  }
}

class OnePartTest : public ::testing::Test {
 protected:
  std::mt19937_64 random_{7};
  MadeVolumeHistory history_{random_};
  TracePast volume_ = history_.past();
  CountedPast counted_{volume_};
};

TEST_F(OnePartTest, BlocksThatAreBlocksOfTheVolumeAreReadIntoTheirPlace) {
  class Watching final : public ifsck::PastBehind {
   public:
    using PastBehind::PastBehind;
    Result<void> read(std::span<const Question> questions, std::span<std::byte> to) override {
      place = to.data();
      return PastBehind::read(questions, to);
    }
    const std::byte* place = nullptr;
  };
  Watching watching(volume_);
  const std::vector<ByteRange> extents{{40 * kBlockBytes, 3 * kBlockBytes}, {0, 2 * kBlockBytes}};
  auto part = PartPast::open(watching, extents).value();
  const std::vector<Past::Question> questions{{Lbn{2}, {3}}, {Lbn{3}, {3}}};
  Bytes bytes(2 * kBlockBytes);
  ASSERT_TRUE(part.read(questions, bytes).has_value());
  EXPECT_EQ(watching.place, bytes.data());
}

TEST_F(OnePartTest, ABlockThatTwoShareIsAskedForOnce) {
  const std::vector<ByteRange> extents{{63 * 512, 20 * kBlockBytes}};
  auto part = PartPast::open(counted_, extents).value();
  std::vector<Past::Question> questions;
  for (std::uint64_t lbn = 0; lbn < 20; ++lbn) questions.push_back({Lbn{lbn}, {5}});
  Bytes bytes(questions.size() * kBlockBytes);
  ASSERT_TRUE(part.read(questions, bytes).has_value());
  EXPECT_EQ(counted_.blocks, 21U);
}

TEST_F(OnePartTest, ARestThatIsNoBlockIsLeftOut) {
  const std::vector<ByteRange> extents{{0, 5 * kBlockBytes}, {45 * kBlockBytes, kBlockBytes - 512}};
  auto part = PartPast::open(counted_, extents).value();
  EXPECT_EQ(part.size_bytes(), 5U * kBlockBytes);
  for (const BlockRange& each : part.changed({0}, {30}).value()) EXPECT_LE(each.end(), Lbn{5});
  EXPECT_EQ(part.versions(std::vector{Lbn{5}}, {0}, {30}).value().size(), 0U);
}

TEST_F(OnePartTest, WhatIsBehindTheEndIsRefusedThoughTheVolumeHasIt) {
  for (const ByteRange extent : {ByteRange{0, 5 * kBlockBytes}, ByteRange{512, 5 * kBlockBytes}}) {
    auto part = PartPast::open(counted_, {&extent, 1}).value();
    const std::vector<Past::Question> questions{{Lbn{4}, {1}}, {Lbn{5}, {1}}};
    Bytes bytes(2 * kBlockBytes);
    const auto read = part.read(questions, bytes);
    ASSERT_FALSE(read.has_value());
    EXPECT_EQ(read.error().code, ErrorCode::kInvalidArgument);
    const std::vector<Past::Question> far{{Lbn{~std::uint64_t{0}}, {1}}};
    EXPECT_FALSE(part.read(far, std::span(bytes).first(kBlockBytes)).has_value());
  }
  EXPECT_EQ(counted_.reads, 0U);
}

TEST_F(OnePartTest, MomentsAreTheVolumes) {
  const ByteRange extent{512, 5 * kBlockBytes};
  auto part = PartPast::open(counted_, {&extent, 1}).value();
  EXPECT_EQ(part.reach().value(), volume_.reach().value());
  EXPECT_EQ(part.moment_of({105}).value(), SequenceNumber{10});
  EXPECT_EQ(part.time_of({10}).value(), VersionTime{100});
  EXPECT_EQ(part.first_break({0}, {30}).value(), SequenceNumber{});
  Bytes bytes(kBlockBytes);
  const std::vector<Past::Question> later{{Lbn{0}, {31}}};
  EXPECT_EQ(part.read(later, bytes).error().code, ErrorCode::kOutsideWindow);
}

TEST_F(OnePartTest, OfExtentsThatAreNotOfTheVolumeNoneIsMade) {
  const ByteRange extent{MadeVolumeHistory::kBytes - 512, 1024};
  const auto part = PartPast::open(counted_, {&extent, 1});
  ASSERT_FALSE(part.has_value());
  EXPECT_EQ(part.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(OnePartTest, AnEmptyPartHasNothing) {
  auto part = PartPast::open(counted_, {}).value();
  EXPECT_EQ(part.size_bytes(), 0U);
  EXPECT_EQ(part.changed({0}, {30}).value().size(), 0U);
  EXPECT_EQ(part.versions(std::vector{Lbn{0}}, {0}, {30}).value().size(), 0U);
}

}  // namespace
}  // namespace mariner::uvfs
