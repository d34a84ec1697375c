#include "proto/iscsi_name.h"

#include <gtest/gtest.h>

namespace mariner {
namespace {

using namespace std::string_view_literals;

TEST(IscsiName, IsComparedInLowerCase) {
  EXPECT_EQ(normalized_iscsi_name("IQN.2026-11.org.Mariner:Disk_[@`{Z"),
            "iqn.2026-11.org.mariner:disk_[@`{z");
}

TEST(IscsiName, MayBeAsLongAsItMay) {
  EXPECT_EQ(normalized_iscsi_name(std::string(223, 'a')), std::string(223, 'a'));
  EXPECT_EQ(normalized_iscsi_name(std::string(224, 'a')), std::nullopt);
  EXPECT_EQ(normalized_iscsi_name(""), std::nullopt);
}

TEST(IscsiName, HasNeitherBlanksNorControlCharacters) {
  for (const auto name : {"iqn.x y"sv, "iqn.x\n"sv, "\tiqn.x"sv, "iqn.x\0y"sv, "iqn.x\x7f"sv}) {
    EXPECT_EQ(normalized_iscsi_name(name), std::nullopt) << name;
  }
}

// RFC 3629: characters of each length, the first and the last of them.
TEST(IscsiName, IsUtf8) {
  for (const auto name :
       {"iqn.\xC2\x80"sv, "\xC3\x9F\x65"sv, "iqn.\xDF\xBF:x"sv, "\xE0\xA0\x80"sv, "\xED\x9F\xBF"sv,
        "\xEE\x80\x80"sv, "\xEF\xBF\xBF"sv, "\xF0\x90\x80\x80"sv, "iqn.\xF4\x8F\xBF\xBF"sv}) {
    EXPECT_EQ(normalized_iscsi_name(name), name);
  }
}

TEST(IscsiName, WhatIsNoUtf8IsNone) {
  for (const auto name :
       {"iqn.x\xFF"sv, "\xFFiqn.x"sv, "iqn.\x80"sv, "iqn.\xC3"sv, "\xC3(iqn"sv, "\xC0\xAF"sv,
        "\xC1\xBF"sv, "\xE0\x9F\xBF"sv, "\xE2\x82"sv, "\xED\xA0\x80"sv, "\xF0\x8F\xBF\xBF"sv,
        "\xF4\x90\x80\x80"sv, "\xF5\x80\x80\x80"sv}) {
    EXPECT_EQ(normalized_iscsi_name(name), std::nullopt) << testing::PrintToString(name);
  }
}

}  // namespace
}  // namespace mariner
