#include "logging/log_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>

#include "tests/logging/log_testing.h"
#include "tests/support/watched_disk.h"

namespace mariner::logging {
namespace {

using test::LogRig;
using test::payload_of;
using test::record_of;

class LogReaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(rig_.open());
    for (std::uint64_t i = 1; i <= 3; ++i) rig_.append(record_of(1, i, 4));
    rig_.executor.run_until_idle();
    ASSERT_EQ(rig_.outcomes.size(), 3u);
  }
  LogLocation at(std::size_t i) { return *rig_.outcomes[i].result; }

  // The same read, blocking and asynchronous; both must agree. The text of the error, or "ok".
  std::string read(LogLocation location, std::uint32_t volume, std::uint64_t sequence,
                   std::uint32_t first = 0, std::uint32_t blocks = 4) {
    Payload blocking = Payload::allocate(std::size_t{blocks} * kBlockBytes);
    Payload later = Payload::allocate(std::size_t{blocks} * kBlockBytes);
    LogRead request{location, VolumeId{volume}, SequenceNumber{sequence}, first, blocking.bytes()};
    const Result<void> expected = read_log_blocking(rig_.disks, request);
    request.to = later.bytes();
    std::optional<Result<void>> found;
    rig_.reader->read(request, [&](Result<void> result) { found = std::move(result); });
    EXPECT_FALSE(found.has_value()) << "a completion runs after the call";
    rig_.executor.run_until_idle();
    EXPECT_TRUE(found.has_value());
    if (!found) return "no completion";
    const std::string text = *found ? "ok" : to_string(found->error());
    EXPECT_EQ(text, expected ? "ok" : to_string(expected.error()));
    if (*found) {
      const Payload payload = payload_of(sequence, 4);
      const auto part = payload.bytes().subspan(std::size_t{first} * kBlockBytes,
                                                std::size_t{blocks} * kBlockBytes);
      EXPECT_TRUE(std::ranges::equal(part, later.bytes()));
      EXPECT_TRUE(std::ranges::equal(part, blocking.bytes()));
    }
    return text;
  }
  // A reader without remembered header areas.
  void forget() { rig_.reader = std::make_unique<LogReader>(rig_.disks); }
  static bool is_corrupt(const std::string& text) { return text.starts_with("corrupt:"); }

  LogRig rig_;
};

TEST_F(LogReaderTest, ReadsRecordsAndPartsOfThem) {
  EXPECT_EQ(read(at(0), 1, 1), "ok");
  EXPECT_EQ(read(at(2), 1, 3), "ok");
  EXPECT_EQ(read(at(1), 1, 2, 1, 2), "ok");
  EXPECT_EQ(read(at(1), 1, 2, 3, 1), "ok");
}

TEST_F(LogReaderTest, AnotherIdentityIsCorrupt) {
  EXPECT_TRUE(is_corrupt(read(at(0), 1, 2)));
  EXPECT_TRUE(is_corrupt(read(at(0), 2, 1)));
}

// What is logged again has no sequence number: its place in the order tells it from others.
TEST_F(LogReaderTest, AnotherOrdinalIsCorrupt) {
  Payload to = Payload::allocate(kBlockBytes);
  for (const auto& [ordinal, whole] :
       {std::pair<std::uint64_t, bool>{0, true}, {2, true}, {1, false}, {3, false}}) {
    const LogRead request{at(1), VolumeId{1}, SequenceNumber{2}, 0, to.bytes(), ordinal};
    const Result<void> read = read_log_blocking(rig_.disks, request);
    EXPECT_EQ(read.has_value(), whole) << ordinal;
    if (!whole) {
      EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
    }
  }
}

TEST_F(LogReaderTest, AnotherPlaceIsCorrupt) {
  LogLocation slot = at(0);
  slot.slot = 1;
  EXPECT_TRUE(is_corrupt(read(slot, 1, 1)));
  slot.slot = 3;
  EXPECT_TRUE(is_corrupt(read(slot, 1, 1)));
  LogLocation block = at(0);
  block.batch_sector += 1;
  EXPECT_TRUE(is_corrupt(read(block, 1, 1)));
  LogLocation offset = at(0);
  offset.payload_offset += 1;
  EXPECT_TRUE(is_corrupt(read(offset, 1, 1)));
  LogLocation longer = at(0);
  longer.header_sectors = 2;
  EXPECT_TRUE(is_corrupt(read(longer, 1, 1)));
}

TEST_F(LogReaderTest, MoreThanThePayloadIsCorrupt) {
  EXPECT_TRUE(is_corrupt(read(at(0), 1, 1, 1, 4)));
  EXPECT_TRUE(is_corrupt(read(at(0), 1, 1, 4, 1)));
}

TEST_F(LogReaderTest, AFlippedPayloadBitIsCorruptInItsBlockOnly) {
  rig_.disk.flip_bit((at(1).payload_sector() + 2) * kBlockBytes + 77, 3);
  EXPECT_TRUE(is_corrupt(read(at(1), 1, 2)));
  EXPECT_TRUE(is_corrupt(read(at(1), 1, 2, 2, 1)));
  EXPECT_EQ(read(at(1), 1, 2, 0, 2), "ok");
  EXPECT_EQ(read(at(1), 1, 2, 3, 1), "ok");
  EXPECT_EQ(read(at(0), 1, 1), "ok");
}

TEST_F(LogReaderTest, AFlippedHeaderBitIsCorruptForItsWholeBatch) {
  rig_.disk.flip_bit(at(0).batch_sector * kBlockBytes + 3000, 0);
  forget();
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(is_corrupt(read(at(i), 1, i + 1)));
}

TEST_F(LogReaderTest, AWriteThatLandedThereByMistakeIsCorrupt) {
  rig_.disk.misdirect_next_write(at(0).batch_sector * kBlockBytes);
  rig_.append_batches(4, 1, 2);
  forget();
  EXPECT_TRUE(is_corrupt(read(at(0), 1, 1)));
  const LogLocation lost{.batch_sector = at(0).batch_sector + 13,
                         .payload_offset = 1,
                         .slot = 0,
                         .header_sectors = 1,
                         .disk = 0};
  EXPECT_TRUE(is_corrupt(read(lost, 1, 4, 0, 2)));
}

TEST_F(LogReaderTest, AWriteThatNeverLandedIsCorrupt) {
  rig_.disk.drop_next_write();
  const auto lost = rig_.append_batches(4, 1, 4);
  EXPECT_TRUE(is_corrupt(read(lost[0], 1, 4)));
}

TEST_F(LogReaderTest, AnErrorOfTheDiskIsThatError) {
  rig_.disk.fail_reads({at(1).payload_sector() * kBlockBytes, kBlockBytes});
  EXPECT_TRUE(read(at(1), 1, 2).starts_with("io:"));
  rig_.disk.fail_reads({at(1).batch_sector * kBlockBytes, kBlockBytes});
  EXPECT_TRUE(read(at(0), 1, 1).starts_with("io:"));
}

TEST_F(LogReaderTest, TheErrorNamesTheRecord) {
  EXPECT_EQ(read(at(2), 7, 8),
            "corrupt: log disk 0, sector 257, record 2: another record stands there (volume 7, "
            "write 8 was expected)");
}

TEST_F(LogReaderTest, RemembersVerifiedHeaderAreas) {
  EXPECT_EQ(read(at(0), 1, 1), "ok");
  rig_.disk.fail_reads({at(0).batch_sector * kBlockBytes, kBlockBytes});
  Payload to = Payload::allocate(kBlockBytes);
  std::optional<bool> ok;
  rig_.reader->read({at(1), VolumeId{1}, SequenceNumber{2}, 0, to.bytes()},
                    [&](const Result<void>& result) { ok = result.has_value(); });
  rig_.executor.run_until_idle();
  EXPECT_EQ(ok, true);
}

TEST_F(LogReaderTest, RemembersNoMoreThanItsBound) {
  constexpr std::size_t kAreas = 200;
  rig_.reader = std::make_unique<LogReader>(rig_.disks, kAreas * kBlockBytes);
  const auto locations = rig_.append_batches(10, kAreas + 1);
  for (const LogLocation& location : locations) ASSERT_EQ(location.header_sectors, 1u);
  Payload to = Payload::allocate(kBlockBytes);
  const auto succeeds = [&](std::size_t i) {
    bool ok = false;
    rig_.reader->read({locations[i], VolumeId{1}, SequenceNumber{10 + i}, 0, to.bytes()},
                      [&](const Result<void>& result) { ok = result.has_value(); });
    rig_.executor.run_until_idle();
    return ok;
  };
  for (std::size_t i = 0; i < locations.size(); ++i) ASSERT_TRUE(succeeds(i));
  for (const LogLocation& location : locations) {
    rig_.disk.flip_bit(location.batch_sector * kBlockBytes + 100, 0);
  }
  EXPECT_FALSE(succeeds(0)) << "the oldest was given up";
  EXPECT_TRUE(succeeds(1));
  EXPECT_TRUE(succeeds(locations.size() - 1));
}

TEST_F(LogReaderTest, ManyReadsAtOnce) {
  std::vector<Payload> buffers;
  int done = 0;
  for (int i = 0; i < 100; ++i) {
    const auto record = static_cast<std::size_t>(i) % 3;
    buffers.push_back(Payload::allocate(4 * kBlockBytes));
    rig_.reader->read(
        {at(record), VolumeId{1}, SequenceNumber{record + 1}, 0, buffers.back().bytes()},
        [&](const Result<void>& result) { done += result.has_value() ? 1 : 0; });
  }
  rig_.executor.run_until_idle();
  EXPECT_EQ(done, 100);
}

// Several reads at once, beside the same ones each by itself; what the disk was asked for.
class LogReaderEachTest : public LogReaderTest {
 protected:
  struct Wanted {
    LogLocation location;
    std::uint64_t sequence = 0;
    std::uint32_t first = 0;
    std::uint32_t blocks = 1;
  };
  struct Answer {
    std::vector<std::string> texts;  // "ok", or what was wrong
    std::vector<Payload> bytes;
  };
  void watch() {
    LogDisks::Entry entry = rig_.disks.find(0).value();
    entry.disk = LogDisks::not_owned(watched_);
    rig_.disks.remove(0);
    rig_.disks.add(0, entry);
    forget();
  }
  Answer each(const std::vector<Wanted>& wanted) {
    Answer answer;
    std::vector<LogRead> reads;
    for (const Wanted& one : wanted) {
      answer.bytes.push_back(Payload::zeroed(std::size_t{one.blocks} * kBlockBytes));
      reads.push_back({one.location, VolumeId{1}, SequenceNumber{one.sequence}, one.first,
                       answer.bytes.back().bytes()});
    }
    rig_.reader->read_each(std::move(reads), [&](const std::vector<Result<void>>& results) {
      for (const auto& result : results) {
        answer.texts.push_back(result ? "ok" : to_string(result.error()));
      }
    });
    rig_.executor.run_until_idle();
    EXPECT_EQ(answer.texts.size(), wanted.size());
    return answer;
  }
  void expect_as_each_by_itself(const std::vector<Wanted>& wanted) {
    const Answer answer = each(wanted);
    ASSERT_EQ(answer.texts.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const Wanted& one = wanted[i];
      const Payload alone = Payload::allocate(std::size_t{one.blocks} * kBlockBytes);
      std::string text;
      Payload to = alone;
      rig_.reader->read(
          {one.location, VolumeId{1}, SequenceNumber{one.sequence}, one.first, to.bytes()},
          [&](const Result<void>& r) { text = r ? "ok" : to_string(r.error()); });
      rig_.executor.run_until_idle();
      EXPECT_EQ(answer.texts[i], text) << i;
      if (text == "ok") {
        EXPECT_TRUE(std::ranges::equal(answer.bytes[i].bytes(), alone.bytes())) << i;
      }
    }
  }
  std::vector<Wanted> all_of(const std::vector<LogLocation>& locations, std::uint64_t sequence) {
    std::vector<Wanted> wanted;
    for (std::size_t i = 0; i < locations.size(); ++i) {
      wanted.push_back({locations[i], sequence + i});
    }
    return wanted;
  }

  mariner::test::WatchedDisk watched_{rig_.disk};
};

TEST_F(LogReaderEachTest, AreAsEachByItself) {
  const auto more = rig_.append_batches(10, 40, 3);
  std::vector<Wanted> wanted = all_of(more, 10);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    wanted[i].first = static_cast<std::uint32_t>(i % 3);
  wanted.push_back({at(1), 2, 1, 3});
  wanted.push_back({at(1), 2, 0, 4});
  wanted.push_back({at(0), 1, 3, 1});
  wanted.push_back({at(0), 7});        // another record stands there
  wanted.push_back({at(2), 3, 3, 2});  // it is shorter
  std::ranges::shuffle(wanted, std::mt19937_64(1));
  expect_as_each_by_itself(wanted);
  forget();
  expect_as_each_by_itself(wanted);
}

TEST_F(LogReaderEachTest, AreReadInPieces) {
  const auto more = rig_.append_batches(10, 100);
  watch();
  std::vector<Wanted> wanted = all_of(more, 10);
  std::ranges::reverse(wanted);
  for (const std::string& text : each(wanted).texts) EXPECT_EQ(text, "ok");
  // A header area and a block for each.
  const std::uint64_t bytes = 100 * 2 * kBlockBytes;
  EXPECT_EQ(watched_.bytes_read(), bytes);
  EXPECT_EQ(watched_.reads().size(), bytes / LogReader::kPieceBytesMax + 1);
  // What lies between is read for nothing, if it is little.
  watched_.forget();
  const std::size_t near = LogReader::kGapBytesMax / (2 * kBlockBytes);
  (void)each({{more[0], 10}, {more[near], 10 + near}});
  EXPECT_EQ(watched_.reads().size(), 1u);
  watched_.forget();
  (void)each({{more[0], 10}, {more[near + 2], 12 + near}});
  EXPECT_EQ(watched_.reads().size(), 2u);
}

TEST_F(LogReaderEachTest, DamageIsOfItsRecordAlone) {
  const auto more = rig_.append_batches(10, 30);
  rig_.disk.flip_bit(more[4].payload_sector() * kBlockBytes + 7, 1);
  rig_.disk.flip_bit(more[9].batch_sector * kBlockBytes + 100, 1);
  rig_.disk.fail_reads({more[15].payload_sector() * kBlockBytes, kBlockBytes});
  const std::vector<Wanted> wanted = all_of(more, 10);
  const Answer answer = each(wanted);
  for (std::size_t i = 0; i < more.size(); ++i) {
    EXPECT_EQ(is_corrupt(answer.texts[i]), i == 4 || i == 9) << i << answer.texts[i];
    EXPECT_EQ(answer.texts[i].starts_with("io:"), i == 15) << i << answer.texts[i];
  }
  expect_as_each_by_itself(wanted);
}

TEST_F(LogReaderEachTest, ADiskThatIsNotThereIsSaid) {
  LogLocation elsewhere = at(0);
  elsewhere.disk = 3;
  const Answer answer = each({{at(0), 1}, {elsewhere, 1}, {at(2), 3}});
  EXPECT_EQ(answer.texts[0], "ok");
  EXPECT_TRUE(answer.texts[1].starts_with("unavailable:")) << answer.texts[1];
  EXPECT_EQ(answer.texts[2], "ok");
}

// What is known of a batch may be of an earlier use of its track.
TEST_F(LogReaderEachTest, WhatWasKnownIsReadAgainIfItDoesNotFit) {
  EXPECT_EQ(read(at(0), 1, 1), "ok");
  const auto more = rig_.append_batches(10, 1);
  EXPECT_EQ(read(more[0], 1, 10, 0, 1), "ok");
  rig_.disk.misdirect_next_write(more[0].batch_sector * kBlockBytes);
  rig_.append_batches(11, 1);
  const std::string text = each({{at(0), 1}, {more[0], 11}}).texts[1];
  EXPECT_TRUE(is_corrupt(text)) << text;  // its own address is wrong
  EXPECT_EQ(each({{at(0), 1, 2}, {more[0], 10}}).texts[0], "ok");
}

}  // namespace
}  // namespace mariner::logging
