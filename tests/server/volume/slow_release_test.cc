#include "server/volume/slow_release.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/support/manual_executor.h"

namespace mariner::volume {
namespace {

std::vector<Payload> payloads(std::size_t count) {
  std::vector<Payload> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(Payload::allocate(kBlockBytes));
  return all;
}

std::uint64_t held(std::uint64_t before) { return (Payload::total_bytes() - before) / kBlockBytes; }

TEST(SlowRelease, SomeInEachTurn) {
  const std::uint64_t before = Payload::total_bytes();
  test::ManualExecutor executor;
  SlowRelease released(executor);
  released.add(payloads(300));
  EXPECT_EQ(held(before), 300u);
  std::vector<std::uint64_t> seen;
  for (int turn = 0; turn < 10 && held(before) > 0; ++turn) {
    const std::uint64_t had = held(before);
    executor.turn();
    if (held(before) != had) seen.push_back(had - held(before));
    if (had == 300 && held(before) < had) released.add(payloads(100));
  }
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{128, 128, 128, 16}));
  executor.run_until_idle();
  EXPECT_EQ(held(before), 0u);
  released.add(payloads(1));
  executor.run_until_idle();
  EXPECT_EQ(held(before), 0u) << "it begins again";
}

TEST(SlowRelease, WhatWaitsGoesWithIt) {
  const std::uint64_t before = Payload::total_bytes();
  test::ManualExecutor executor;
  std::optional<SlowRelease> released(std::in_place, executor);
  released->add(payloads(300));
  executor.turn();
  released.reset();
  EXPECT_EQ(held(before), 0u);
  executor.run_until_idle();
}

}  // namespace
}  // namespace mariner::volume
