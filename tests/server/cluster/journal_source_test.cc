#include "server/cluster/journal_source.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "tests/server/cluster/journal_rig.h"

namespace mariner::cluster {
namespace {

using replication::LogSource;
using replication::WriteKind;
using replication::WriteMessage;
using replication::WriteRequest;
using test::LoggedRig;

class JournalSourceTest : public ::testing::Test {
 protected:
  Result<LogSource::Portion> fetch(std::uint64_t from, std::uint64_t to) {
    std::optional<Result<LogSource::Portion>> result;
    source_.fetch({from}, {to}, [&](Result<LogSource::Portion> r) { result = std::move(r); });
    journal_.run();
    if (!result) return Error{ErrorCode::kAborted, "nothing was said"};
    return *std::move(result);
  }
  // The numbers that come, a bar behind each portion; or what is wrong.
  std::string numbers(std::uint64_t from, std::uint64_t to) {
    std::string text;
    while (from < to) {
      const auto portion = fetch(from, to);
      if (!portion) return std::string(error_code_name(portion.error().code));
      EXPECT_GT(portion->through.value, from);
      for (const WriteMessage& write : portion->writes) {
        text += std::to_string(write.stamp.sequence.value) + " ";
      }
      from = portion->through.value;
      text += "| ";
    }
    EXPECT_EQ(from, to);
    return text;
  }

  test::JournalRig journal_;
  JournalSource source_{*journal_.part, journal_.logged.log_reader};
};

TEST_F(JournalSourceTest, AWriteComesAsItWent) {
  journal_.write(1, {{7}, {3}}, 'a');
  WriteRequest repeated;
  repeated.kind = WriteKind::kRepeated;
  repeated.has_head = repeated.has_tail = true;
  repeated.extent = {{20}, {100}};
  repeated.payload = LoggedRig::blocks_of('p', 3);
  journal_.write(2, repeated);
  WriteRequest zeros;
  zeros.kind = WriteKind::kZero;
  zeros.has_tail = true;
  zeros.extent = {{200}, {9}};
  zeros.payload = LoggedRig::blocks_of('t', 1);
  journal_.write(3, zeros);
  journal_.zero(4, {{300}, {5}});

  const auto portion = fetch(0, 4);
  ASSERT_TRUE(portion);
  EXPECT_EQ(portion->through, SequenceNumber{4});
  ASSERT_EQ(portion->writes.size(), 4u);
  for (std::uint64_t i = 0; i < 4; ++i) {
    const WriteMessage& message = portion->writes[i];
    EXPECT_EQ(message.volume, LoggedRig::kVolume);
    EXPECT_EQ(message.stamp.epoch, Epoch{1});
    EXPECT_EQ(message.stamp.sequence, SequenceNumber{i + 1});
    EXPECT_EQ(message.stamp.time, VersionTime{1001 + i});
  }
  const auto text = [&](std::size_t i) {
    return LoggedRig::text_of(portion->writes[i].write.payload.bytes());
  };
  EXPECT_EQ(portion->writes[0].write.kind, WriteKind::kData);
  EXPECT_EQ(portion->writes[0].write.extent, (BlockRange{{7}, {3}}));
  EXPECT_EQ(text(0), "aaa");
  EXPECT_EQ(portion->writes[1].write.kind, WriteKind::kRepeated);
  EXPECT_TRUE(portion->writes[1].write.has_head && portion->writes[1].write.has_tail);
  EXPECT_EQ(portion->writes[1].write.extent, (BlockRange{{20}, {100}}));
  EXPECT_EQ(text(1), "ppp");
  EXPECT_EQ(portion->writes[2].write.kind, WriteKind::kZero);
  EXPECT_FALSE(portion->writes[2].write.has_head);
  EXPECT_TRUE(portion->writes[2].write.has_tail);
  EXPECT_EQ(text(2), "t");
  EXPECT_EQ(portion->writes[3].write.extent, (BlockRange{{300}, {5}}));
  EXPECT_EQ(portion->writes[3].write.payload.length, 0u);
}

TEST_F(JournalSourceTest, VoidsAndRollbacksAreLeftOut) {
  journal_.write(1, {{0}, {1}}, 'a');
  journal_.skip(2, 10);
  journal_.write(11, {{0}, {1}}, 'b');
  journal_.roll_back(12, 10);
  journal_.write(13, {{0}, {1}}, 'c');
  journal_.skip(14, 20);
  EXPECT_EQ(numbers(0, 20), "1 11 13 | ");
  EXPECT_EQ(numbers(1, 13), "11 13 | ");
  EXPECT_EQ(numbers(11, 12), "| ");
  EXPECT_EQ(numbers(13, 20), "| ");
}

TEST_F(JournalSourceTest, APortionHasSoManyWritesAtMost) {
  std::string expected;
  for (std::uint64_t i = 1; i <= JournalSource::kPortionWritesMax + 2; ++i) {
    journal_.zero(i, {{i}, {1}});
    expected += std::to_string(i) + " ";
    if (i == JournalSource::kPortionWritesMax) {
      EXPECT_EQ(numbers(0, i), expected + "| ");
      expected += "| ";
    }
  }
  EXPECT_EQ(numbers(0, JournalSource::kPortionWritesMax + 2), expected + "| ");
}

TEST_F(JournalSourceTest, APortionHasSoManyBytesAtMostButOneWriteAtLeast) {
  const std::uint64_t all = JournalSource::kPortionBytesMax / kBlockBytes;
  journal_.write(1, {{0}, {all / 2}}, 'a');
  journal_.write(2, {{0}, {all / 2}}, 'b');
  journal_.write(3, {{0}, {1}}, 'c');
  journal_.write(4, {{0}, {all}}, 'd');
  journal_.write(5, {{0}, {1}}, 'e');
  EXPECT_EQ(numbers(0, 5), "1 2 | 3 | 4 | 5 | ");
}

TEST_F(JournalSourceTest, WhatIsNotSettledOrNoMoreIsToldAsThat) {
  journal_.write(1, {{0}, {1}}, 'a');
  journal_.logged.disk.hold();
  journal_.write(2, {{0}, {1}}, 'b');
  EXPECT_EQ(numbers(0, 2), "unavailable");
  journal_.logged.disk.release();
  journal_.run();
  EXPECT_EQ(numbers(0, 2), "1 2 | ");
  journal_.part->logged().index().forget_through({1}, 0);
  EXPECT_EQ(numbers(0, 2), "outside-window") << "and not as a void";
  EXPECT_EQ(numbers(1, 2), "2 | ");
}

TEST_F(JournalSourceTest, WhatIsGivenUpMeanwhileIsNoVoid) {
  journal_.write(1, {{0}, {1}}, 'a');
  journal_.write(2, {{0}, {1}}, 'b');
  journal_.logged.disk.hold();
  std::optional<Result<LogSource::Portion>> result;
  source_.fetch({0}, {2}, [&](Result<LogSource::Portion> r) { result = std::move(r); });
  EXPECT_EQ(source_.in_flight(), 1u);
  journal_.part->logged().index().forget_through({1}, 0);
  journal_.logged.disk.release();
  journal_.run();
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->error().code, ErrorCode::kOutsideWindow);
  EXPECT_EQ(source_.in_flight(), 0u);
}

TEST_F(JournalSourceTest, DamageIsAnError) {
  journal_.write(1, {{0}, {1}}, 'a');
  journal_.write(2, {{1}, {1}}, 'b');
  const auto runs = journal_.logged.index.answers().locate({{1}, {1}}, {2});
  const logging::LogLocation at = runs.at(0).location;
  journal_.logged.disk.flip_bit(
      at.payload_sector() * journal_.logged.superblock.batch_format().sector_bytes + 17, 3);
  EXPECT_EQ(numbers(0, 1), "1 | ");
  EXPECT_EQ(numbers(0, 2), "corrupt");
}

}  // namespace
}  // namespace mariner::cluster
