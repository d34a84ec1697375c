#include "ifsck/known_states.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/logging/temporary_directory.h"

namespace mariner::ifsck {
namespace {

KeptBaseline state(std::uint64_t at) {
  KeptBaseline kept;
  kept.volume_bytes = 1u << 20;
  kept.baseline.at = SequenceNumber{at};
  kept.baseline.owners.add(at, 1);
  return kept;
}

std::uint64_t nearest(KnownStates& states, std::uint64_t at, std::uint64_t oldest = 0,
                      std::uint64_t newest = 1'000'000) {
  const auto found =
      states.nearest(SequenceNumber{at}, SequenceNumber{oldest}, SequenceNumber{newest});
  return found == nullptr ? ~0ull : found->baseline.at.value;
}

TEST(KnownStates, TellTheNearestOfThoseThatTheHistoryHas) {
  KnownStates states;
  EXPECT_EQ(nearest(states, 5), ~0ull);
  for (const std::uint64_t at : {100, 200, 300}) {
    ASSERT_TRUE(states.keep(state(at)).has_value());
  }
  EXPECT_EQ(nearest(states, 0), 100u);
  EXPECT_EQ(nearest(states, 149), 100u);
  EXPECT_EQ(nearest(states, 151), 200u);
  EXPECT_EQ(nearest(states, 400), 300u);
  EXPECT_EQ(nearest(states, 400, 0, 250), 200u);
  EXPECT_EQ(nearest(states, 0, 150), 200u);
  EXPECT_EQ(nearest(states, 0, 301), ~0ull);
  states.forget(SequenceNumber{200});
  EXPECT_EQ(nearest(states, 199), 100u);
}

TEST(KnownStates, AreThereInTheNextRun) {
  const logging::test::TemporaryDirectory folder;
  const std::string path = folder.file("a/b");
  {
    KnownStates states({.folder = path});
    for (std::uint64_t at = 1; at <= 20; ++at) {
      ASSERT_TRUE(states.keep(state(at * 10)).has_value());
    }
  }
  KnownStates states({.folder = path});
  const auto found = states.nearest(SequenceNumber{10}, {}, SequenceNumber{1000});
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(*found, state(10));
  EXPECT_EQ(nearest(states, 9999), 200u);
  // Sixteen stay, evenly.
  std::size_t files = 0;
  for (const auto& each : std::filesystem::directory_iterator(path)) {
    files += each.is_regular_file() ? 1 : 0;
  }
  EXPECT_EQ(files, 16u);
  std::uint64_t largest = 0;
  for (std::uint64_t at = 10; at <= 200; ++at) {
    const std::uint64_t next = nearest(states, at);
    largest = std::max(largest, next > at ? next - at : at - next);
  }
  EXPECT_LE(largest, 10u);
}

// As where the folder's file system is read only, or another one has put it there again.
TEST(KnownStates, WhatIsForgottenIsNotToldThoughItsFileIsThere) {
  const logging::test::TemporaryDirectory folder;
  KnownStates states({.folder = folder.file("states")});
  for (const std::uint64_t at : {10, 20}) ASSERT_TRUE(states.keep(state(at)).has_value());
  std::filesystem::copy_file(folder.file("states/20.baseline"), folder.file("20"));
  states.forget(SequenceNumber{20});
  EXPECT_FALSE(std::filesystem::exists(folder.file("states/20.baseline")));
  std::filesystem::copy_file(folder.file("20"), folder.file("states/20.baseline"));
  EXPECT_EQ(nearest(states, 20), 10u);
  ASSERT_TRUE(states.keep(state(20)).has_value());
  EXPECT_EQ(nearest(states, 20), 20u);
}

TEST(KnownStates, WhatCannotBeReadIsNotThere) {
  const logging::test::TemporaryDirectory folder;
  KnownStates states({.folder = folder.file("states")});
  for (const std::uint64_t at : {10, 20, 30, 40, 50}) {
    ASSERT_TRUE(states.keep(state(at)).has_value());
  }
  std::ofstream(folder.file("states/10.baseline")) << "none";
  std::ofstream(folder.file("states/11.baseline.new")) << "none";
  std::ofstream(folder.file("states/x.baseline")) << "none";
  std::filesystem::rename(folder.file("states/20.baseline"), folder.file("states/15.baseline"));
  KnownStates again({.folder = folder.file("states")});
  EXPECT_EQ(nearest(again, 10), 30u);
}

TEST(KnownStates, StayInMemoryWhereThereIsNoFolderToBeHad) {
  const logging::test::TemporaryDirectory folder;
  std::ofstream(folder.file("file")) << "here";
  KnownStates states({.folder = folder.file("file/states")});
  const auto kept = states.keep(state(7));
  ASSERT_FALSE(kept.has_value());
  EXPECT_EQ(kept.error().code, ErrorCode::kIo);
  EXPECT_EQ(nearest(states, 7), 7u);
}

}  // namespace
}  // namespace mariner::ifsck
