#include "tests/support/ram_layer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/bytes.h"

namespace mariner::test {
namespace {

using volume::Allocation;
using volume::TrimMode;

void expect_success(Result<void> result) { EXPECT_TRUE(result.has_value()); }

PayloadSlice slice(const std::string& text) {
  return {Payload::copy_of(as_byte_span(text)), 0, text.size()};
}

// What is mapped, as "offset+length " of each mapped piece.
std::string mapped(RamLayer& layer) {
  std::string text;
  layer.allocation({0, layer.size_bytes()}, [&](const Result<std::vector<Allocation>>& pieces) {
    for (const Allocation& piece : *pieces) {
      if (!piece.mapped) continue;
      text += std::to_string(piece.range.offset) + "+" + std::to_string(piece.range.length) + " ";
    }
  });
  return text;
}

TEST(RamLayer, ReadsZerosWhereNothingWasWritten) {
  RamLayer layer({.size_bytes = 1 << 20});
  EXPECT_EQ(layer.text({0, 512}), std::string(512, '\0'));
  EXPECT_EQ(mapped(layer), "");
}

TEST(RamLayer, WritesAcrossBlocks) {
  RamLayer layer({.size_bytes = 1 << 20});
  layer.write({3584, 1024}, slice(std::string(1024, 'a')), expect_success);
  EXPECT_EQ(layer.text({3584, 1536}), std::string(1024, 'a') + std::string(512, '\0'));
  EXPECT_EQ(mapped(layer), "0+8192 ");
}

TEST(RamLayer, WriteSameRepeats) {
  RamLayer layer({.size_bytes = 1 << 20});
  layer.write_same({512, 1024}, slice(std::string(512, 'a')), expect_success);
  EXPECT_EQ(layer.text({512, 1024}), std::string(1024, 'a'));
}

TEST(RamLayer, UnmapLeavesTheEdgesAndZeroDoesNot) {
  RamLayer layer({.size_bytes = 1 << 20});
  layer.write({0, 16384}, slice(std::string(16384, 'a')), expect_success);
  layer.trim({3584, 5120}, TrimMode::kUnmap, expect_success);
  EXPECT_EQ(mapped(layer), "0+4096 8192+8192 ");
  EXPECT_EQ(layer.text({3584, 512}), std::string(512, 'a'));
  layer.trim({3584, 5120}, TrimMode::kZero, expect_success);
  EXPECT_EQ(layer.text({3072, 1024}), std::string(512, 'a') + std::string(512, '\0'));
  EXPECT_EQ(layer.text({8192, 1024}), std::string(512, '\0') + std::string(512, 'a'));
}

TEST(RamLayer, ZeroWithinOneBlock) {
  RamLayer layer({.size_bytes = 1 << 20});
  layer.write({0, 4096}, slice(std::string(4096, 'a')), expect_success);
  layer.trim({512, 512}, TrimMode::kZero, expect_success);
  EXPECT_EQ(layer.text({0, 1536}),
            std::string(512, 'a') + std::string(512, '\0') + std::string(512, 'a'));
}

TEST(RamLayer, FailsOnceWhenTold) {
  RamLayer layer({.size_bytes = 1 << 20});
  layer.fail_next({ErrorCode::kIo, "bad"});
  layer.write({0, 512}, slice(std::string(512, 'a')),
              [](Result<void> result) { EXPECT_TRUE(result.has_error()); });
  EXPECT_EQ(mapped(layer), "");
  layer.write({0, 512}, slice(std::string(512, 'a')), expect_success);
  layer.fail_next({ErrorCode::kIo, "bad"});
  bool failed = false;
  layer.allocation({0, 512},
                   [&](const Result<std::vector<Allocation>>& r) { failed = r.has_error(); });
  EXPECT_TRUE(failed);
  EXPECT_EQ(mapped(layer), "0+4096 ");
}

TEST(RamLayer, HoldsCompletionsInOrder) {
  RamLayer layer({.size_bytes = 1 << 20});
  std::string order;
  layer.hold();
  layer.flush([&](Result<void>) { order += "flush "; });
  layer.read({0, 512}, [&](Result<PayloadSlice>) { order += "read "; });
  layer.allocation({0, 512}, [&](Result<std::vector<Allocation>>) { order += "allocation "; });
  layer.settle([&](Result<void>) { order += "settle "; });
  EXPECT_EQ(layer.held(), 4u);
  EXPECT_EQ(order, "");
  layer.release();
  EXPECT_EQ(order, "flush read allocation settle ");
}

}  // namespace
}  // namespace mariner::test
