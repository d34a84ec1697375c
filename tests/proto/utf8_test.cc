#include "proto/utf8.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace mariner {
namespace {

TEST(Utf8, CharactersOfEveryLength) {
  EXPECT_EQ(utf8_length("a"), 1u);
  EXPECT_EQ(utf8_length("\xC3\xA4"), 2u);
  EXPECT_EQ(utf8_length("\xE2\x82\xAC"), 3u);
  EXPECT_EQ(utf8_length("\xF0\x9F\x98\x80"), 4u);
  EXPECT_EQ(utf8_length("\xF4\x8F\xBF\xBF"), 4u);
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("gr\xC3\xBC\xC3\x9F"));
}

TEST(Utf8, WhatIsNone) {
  for (const auto* text :
       {"\x80", "\xC0\xAF", "\xC1\x81", "\xC3", "\xC3(", "\xE0\x80\xAF", "\xED\xA0\x80", "\xE2\x82",
        "\xF0\x80\x80\xAF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF"}) {
    EXPECT_EQ(utf8_length(text), 0u);
    EXPECT_FALSE(is_utf8(std::string("a") + text));
  }
}

TEST(Utf8, AnyBytesBecomeValid) {
  EXPECT_EQ(to_utf8("a\xFF\xC3\xA4"), "a\xEF\xBF\xBD\xC3\xA4");
  EXPECT_TRUE(rc::check([](const std::string& text) {
    RC_ASSERT(is_utf8(to_utf8(text)));
    if (is_utf8(text)) RC_ASSERT(to_utf8(text) == text);
  }));
}

}  // namespace
}  // namespace mariner
