#include "server/node/config_table.h"

#include <gtest/gtest.h>

namespace mariner {
namespace {

TEST(ConfigTable, TakesWhatIsThere) {
  const auto file = toml::parse("a = 'text'\nb = 7\nc = ['x', 'y']\n[d]\n[[e]]\n[[e]]\n");
  ConfigProblems problems("f");
  ConfigTable table(file, "", problems);
  EXPECT_EQ(table.string("a"), "text");
  EXPECT_EQ(table.integer("b"), 7);
  EXPECT_EQ(table.strings("c"), (std::vector<std::string>{"x", "y"}));
  EXPECT_NE(table.table("d"), nullptr);
  EXPECT_EQ(table.tables("e").size(), 2u);
  EXPECT_EQ(table.string("absent"), std::nullopt);
  EXPECT_TRUE(table.tables("absent").empty());
  table.finish();
  EXPECT_TRUE(problems.take().empty());
}

TEST(ConfigTable, AValueOfAnotherTypeIsNoted) {
  const auto file = toml::parse("a = 1\nb = '7'\nc = ['x', 2]\nd = 1.5\ne = [1]\n");
  ConfigProblems problems("f");
  ConfigTable table(file, "t", problems);
  EXPECT_EQ(table.string("a"), std::nullopt);
  EXPECT_EQ(table.integer("b"), std::nullopt);
  EXPECT_EQ(table.strings("c"), (std::vector<std::string>{"x"}));
  EXPECT_EQ(table.table("d"), nullptr);
  EXPECT_TRUE(table.tables("e").empty());
  const auto noted = problems.take();
  ASSERT_EQ(noted.size(), 5u);
  EXPECT_EQ(to_string(noted[0]), "f:1: t.a: expected a string in quotes, found a whole number");
  EXPECT_EQ(to_string(noted[1]), "f:2: t.b: expected a whole number, found a string");
  EXPECT_EQ(to_string(noted[2]), "f:3: t.c: expected a list of strings, found a whole number");
  EXPECT_EQ(to_string(noted[3]), "f:4: t.d: expected a table: [t.d], found a fraction");
  EXPECT_EQ(to_string(noted[4]),
            "f:5: t.e: expected tables with double brackets: [[t.e]], found a whole number");
}

TEST(ConfigTable, TrueOrFalse) {
  const auto file = toml::parse("a = true\nb = 1\n");
  ConfigProblems problems("f");
  ConfigTable table(file, "t", problems);
  EXPECT_EQ(table.boolean("a"), true);
  EXPECT_EQ(table.boolean("b"), std::nullopt);
  EXPECT_EQ(table.boolean("c"), std::nullopt);
  const auto noted = problems.take();
  ASSERT_EQ(noted.size(), 1u);
  EXPECT_EQ(to_string(noted[0]), "f:2: t.b: expected true or false, found a whole number");
}

TEST(ConfigTable, AKeyThatNobodyAskedForIsNamedWithTheNearest) {
  const auto file = toml::parse("a = 'x'\n\nmaxsize = 1\n");
  ConfigProblems problems("f");
  ConfigTable table(file, "log", problems);
  (void)table.string("a");
  (void)table.string("max_size");
  table.finish();
  const auto noted = problems.take();
  ASSERT_EQ(noted.size(), 1u);
  EXPECT_EQ(to_string(noted[0]),
            "f:3: log.maxsize: unknown key; the nearest that exists is \"log.max_size\"");
}

}  // namespace
}  // namespace mariner
