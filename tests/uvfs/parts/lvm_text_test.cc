#include "uvfs/parts/lvm_text.h"

#include <gtest/gtest.h>

#include <string>

namespace mariner::uvfs {
namespace {

void expect_error(const std::string& text, const std::string& message,
                  ErrorCode code = ErrorCode::kCorrupt) {
  const auto tree = LvmNode::parse(text);
  ASSERT_FALSE(tree.has_value()) << text;
  EXPECT_EQ(tree.error().message, message);
  EXPECT_EQ(tree.error().code, code);
}

TEST(LvmTextTest, SectionsAndValuesMakeATree) {
  const auto tree = LvmNode::parse(R"(# a comment
vg0 {
	id = "a-b"   # another
	seqno = 12
	status = ["READ", 'WRITE',
	          "VISIBLE"]
	empty = []
	segment1 { stripes = [ "pv0", 0 ] } x=-1y=+2
	quoted = "a \"b\" \\ c"
	plain = 'a \'
	factor = 1.5
}
version = 1)");
  ASSERT_TRUE(tree.has_value()) << tree.error().message;
  EXPECT_EQ(tree->number("version"), 1U);
  const LvmNode* const group = tree->section("vg0");
  ASSERT_NE(group, nullptr);
  EXPECT_EQ(group->string("id"), "a-b");
  EXPECT_EQ(group->number("seqno"), 12U);
  EXPECT_TRUE(group->lists("status", "WRITE"));
  EXPECT_FALSE(group->lists("status", "write"));
  EXPECT_EQ(group->list("empty")->values.size(), 0U);
  EXPECT_EQ(group->section("segment1")->list("stripes")->values.size(), 2U);
  EXPECT_EQ(std::get<std::int64_t>(group->list("x")->values[0]), -1);
  EXPECT_EQ(group->number("y"), 2U);
  EXPECT_EQ(group->string("quoted"), R"(a "b" \ c)");
  EXPECT_EQ(group->string("plain"), R"(a \)");
  EXPECT_EQ(group->string("factor"), "1.5");
}

TEST(LvmTextTest, WhatIsOfAnotherKindIsNotThere) {
  const auto tree = LvmNode::parse("a = 1 b = \"x\" c = [1, 2] d { } e = -1").value();
  EXPECT_FALSE(tree.number("b").has_value());
  EXPECT_FALSE(tree.number("c").has_value());
  EXPECT_FALSE(tree.number("e").has_value());
  EXPECT_FALSE(tree.number("f").has_value());
  EXPECT_FALSE(tree.string("a").has_value());
  EXPECT_EQ(tree.section("a"), nullptr);
  EXPECT_EQ(tree.list("d"), nullptr);
  EXPECT_FALSE(tree.lists("c", "1"));
  EXPECT_FALSE(tree.lists("d", "x"));
}

TEST(LvmTextTest, AnEmptyTextIsAnEmptySection) {
  EXPECT_TRUE(LvmNode::parse("")->children.empty());
  EXPECT_TRUE(LvmNode::parse(" \n # no end")->children.empty());
}

TEST(LvmTextTest, ErrorsTellTheLine) {
  expect_error("a {\n b = 1\n", "line 3: a section is not closed");
  expect_error("}", "line 1: a section is closed that was not opened");
  expect_error("a = \"x\n", "line 2: a string is not closed");
  expect_error("a = \"x\\", "line 1: a string is not closed");
  expect_error("a = [1, 2", "line 1: a list is not closed");
  expect_error("a = [1 2]", "line 1: a list is not closed");
  expect_error("\na = ", "line 2: expected a value");
  expect_error("a = [,]", "line 1: expected a value");
  expect_error("a = -", "line 1: expected a value");
  expect_error("a = 99999999999999999999", "line 1: expected a value");
  expect_error("a 1", "line 1: expected = or { behind a");
  expect_error("= 1", "line 1: expected a name");
  expect_error(std::string("\0", 1), "line 1: expected a name");
  expect_error("\"a\" = 1", "line 1: expected a name");
}

TEST(LvmTextTest, NestingHasABound) {
  const auto nested = [](std::size_t depth) {
    std::string text;
    for (std::size_t i = 0; i < depth; ++i) text += "a {";
    return text + std::string(depth, '}');
  };
  EXPECT_TRUE(LvmNode::parse(nested(LvmNode::kDepthMax)).has_value());
  expect_error(nested(LvmNode::kDepthMax + 1), "line 1: more than 16 sections within each other",
               ErrorCode::kLimit);
  expect_error(nested(1'000'000), "line 1: more than 16 sections within each other",
               ErrorCode::kLimit);
}

TEST(LvmTextTest, ValuesHaveABound) {
  std::string text;
  for (std::size_t i = 0; i < LvmNode::kNodesMax / 2; ++i) text += "a=1\n";
  EXPECT_TRUE(LvmNode::parse(text).has_value());
  text += "a=1\n";
  expect_error(text, "line 100001: more than 200000 values", ErrorCode::kLimit);
}

}  // namespace
}  // namespace mariner::uvfs
