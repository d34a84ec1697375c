#include "server/client/table.h"

#include <gtest/gtest.h>

#include <sstream>

namespace mariner::client {
namespace {

struct Streams {
  std::istringstream in;
  std::ostringstream out;
};

Console console(Streams& streams) {
  return {.in = streams.in, .out = streams.out, .err = streams.out};
}

TEST(Table, ColumnsAreAligned) {
  Streams streams;
  Table table({"NAME", ">SIZE", "TEXT"});
  table.add({"a", "1", "x"});
  table.add({"bücher", "1000", ""});
  EXPECT_EQ(table.text(console(streams)), "NAME    SIZE  TEXT\na          1  x\nbücher  1000\n");
}

TEST(Table, ForeignNamesCannotSteerTheTerminal) {
  Streams streams;
  Table table({"NAME"});
  table.add({"a\x1b[2J\nb\xff"});
  EXPECT_EQ(table.text(console(streams)), "NAME\na?[2J?b\xEF\xBF\xBD\n");
}

TEST(Facts, LabelsAreAligned) {
  Streams streams;
  Facts facts;
  facts.add("a", "1");
  facts.add("long", "2");
  EXPECT_EQ(facts.text(console(streams)), "a     1\nlong  2\n");
}

}  // namespace
}  // namespace mariner::client
