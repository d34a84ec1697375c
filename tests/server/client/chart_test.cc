#include "server/client/chart.h"

#include <gtest/gtest.h>

namespace mariner::client {
namespace {

TEST(Chart, BarsInEighths) {
  const std::uint64_t values[] = {0, 1, 8, 16};
  EXPECT_EQ(bar_chart(values, 2), "   █\n ▁██\n");
  EXPECT_EQ(bar_chart({}, 2), "\n\n");
  const std::uint64_t zeros[] = {0, 0};
  EXPECT_EQ(bar_chart(zeros, 1), "\n");
  const std::uint64_t uneven[] = {1, ~0ull};
  EXPECT_EQ(bar_chart(uneven, 1), "▁█\n") << "what is not zero shows";
}

}  // namespace
}  // namespace mariner::client
