#include "uvfs/program/located.h"

#include <gtest/gtest.h>

#include "tests/uvfs/program/program_files.h"

namespace mariner::uvfs {
namespace {

class LocatedTest : public ProgramFiles {};

TEST_F(LocatedTest, AnObjectAndItsMoment) {
  file("one", "one\n");
  const SequenceNumber made = change("write {}/one f\n");
  client::Console console = made_.console();
  const ifsck::Utc zone;
  const client::Context context{console, zone, [] { return VersionTime{1'000 * kSecond}; }, {}, {}};
  Words words;
  words.object = at("/f", made);
  words.source = {.image = image_, .trace = folder_.file("trace")};
  const auto located = Located::open(context, words);
  ASSERT_TRUE(located.has_value()) << located.error().message;
  EXPECT_EQ(located->at, made);
  EXPECT_EQ(located->moment.sequence(), made.value);
  EXPECT_EQ(located->name.path, "/f");
  EXPECT_EQ(located->found.object.size, 4u);
  words.object = "/f@#0";
  EXPECT_EQ(Located::open(context, words).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace mariner::uvfs
