#include "ifsck/program/history_capture.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "ifsck/write_trace.h"
#include "tests/logging/temporary_directory.h"

namespace mariner::ifsck {
namespace {

constexpr std::uint64_t kBlocks = 6000;

// An image with something in it, and writes of data and zeros, long ones among them.
class HistoryCaptureTest : public ::testing::Test {
 protected:
  HistoryCaptureTest() {
    std::ofstream image(file("image"), std::ios::binary);
    for (std::uint64_t block = 0; block < 300; ++block) {
      image << std::string(kBlockBytes, block % 3 == 0 ? '\0' : 'b');
    }
    image.close();
    auto trace = TraceWriter::create(file("trace"), kBlocks * kBlockBytes).value();
    std::mt19937_64 random(3);
    for (std::uint64_t i = 1; i <= kWrites; ++i) {
      const std::uint64_t first = random() % kBlocks;
      const std::uint64_t count = std::min<std::uint64_t>(1 + random() % 40, kBlocks - first);
      const std::vector<std::byte> bytes(count * kBlockBytes, std::byte(1 + random() % 255));
      if (i % 5 == 0) {
        (void)trace.zero({i * 100}, {{first}, {count}}).value();
      } else if (i == kLong) {
        const std::vector<std::byte> many(3000 * kBlockBytes, std::byte{7});
        (void)trace.write({i * 100}, {0}, many).value();
      } else {
        (void)trace.write({i * 100}, {first}, bytes).value();
      }
    }
  }
  std::string file(const std::string& name) { return folder_.file(name); }
  static std::vector<std::byte> read(TracePast& past, SequenceNumber at) {
    std::vector<Past::Question> questions;
    for (std::uint64_t block = 0; block < kBlocks; ++block) questions.push_back({{block}, at});
    std::vector<std::byte> bytes(kBlocks * kBlockBytes);
    EXPECT_TRUE(past.read(questions, bytes).has_value());
    return bytes;
  }

  static constexpr std::uint64_t kWrites = 60;
  static constexpr std::uint64_t kLong = 31;
  logging::test::TemporaryDirectory folder_;
};

TEST_F(HistoryCaptureTest, HasEveryMomentAtItsTime) {
  TracePast past = TracePast::open(file("image"), file("trace")).value();
  for (const std::uint64_t from : {0u, 20u}) {
    const CaptureOptions options{
        .from = {from}, .to = {50}, .image = file("image2"), .trace = file("trace2")};
    const auto captured = capture_history(past, options);
    ASSERT_TRUE(captured.has_value()) << captured.error().message;
    EXPECT_EQ(captured->records, 50 - from + 1) << "the long write is two";
    EXPECT_EQ(captured->pieces, 1u);
    if (from == 0) {
      EXPECT_EQ(captured->image_blocks, 200u) << "zeros are left out";
    }
    TracePast copy = TracePast::open(options.image, options.trace).value();
    EXPECT_TRUE(copy.damage().empty());
    EXPECT_EQ(copy.size_bytes(), past.size_bytes());
    EXPECT_EQ(copy.reach().value(), (Past::Reach{{0}, {captured->records}}));
    for (std::uint64_t at = from; at <= 50; at += 5) {
      const SequenceNumber there = copy.moment_of({at * 100 + 50}).value();
      EXPECT_EQ(read(copy, there), read(past, {at})) << at << " from " << from;
      if (at > from) {
        EXPECT_EQ(copy.time_of(there)->ns, at * 100);
      }
    }
  }
}

TEST_F(HistoryCaptureTest, SaysWhatCannotBe) {
  TracePast past = TracePast::open(file("image"), file("trace")).value();
  const auto outside = capture_history(
      past, {.from = {0}, .to = {kWrites + 1}, .image = file("image2"), .trace = file("trace2")});
  ASSERT_FALSE(outside.has_value());
  EXPECT_EQ(outside.error().code, ErrorCode::kOutsideWindow);
  const auto nowhere = capture_history(
      past, {.from = {0}, .to = {1}, .image = file("no/image"), .trace = file("trace2")});
  ASSERT_FALSE(nowhere.has_value());
  EXPECT_EQ(nowhere.error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace mariner::ifsck
