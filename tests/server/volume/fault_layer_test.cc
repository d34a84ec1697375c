#include "server/volume/fault_layer.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/support/manual_executor.h"
#include "tests/support/ram_layer.h"

namespace mariner::volume {
namespace {

constexpr ByteRange kRange{0, 512};

PayloadSlice bytes() { return {Payload::zeroed(512), 0, 512}; }

class FaultLayerTest : public ::testing::Test {
 protected:
  test::ManualExecutor executor_;
  test::RamLayer below_{{.size_bytes = 1 << 20}};
};

TEST_F(FaultLayerTest, PassesEverythingOnWithoutFaults) {
  FaultLayer layer(below_, executor_, {});
  below_.record_calls();
  int done = 0;
  const auto count = [&](const Result<void>& r) { done += r ? 1 : 0; };
  layer.write(kRange, bytes(), count);
  layer.write_same(kRange, bytes(), count);
  layer.trim(kRange, TrimMode::kZero, count);
  layer.update(
      kRange, [](const PayloadSlice& current) { return std::optional(current); }, count);
  layer.flush(count);
  layer.settle(count);
  layer.read(kRange, [&](const Result<PayloadSlice>& r) { done += r ? 1 : 0; });
  layer.allocation(kRange, [&](const Result<std::vector<Allocation>>& r) { done += r ? 1 : 0; });
  EXPECT_EQ(done, 8);
  EXPECT_EQ(layer.size_bytes(), below_.size_bytes());
  EXPECT_FALSE(layer.read_only());
}

TEST_F(FaultLayerTest, AFailedWriteWritesNothing) {
  FaultLayer layer(below_, executor_, {.write_error_rate = 1});
  below_.record_calls();
  int failed = 0;
  const auto count = [&](const Result<void>& r) { failed += r ? 0 : 1; };
  layer.write(kRange, bytes(), count);
  layer.write_same(kRange, bytes(), count);
  layer.trim(kRange, TrimMode::kUnmap, count);
  EXPECT_EQ(failed, 3);
  EXPECT_TRUE(below_.calls().empty());
  layer.read(kRange, [](const Result<PayloadSlice>& r) { EXPECT_TRUE(r.has_value()); });
}

TEST_F(FaultLayerTest, DelaysBeforeItBegins) {
  FaultLayer layer(below_, executor_, {.write_delay = std::chrono::milliseconds(3)});
  bool done = false;
  layer.write(kRange, bytes(), [&](const Result<void>&) { done = true; });
  EXPECT_FALSE(layer.idle());
  executor_.advance(std::chrono::milliseconds(2));
  EXPECT_FALSE(done);
  executor_.advance(std::chrono::milliseconds(1));
  EXPECT_TRUE(done);
  EXPECT_TRUE(layer.idle());
}

TEST_F(FaultLayerTest, AnAllocationIsDelayedLikeARead) {
  FaultLayer layer(below_, executor_, {.read_delay = std::chrono::milliseconds(3)});
  below_.record_calls();
  bool done = false;
  layer.allocation(kRange, [&](const Result<std::vector<Allocation>>& r) { done = r.has_value(); });
  EXPECT_FALSE(layer.idle());
  executor_.advance(std::chrono::milliseconds(2));
  EXPECT_TRUE(below_.calls().empty());
  executor_.advance(std::chrono::milliseconds(1));
  EXPECT_TRUE(done);
  EXPECT_TRUE(layer.idle());
}

TEST_F(FaultLayerTest, AnAllocationFailsLikeARead) {
  FaultLayer layer(below_, executor_, {.read_error_rate = 1});
  below_.record_calls();
  std::optional<ErrorCode> code;
  layer.allocation(kRange,
                   [&](const Result<std::vector<Allocation>>& r) { code = r.error().code; });
  EXPECT_EQ(code, ErrorCode::kIo);
  EXPECT_TRUE(below_.calls().empty());
}

TEST_F(FaultLayerTest, AMomentOfThePastHasNoFaults) {
  FaultLayer layer(below_, executor_, {.read_error_rate = 1});
  bool read = false;
  layer.snapshot([&](Result<std::shared_ptr<Layer>> moment) {
    ASSERT_TRUE(moment);
    (*moment)->read(kRange, [&](const Result<PayloadSlice>& r) { read = r.has_value(); });
  });
  EXPECT_TRUE(read);
}

TEST_F(FaultLayerTest, TheSameSeedFailsTheSameReads) {
  const auto pattern = [this](std::uint64_t seed) {
    FaultLayer layer(below_, executor_, {.read_error_rate = 0.5, .seed = seed});
    std::string out;
    for (int i = 0; i < 64; ++i) {
      layer.read(kRange, [&](const Result<PayloadSlice>& r) { out += r ? '.' : 'x'; });
    }
    return out;
  };
  EXPECT_EQ(pattern(1), pattern(1));
  EXPECT_NE(pattern(1), pattern(2));
  EXPECT_NE(pattern(1).find('x'), std::string::npos);
  EXPECT_NE(pattern(1).find('.'), std::string::npos);
}

}  // namespace
}  // namespace mariner::volume
