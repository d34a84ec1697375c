#include "server/client/raw_stream.h"

#include <gtest/gtest.h>

#include <sstream>

#include "proto/bytes.h"

namespace mariner::client {
namespace {

TEST(RawStream, HasItsZerosWrittenOut) {
  std::ostringstream out;
  RawStream stream(out, 300'000);
  ASSERT_TRUE(stream.write(4096, as_byte_span("abc")));
  ASSERT_TRUE(stream.write(200'000, as_byte_span("d")));
  ASSERT_TRUE(stream.finish());
  std::string expected(300'000, '\0');
  expected.replace(4096, 3, "abc");
  expected[200'000] = 'd';
  EXPECT_TRUE(out.str() == expected);
}

TEST(RawStream, NobodyTakesIt) {
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  RawStream stream(out, 4096);
  EXPECT_EQ(stream.write(0, as_byte_span("abc")).error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace mariner::client
