#include "uvfs/tsk_history.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/uvfs/counted_past.h"
#include "tests/uvfs/every_file.h"
#include "tests/uvfs/made_foreign.h"
#include "uvfs/path_search.h"

namespace mariner::uvfs {
namespace {

using Lines = std::vector<std::string>;

Lines found_in(FilesHistory& history) {
  const auto found = PathSearch(history, {.every_write = true}).find_below("/");
  EXPECT_TRUE(found.has_value()) << found.error().message;
  Lines all = EveryMoment::lines(*found);
  std::ranges::sort(all);
  return all;
}

// The same as looking at every moment.
void expect_all_is_found(MadeForeign& made, std::size_t at_least) {
  auto past = made.past();
  const auto history = TskHistory::open(past, {{}, made.last});
  ASSERT_TRUE(history.has_value()) << history.error().message;
  const EveryFile every(past, (*history)->stretch());
  const Lines ours = found_in(**history);
  const Lines wanted = every.lines();
  EXPECT_EQ(first_difference(ours, wanted), "");
  EXPECT_EQ(ours.size(), wanted.size());
  EXPECT_GE(ours.size(), at_least);
}

class TskHistoryFatTest : public ::testing::TestWithParam<std::pair<const char*, std::uint64_t>> {};

// (Whose blocks are written in any order: what is found on the way is torn in every way.)
TEST_P(TskHistoryFatTest, FindsWhatLookingAtEveryMomentFinds) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    MadeFat made(GetParam().first, GetParam().second, seed);
    for (int round = 0; round < 5; ++round) {
      made.change();
      (void)made.flush(true);
    }
    expect_all_is_found(made, 40);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, TskHistoryFatTest,
                         ::testing::Values(std::pair{"-F 12 -s 1", 2u << 20},
                                           std::pair{"-F 16 -s 2", 12u << 20},
                                           std::pair{"-F 32 -s 1", 40u << 20}));

TEST(TskHistoryTest, FindsInNtfsWhatLookingAtEveryMomentFinds) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    MadeNtfs made(seed);
    for (int round = 0; round < 6; ++round) {
      made.change();
      (void)made.flush(true);
    }
    expect_all_is_found(made, 60);
  }
}

TEST(TskHistoryTest, FindsInExfatWhatLookingAtEveryMomentFinds) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    MadeExfat made(seed);
    for (int round = 0; round < 6; ++round) {
      made.change();
      (void)made.flush(true);
    }
    expect_all_is_found(made, 30);
  }
}

TEST(TskHistoryTest, FindsInUfsWhatLookingAtEveryMomentFinds) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    MadeUfs made(seed, seed % 2 == 0 ? 2 : 1);
    for (int round = 0; round < 4; ++round) {
      made.change();
      (void)made.flush(true);
    }
    expect_all_is_found(made, 30);
  }
}

TEST(TskHistoryTest, AWriteOfTheSameBytesIsNoVersion) {
  MadeNtfs made;
  made.copy(std::string(50'000, 'x'), "/large");
  made.copy("few", "/small");
  (void)made.flush();
  const std::uint64_t place = made.find(std::string(4096, 'x'));
  const auto before = made.write_again(place / kBlockBytes);
  made.put(place, "here");
  const auto changed = made.flush();
  EXPECT_EQ(changed, before.next());
  auto past = made.past();
  const auto history = TskHistory::open(past, {SequenceNumber{before.value - 1}, changed}).value();
  const auto found = PathSearch(*history, {.every_write = true}).find("/large").value();
  ASSERT_EQ(found.incarnations.size(), 1u);
  ASSERT_EQ(found.incarnations[0].versions.size(), 2u);
  EXPECT_EQ(found.incarnations[0].versions[1].from.at, changed);
  const auto small = PathSearch(*history, {.every_write = true}).find("/small").value();
  EXPECT_EQ(small.incarnations.at(0).versions.size(), 1u);
}

TEST(TskHistoryTest, ContentsAreThoseOfTheirMoment) {
  MadeFat made("-F 16 -s 1", 6u << 20);
  made.copy("before", "/a file");
  const auto first = made.flush();
  made.put(made.find("before"), "behind");
  const auto last = made.flush();
  auto past = made.past();
  const auto history = TskHistory::open(past, {first, last}).value();
  const auto presences = PathSearch(*history).presences_of("/a file").value();
  ASSERT_EQ(presences.size(), 1u);
  for (const auto& [at, wanted] : {std::pair{first, "before"}, {last, "behind"}}) {
    std::string all(6, ' ');
    auto contents = history->contents(presences[0].inode, at).value();
    EXPECT_EQ(contents.read(0, std::as_writable_bytes(std::span(all))).value(), 6u);
    EXPECT_EQ(all, wanted);
  }
  EXPECT_EQ(history->state(presences[0].inode, last).size, 6u);
  EXPECT_EQ(history->find(presences[0].inode)->stamp, ObjectHistory::Stamp::kNone);
  EXPECT_TRUE(history->attributes(presences[0].inode, last)->all.empty());
}

TEST(TskHistoryTest, AFileSystemThatWasMadeInTheStretchShortensIt) {
  MadeForeign made("mkfs.fat -F 16 -s 1 -i 11111111", 6u << 20);
  MadeForeign::run("MTOOLS_SKIP_CHECK=1 mmd -i " + made.image() + " ::/before");
  const auto before = made.flush();
  MadeForeign::run("mkfs.fat -F 16 -s 1 -i 22222222 " + made.image());
  (void)made.flush();
  MadeForeign::run("MTOOLS_SKIP_CHECK=1 mmd -i " + made.image() + " ::/behind");
  const auto last = made.flush();
  auto past = made.past();
  const auto history = TskHistory::open(past, {{}, last}).value();
  EXPECT_GT(history->stretch().first, before);
  EXPECT_EQ(history->stretch().last, last);
  EXPECT_EQ(PathSearch(*history).find("/behind")->incarnations.size(), 1u);
  EXPECT_EQ(TskHistory::open(past, {{}, before}).value()->stretch().first, SequenceNumber{});
}

TEST(TskHistoryTest, WhatTheBootSectorSaysIsOfAllFiles) {
  MadeFat made("-F 16 -s 1", 6u << 20);
  made.tool("mmd", "::/folder");
  made.copy(std::string(3000, 'x'), "/one");
  made.copy(std::string(3000, 'y'), "/folder/other");
  (void)made.flush();
  made.put(13, "\2");  // sectors of a cluster
  (void)made.flush();
  made.put(13, "\1");
  (void)made.flush();
  expect_all_is_found(made, 6);
}

TEST(TskHistoryTest, WhileItIsDamagedItHasNoFiles) {
  MadeNtfs made;
  made.copy("few", "/small");
  (void)made.flush();
  const std::uint64_t record = made.first_record();
  std::string good(1024, ' ');
  std::ifstream(made.image(), std::ios::binary)
      .seekg(static_cast<std::streamoff>(record))
      .read(good.data(), 1024);
  made.put(record, std::string(1024, 'x'));
  const auto damaged = made.flush();
  made.put(record, good);
  const auto healed = made.flush();
  auto past = made.past();
  const auto history = TskHistory::open(past, {{}, healed}).value();
  EXPECT_EQ(history->stretch().first, SequenceNumber{});
  const auto found = PathSearch(*history, {.every_write = true}).find("/small").value();
  ASSERT_EQ(found.incarnations.size(), 2u);
  EXPECT_EQ(found.incarnations[0].end.at, damaged);
  EXPECT_EQ(found.incarnations[1].from.at, healed);
}

TEST(TskHistoryTest, ARecordThatAnotherFileGetsIsAnotherObject) {
  MadeNtfs made;
  made.copy("few", "/small");
  (void)made.flush();
  auto past = made.past();
  auto history = TskHistory::open(past, {made.last, made.last}).value();
  const auto number = PathSearch(*history).presences_of("/small")->at(0).inode;
  // Its sequence number, while a name still has the one before.
  const std::uint64_t record = made.first_record() + shown_number(number) * 1024;
  made.put(record + 16, std::string_view("\7\0", 2));
  const auto reused = made.flush();
  auto later = made.past();
  history = TskHistory::open(later, {SequenceNumber{reused.value - 1}, reused}).value();
  const auto found = PathSearch(*history, {.every_write = true}).find("/small").value();
  ASSERT_EQ(found.incarnations.size(), 1u);
  EXPECT_EQ(found.incarnations[0].end.at, reused);
}

TEST(TskHistoryTest, HowMuchIsAskedForDoesNotGrowWithWhatIsAsked) {
  MadeNtfs made;
  for (int i = 0; i < 100; ++i) made.copy(std::string(2000, 'x'), "/file " + std::to_string(i));
  const auto first = made.flush();
  for (int i = 0; i < 100; ++i) {
    made.copy(std::string(2000, 'y'), "/file " + std::to_string(i));
    (void)made.flush();
  }
  auto past = made.past();
  CountedPast counted(past);
  const auto history = TskHistory::open(counted, {first, made.last}).value();
  const auto found = PathSearch(*history, {.every_write = true}).find_below("/").value();
  EXPECT_EQ(found.size(), 101u);
  EXPECT_LT(counted.reads, 60u);
  EXPECT_LT(counted.others, 60u);
}

TEST(TskHistoryTest, WithoutAFileSystemThatIsSaid) {
  MadeForeign made("true", 4u << 20);
  auto past = made.past();
  EXPECT_EQ(TskHistory::open(past, {{}, {}}).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace mariner::uvfs
