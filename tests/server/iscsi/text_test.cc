#include "server/iscsi/text.h"

#include <gtest/gtest.h>

#include "tests/server/iscsi/iscsi_testing.h"

namespace mariner::iscsi {
namespace {

TEST(TextTest, PairsComeInOrder) {
  const std::string text = keys({"A=1", "B=", "C=x=y"});
  const auto pairs = parse_text(text);
  ASSERT_TRUE(pairs);
  ASSERT_EQ(pairs->size(), 3u);
  EXPECT_EQ((*pairs)[0].key, "A");
  EXPECT_EQ((*pairs)[1].value, "");
  EXPECT_EQ((*pairs)[2].value, "x=y");
}

TEST(TextTest, FormIsChecked) {
  EXPECT_TRUE(parse_text(""));
  EXPECT_TRUE(parse_text(keys({"A=1", "", ""}))) << "counted padding";
  EXPECT_FALSE(parse_text("A=1")) << "no final zero byte";
  EXPECT_FALSE(parse_text(keys({"A"})));
  EXPECT_FALSE(parse_text(keys({"=1"})));
  EXPECT_FALSE(parse_text(keys({"A B=1"})));
  EXPECT_FALSE(parse_text(keys({"A\n=1"})));
  EXPECT_TRUE(parse_text(keys({std::string(kKeyBytesMax, 'k') + "=1"})));
  EXPECT_FALSE(parse_text(keys({std::string(kKeyBytesMax + 1, 'k') + "=1"})));
}

TEST(TextTest, PairsAreBounded) {
  std::string text;
  for (std::size_t i = 0; i < kTextPairsMax; ++i) text += keys({"A=1"});
  EXPECT_TRUE(parse_text(text));
  EXPECT_FALSE(parse_text(text + keys({"A=1"})));
}

TEST(TextTest, Numbers) {
  EXPECT_EQ(parse_number("0"), 0u);
  EXPECT_EQ(parse_number("262144"), 262144u);
  EXPECT_EQ(parse_number("0x40000"), 0x40000u);
  EXPECT_EQ(parse_number("0XfF"), 0xffu);
  for (const auto* bad : {"", "x", "-1", "+1", "1 ", " 1", "0x", "1.5", "18446744073709551616"}) {
    EXPECT_FALSE(parse_number(bad)) << bad;
  }
}

TEST(TextTest, BooleansAndLists) {
  EXPECT_EQ(parse_boolean("Yes"), true);
  EXPECT_EQ(parse_boolean("No"), false);
  EXPECT_FALSE(parse_boolean("yes"));
  EXPECT_EQ(split_list("CRC32C,None"), (std::vector<std::string_view>{"CRC32C", "None"}));
  EXPECT_EQ(split_list(""), (std::vector<std::string_view>{""}));
}

TEST(TextTest, WriterEndsEachPair) {
  TextWriter writer;
  writer.add("A", "x");
  writer.add("B", std::uint64_t{7});
  writer.add_boolean("C", true);
  EXPECT_EQ(writer.text(), keys({"A=x", "B=7", "C=Yes"}));
}

TEST(TextTest, CollectorJoinsWithinItsBound) {
  TextCollector collector;
  ASSERT_TRUE(collector.append(bytes_of("A=")));
  ASSERT_TRUE(collector.append(bytes_of("1")));
  EXPECT_EQ(collector.take(), "A=1");
  EXPECT_TRUE(collector.empty());
  ASSERT_TRUE(collector.append(Bytes(kTextBytesMax)));
  EXPECT_FALSE(collector.append(Bytes(1)));
  EXPECT_TRUE(collector.empty());
}

TEST(BinaryValue, HexadecimalAndBase64) {
  using Bytes = std::vector<std::uint8_t>;
  EXPECT_EQ(parse_binary("0x0aFf", 16), (Bytes{0x0A, 0xFF}));
  EXPECT_EQ(parse_binary("0XaFf", 16), (Bytes{0x0A, 0xFF})) << "an odd number of digits";
  EXPECT_EQ(parse_binary("0x", 16), Bytes{});
  EXPECT_EQ(parse_binary("0bAQID", 16), (Bytes{1, 2, 3}));
  EXPECT_EQ(parse_binary("0BAQI=", 16), (Bytes{1, 2}));
  EXPECT_EQ(parse_binary("0bAQ==", 16), Bytes{1});
  EXPECT_EQ(parse_binary("0b/+8=", 16), (Bytes{0xFF, 0xEF}));
}

TEST(BinaryValue, WhatIsNone) {
  for (const auto* value : {"", "0", "12", "0y12", "0x1g", "0bAQI", "0bA=ID", "0b====", "x0"}) {
    EXPECT_EQ(parse_binary(value, 16), std::nullopt) << value;
  }
  EXPECT_EQ(parse_binary("0x010203", 2), std::nullopt) << "too long";
  EXPECT_EQ(parse_binary("0bAQID", 2), std::nullopt);
}

TEST(Printable, HidesWhatALogShouldNotHave) {
  EXPECT_EQ(printable("a b\n\x1b[0m\xc3\xa9~"), "a b??[0m??~");
}

}  // namespace
}  // namespace mariner::iscsi
