#include "server/client/console.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <sstream>

#include "proto/utf8.h"

namespace mariner::client {
namespace {

struct Streams {
  std::istringstream in;
  std::ostringstream out;
};

Console console(Streams& streams) {
  return {.in = streams.in, .out = streams.out, .err = streams.out};
}

TEST(Console, ColorsOnlyIfSettled) {
  Streams streams;
  auto plain = console(streams);
  EXPECT_EQ(plain.bold("x"), "x");
  plain.color = true;
  EXPECT_EQ(plain.bold("x"), "\x1b[1mx\x1b[0m");
}

TEST(Console, AsksAndNotesEndOfInput) {
  Streams streams;
  streams.in.str("yes\n");
  const auto asking = console(streams);
  EXPECT_EQ(asking.ask("? "), "yes");
  EXPECT_EQ(asking.ask("? "), std::nullopt);
}

TEST(Console, PrintableIsPrintable) {
  EXPECT_TRUE(rc::check([](const std::string& text) {
    const auto clean = printable(text);
    RC_ASSERT(is_utf8(clean));
    for (const char c : clean) RC_ASSERT(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
  }));
}

}  // namespace
}  // namespace mariner::client
