#include "proto/histogram.h"

#include <gtest/gtest.h>

namespace mariner {
namespace {

using Small = Log2Histogram<2, 4>;  // up to 4, 8, 16, and above

TEST(Histogram, BucketsIncludeTheirUpperBound) {
  EXPECT_EQ(Small::kBuckets, 4u);
  for (const auto& [value, bucket] : {std::pair{0ull, 0u},
                                      {1ull, 0u},
                                      {4ull, 0u},
                                      {5ull, 1u},
                                      {8ull, 1u},
                                      {9ull, 2u},
                                      {16ull, 2u},
                                      {17ull, 3u},
                                      {~0ull, 3u}}) {
    EXPECT_EQ(Small::bucket_of(value), bucket) << value;
  }
  for (std::size_t i = 0; i + 1 < Small::kBuckets; ++i) {
    EXPECT_EQ(Small::bucket_of(Small::upper_bound(i)), i);
    EXPECT_EQ(Small::bucket_of(Small::upper_bound(i) + 1), i + 1);
  }
}

TEST(Histogram, CountsAndSum) {
  Small histogram;
  for (const std::uint64_t value : {1u, 5u, 5u, 100u}) histogram.observe(value);
  EXPECT_EQ(histogram.sum(), 111u);
  EXPECT_EQ(histogram.counts()[0], 1u);
  EXPECT_EQ(histogram.counts()[1], 2u);
  EXPECT_EQ(histogram.counts()[2], 0u);
  EXPECT_EQ(histogram.counts()[3], 1u);
}

}  // namespace
}  // namespace mariner
