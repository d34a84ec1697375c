#include "ifsck/write_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>

#include "proto/bytes.h"
#include "tests/logging/temporary_directory.h"

namespace mariner::ifsck {
namespace {

constexpr std::uint64_t kVolume = 1u << 20;

std::vector<std::byte> filled(std::size_t blocks, int value) {
  return std::vector<std::byte>(blocks * kBlockBytes, static_cast<std::byte>(value));
}

class WriteTraceTest : public ::testing::Test {
 protected:
  WriteTraceTest() {
    std::ofstream image(folder_.file("image"), std::ios::binary);
    const auto bytes = filled(16, 'i');  // shorter than the volume
    image.write(reinterpret_cast<const char*>(bytes.data()),
                static_cast<std::streamsize>(bytes.size()));
  }
  TraceWriter create() { return TraceWriter::create(folder_.file("trace"), kVolume).value(); }
  TracePast open() { return TracePast::open(folder_.file("image"), folder_.file("trace")).value(); }
  static char first_byte(TracePast& past, std::uint64_t block, std::uint64_t at) {
    std::vector<std::byte> bytes(kBlockBytes);
    const Past::Question question{{block}, {at}};
    EXPECT_TRUE(past.read(std::span(&question, 1), bytes).has_value());
    EXPECT_TRUE(std::ranges::all_of(bytes, [&](std::byte each) { return each == bytes[0]; }));
    return static_cast<char>(bytes[0]);
  }
  std::vector<char> file() {
    std::ifstream in(folder_.file("trace"), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // A file of them, each of one block.
  std::vector<char> three_records() {
    TraceWriter writer = create();
    for (const char byte : {'a', 'b', 'c'}) {
      const VersionTime time{static_cast<std::uint64_t>(byte)};
      EXPECT_TRUE(writer.write(time, {0}, filled(1, byte)).has_value());
    }
    return file();
  }
  void put(const std::vector<char>& bytes) {
    std::ofstream(folder_.file("trace"), std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

  logging::test::TemporaryDirectory folder_;
};

TEST_F(WriteTraceTest, BeginsAsTheFormatSays) {
  const TraceBytes head = pack_trace_head(kVolume);
  EXPECT_TRUE(std::ranges::equal(
      std::span(head).first(24),
      as_byte_span(std::string_view("MRNTRACE\1\0\0\0\0\0\0\0\0\0\x10\0\0\0\0\0", 24))));
  EXPECT_EQ(parse_trace_head(head).value(), kVolume);
}

TEST_F(WriteTraceTest, EachMomentIsWhatWasWrittenUpToThen) {
  TraceWriter writer = create();
  EXPECT_EQ(writer.write({100}, {2}, filled(2, 'a')).value().value, 1u);
  EXPECT_EQ(writer.write({200}, {3}, filled(1, 'b')).value().value, 2u);
  EXPECT_EQ(writer.zero({300}, {{0}, {256}}).value().value, 3u);
  EXPECT_EQ(writer.write({400}, {2}, filled(1, 'c')).value().value, 4u);
  TracePast past = open();
  EXPECT_TRUE(past.damage().empty());
  EXPECT_EQ(past.reach().value(), (Past::Reach{{0}, {4}}));
  const auto history = [&](std::uint64_t block) {
    std::string bytes;
    for (std::uint64_t at = 0; at <= 4; ++at) {
      const char byte = first_byte(past, block, at);
      bytes += byte == 0 ? '0' : byte;
    }
    return bytes;
  };
  EXPECT_EQ(history(2), "iaa0c");
  EXPECT_EQ(history(3), "iab00");
  EXPECT_EQ(history(15), "iii00");
  EXPECT_EQ(history(16), "00000");  // behind the image's end
}

TEST_F(WriteTraceTest, MomentsHaveTimes) {
  TraceWriter writer = create();
  ASSERT_TRUE(writer.write({100}, {0}, filled(1, 'a')).has_value());
  ASSERT_TRUE(writer.write({200}, {0}, filled(1, 'b')).has_value());
  TracePast past = open();
  for (const auto& [time, sequence] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {99, 0}, {100, 1}, {199, 1}, {900, 2}}) {
    EXPECT_EQ(past.moment_of({time}).value().value, sequence) << time;
  }
  EXPECT_EQ(past.time_of({2}).value().ns, 200u);
  EXPECT_EQ(past.time_of({0}).value().ns, 0u);
}

TEST_F(WriteTraceTest, TellsWhatChangedAndWhen) {
  TraceWriter writer = create();
  ASSERT_TRUE(writer.write({100}, {8}, filled(2, 'a')).has_value());
  ASSERT_TRUE(writer.write({200}, {10}, filled(1, 'b')).has_value());
  ASSERT_TRUE(writer.zero({300}, {{100}, {50}}).has_value());
  ASSERT_TRUE(writer.write({400}, {9}, filled(1, 'c')).has_value());
  TracePast past = open();
  EXPECT_EQ(past.changed({0}, {3}).value(), (std::vector<BlockRange>{{{8}, {3}}, {{100}, {50}}}));
  EXPECT_EQ(past.changed({1}, {2}).value(), (std::vector<BlockRange>{{{10}, {1}}}));
  EXPECT_TRUE(past.changed({4}, {4}).value().empty());
  EXPECT_TRUE(past.changed({3}, {1}).value().empty());
  const std::vector<Lbn> blocks{{9}, {120}};
  EXPECT_EQ(
      past.versions(blocks, {0}, {4}).value(),
      (std::vector<Past::Version>{{{9}, {1}, {100}}, {{9}, {4}, {400}}, {{120}, {3}, {300}}}));
  EXPECT_EQ(past.versions(blocks, {1}, {3}).value(),
            (std::vector<Past::Version>{{{120}, {3}, {300}}}));
}

TEST_F(WriteTraceTest, QuestionsOutsideAreErrors) {
  TraceWriter writer = create();
  ASSERT_TRUE(writer.write({100}, {8}, filled(1, 'a')).has_value());
  TracePast past = open();
  std::vector<std::byte> bytes(kBlockBytes);
  for (const auto& [question, code] : std::vector<std::pair<Past::Question, ErrorCode>>{
           {{{0}, {2}}, ErrorCode::kOutsideWindow}, {{{256}, {1}}, ErrorCode::kInvalidArgument}}) {
    const auto read = past.read(std::span(&question, 1), bytes);
    ASSERT_FALSE(read.has_value());
    EXPECT_EQ(read.error().code, code);
  }
}

TEST_F(WriteTraceTest, WritesThatDoNotFitAreRefused) {
  TraceWriter writer = create();
  EXPECT_FALSE(writer.write({100}, {255}, filled(2, 'a')).has_value());
  EXPECT_FALSE(writer.write({100}, {UINT64_MAX}, filled(1, 'a')).has_value());
  const std::vector<std::byte> part(100);
  EXPECT_FALSE(writer.write({100}, {0}, part).has_value());
  EXPECT_FALSE(writer.zero({100}, {{0}, {257}}).has_value());
  EXPECT_FALSE(writer.zero({100}, {{0}, {0}}).has_value());
  EXPECT_TRUE(writer.write({100}, {0}, filled(1, 'a')).has_value());
  EXPECT_FALSE(writer.write({100}, {0}, filled(1, 'a')).has_value());  // the same time
  EXPECT_FALSE(TraceWriter::create(folder_.file("other"), 100).has_value());
  EXPECT_EQ(open().reach().value().newest.value, 1u);
}

TEST_F(WriteTraceTest, WhatWasCutOffEndsBefore) {
  const std::vector<char> whole = three_records();
  const std::size_t record = kTraceRecordBytes + kBlockBytes;
  for (std::size_t bytes = kTraceRecordBytes; bytes <= whole.size(); bytes += 997) {
    put({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes)});
    TracePast past = open();
    EXPECT_EQ(past.reach().value().newest.value, (bytes - kTraceRecordBytes) / record);
    EXPECT_TRUE(past.damage().empty());
  }
}

TEST_F(WriteTraceTest, DamageIsNeverTakenForAWrite) {
  const std::vector<char> whole = three_records();
  const std::size_t record = kTraceRecordBytes + kBlockBytes;
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    std::vector<char> bytes = whole;
    const std::size_t at = random() % bytes.size();
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
    put(bytes);
    auto past = TracePast::open(folder_.file("image"), folder_.file("trace"));
    if (at < kTraceRecordBytes) {
      ASSERT_FALSE(past.has_value());
      EXPECT_EQ(past.error().code, ErrorCode::kCorrupt);
      continue;
    }
    ASSERT_TRUE(past.has_value());
    ASSERT_EQ(past->damage().size(), 1u) << at;
    const std::size_t hurt = (at - kTraceRecordBytes) / record;
    EXPECT_EQ(past->damage()[0].offset, kTraceRecordBytes + hurt * record);
    EXPECT_EQ(past->reach().value().newest.value, hurt);
  }
}

TEST_F(WriteTraceTest, WhatIsNoTraceIsNotOpened) {
  EXPECT_EQ(TracePast::open(folder_.file("image"), folder_.file("none")).error().code,
            ErrorCode::kNotFound);
  EXPECT_EQ(TracePast::open(folder_.file("image"), folder_.file("image")).error().code,
            ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace mariner::ifsck
