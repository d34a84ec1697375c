#include "ifsck/view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "proto/bytes.h"

namespace mariner::ifsck {
namespace {

// Block n at moment m has the byte n + m everywhere.
class CountedPast final : public Past {
 public:
  [[nodiscard]] std::uint64_t size_bytes() const override { return 64 * kBlockBytes; }
  Result<Reach> reach() override { return Reach{{0}, {9}}; }
  Result<SequenceNumber> moment_of(VersionTime time) override { return SequenceNumber{time.ns}; }
  Result<VersionTime> time_of(SequenceNumber sequence) override {
    return VersionTime{sequence.value};
  }
  Result<void> read(std::span<const Question> questions, std::span<std::byte> to) override {
    ++calls;
    asked += questions.size();
    if (fails) return Error{ErrorCode::kUnavailable, "away"};
    for (std::size_t i = 0; i < questions.size(); ++i) {
      EXPECT_LT(questions[i].block.value, 64u);
      std::ranges::fill(to.subspan(i * kBlockBytes, kBlockBytes),
                        static_cast<std::byte>(questions[i].block.value + questions[i].at.value));
    }
    return {};
  }
  Result<std::vector<BlockRange>> changed(SequenceNumber, SequenceNumber) override { return {}; }
  Result<std::vector<Version>> versions(std::span<const Lbn>, SequenceNumber,
                                        SequenceNumber) override {
    return {};
  }
  int calls = 0;
  std::size_t asked = 0;
  bool fails = false;
};

class ViewTest : public ::testing::Test {
 protected:
  std::string read(View& view, std::uint64_t offset, std::uint64_t length) {
    std::string bytes(length, '?');
    EXPECT_TRUE(view.read({offset, length}, std::as_writable_bytes(std::span(bytes))).has_value());
    return bytes;
  }
  CountedPast past_;
  Overlay overlay_;
  View view_{past_, {5}, overlay_};
};

TEST_F(ViewTest, ReadsAnyBytesAsOfItsMoment) {
  EXPECT_EQ(read(view_, 2 * kBlockBytes - 2, 4), std::string({6, 6, 7, 7}));
  EXPECT_EQ(read(view_, 0, 0), "");
  EXPECT_EQ(read(view_, 63 * kBlockBytes, kBlockBytes), std::string(kBlockBytes, 68));
}

TEST_F(ViewTest, AsksForEachBlockOnceAndForManyAtOnce) {
  const std::vector<Lbn> blocks{{3}, {1}, {3}, {70}, {2}};
  ASSERT_TRUE(view_.prefetch(blocks).has_value());
  EXPECT_EQ(past_.calls, 1);
  EXPECT_EQ(past_.asked, 3u);
  (void)read(view_, kBlockBytes, 3 * kBlockBytes);
  EXPECT_EQ(past_.calls, 1);
  EXPECT_EQ(view_.counters().blocks_read, 3u);
  (void)read(view_, 10 * kBlockBytes, 5 * kBlockBytes);
  EXPECT_EQ(past_.calls, 2);
}

TEST_F(ViewTest, ItsCacheIsBounded) {
  View small(past_, {0}, overlay_, {.cached_blocks_max = 4, .questions_max = 2});
  for (std::uint64_t i = 0; i < 64; ++i) {
    EXPECT_EQ(read(small, i * kBlockBytes, 1)[0], static_cast<char>(i));
  }
  const std::string all = read(small, 0, 64 * kBlockBytes);
  for (std::uint64_t i = 0; i < 64; ++i) EXPECT_EQ(all[i * kBlockBytes], static_cast<char>(i));
}

TEST_F(ViewTest, RepairsStayInTheOverlay) {
  ASSERT_TRUE(view_.write({kBlockBytes - 1, 3}, as_byte_span(std::string_view("abc"))).has_value());
  EXPECT_EQ(overlay_.size(), 2u);
  EXPECT_EQ(read(view_, kBlockBytes - 2, 5), std::string({5, 'a', 'b', 'c', 6}));
  View other(past_, {5}, overlay_);
  EXPECT_EQ(read(other, kBlockBytes, 1), "b");
  overlay_.clear();
  EXPECT_EQ(read(view_, kBlockBytes - 1, 2), std::string({5, 6}));
}

TEST_F(ViewTest, IsTheSameAsABufferThatIsWrittenTo) {
  std::string expected;
  for (int i = 0; i < 64; ++i) expected += std::string(kBlockBytes, static_cast<char>(i + 5));
  std::mt19937 random(3);
  for (int i = 0; i < 500; ++i) {
    const std::uint64_t offset = random() % expected.size();
    const std::uint64_t length =
        random() % std::min<std::uint64_t>(expected.size() - offset, 20'000);
    if (random() % 2 == 0) {
      const std::string bytes(length, static_cast<char>(random()));
      ASSERT_TRUE(view_.write({offset, length}, as_byte_span(bytes)).has_value());
      expected.replace(offset, length, bytes);
    } else {
      ASSERT_EQ(read(view_, offset, length), expected.substr(offset, length));
    }
  }
}

TEST_F(ViewTest, ErrorsAreHandedOnAndNothingIsKeptOfThem) {
  std::vector<std::byte> bytes(2);
  for (const std::uint64_t offset : {std::uint64_t{64 * kBlockBytes - 1}, UINT64_MAX / 2}) {
    EXPECT_EQ(view_.read({offset, 2}, bytes).error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(view_.write({offset, 2}, bytes).error().code, ErrorCode::kInvalidArgument);
  }
  past_.fails = true;
  EXPECT_EQ(view_.read({0, 2}, bytes).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(view_.write({0, 2}, bytes).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(overlay_.size(), 0u);
  past_.fails = false;
  EXPECT_EQ(read(view_, 0, 1), std::string({5}));
}

TEST_F(ViewTest, SharesWhatHasNotChanged) {
  Overlay none;
  View before(past_, {2}, none);
  view_.share(before, {{{3}, {2}}, {{10}, {1}}});
  const std::vector<Lbn> blocks{{1}, {3}, {4}, {5}, {10}, {11}};
  ASSERT_TRUE(view_.prefetch(blocks).has_value());
  EXPECT_EQ(view_.counters().blocks_read, 3u);
  EXPECT_EQ(before.counters().blocks_read, 3u);
  EXPECT_EQ(read(view_, 2 * kBlockBytes - 1, 1), std::string({1 + 2}));
  EXPECT_EQ(read(view_, 3 * kBlockBytes, 1), std::string({3 + 5}));
  EXPECT_EQ(read(view_, 5 * kBlockBytes - 1, 2), std::string({4 + 5, 5 + 2}));
  EXPECT_EQ(read(view_, 12 * kBlockBytes - 1, 1), std::string({11 + 2}));
  EXPECT_EQ(past_.asked, 6u);
  ASSERT_TRUE(view_.write({kBlockBytes, 1}, std::as_bytes(std::span("x", 1))).has_value());
  EXPECT_EQ(read(view_, kBlockBytes, 2), std::string({'x', 1 + 2}));
  EXPECT_EQ(read(before, kBlockBytes, 1), std::string({1 + 2}));
}

}  // namespace
}  // namespace mariner::ifsck
