#include "server/volume/local_history.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>

#include "proto/huge_pages.h"
#include "tests/server/volume/logged_rig.h"

namespace mariner::volume {
namespace {

using replication::WriteKind;
using test::LoggedRig;
using Source = PastRun::Source;

class LocalHistoryTest : public ::testing::Test {
 protected:
  // What read() gives: '.' for what only the base holds.
  std::string read(BlockRange range, std::uint64_t at) {
    begin_read(range, at);
    rig_.executor.run_ready();
    return text();
  }
  void begin_read(BlockRange range, std::uint64_t at) {
    range_ = range;
    to_ = Payload::allocate(range.count.bytes());
    std::memset(to_.data(), '.', to_.size());
    in_base_.reset();
    rig_.history.read(range, SequenceNumber{at}, to_.bytes(),
                      [this](Result<std::vector<BlockRange>> r) { in_base_ = std::move(r); });
  }
  std::string text() {
    if (!in_base_.has_value()) return "...";
    if (!*in_base_) return std::string(error_code_name(in_base_->error().code));
    for (const BlockRange& range : **in_base_) {
      std::memset(to_.data() + (range.first - range_.first).bytes(), '.', range.count.bytes());
    }
    return LoggedRig::text_of(to_.bytes());
  }
  Result<History::Located> located(std::vector<History::Lookup> lookups) {
    std::optional<Result<History::Located>> answer;
    rig_.history.locate(std::move(lookups),
                        [&](Result<History::Located> found) { answer = std::move(found); });
    rig_.executor.run_ready();
    return answer.value();
  }
  History::Located locate(std::vector<History::Lookup> lookups) {
    return located(std::move(lookups)).value();
  }

  Result<History::Versions> versions(std::vector<History::Since> blocks, std::uint64_t to) {
    std::optional<Result<History::Versions>> answer;
    rig_.history.versions(std::move(blocks), {to},
                          [&](Result<History::Versions> found) { answer = std::move(found); });
    rig_.executor.run_ready();
    return answer.value();
  }
  // "BLOCK:NUMBER@TIME ..."
  static std::string text_of(const Result<History::Versions>& versions) {
    if (!versions) return std::string(error_code_name(versions.error().code));
    std::string out;
    for (const History::Version& each : versions->list) {
      out += std::to_string(each.block.value) + ":" + std::to_string(each.at.sequence.value) + "@" +
             std::to_string(each.at.time.ns) + " ";
    }
    return out + (versions->more ? "more" : "");
  }

  LoggedRig rig_{false};
  BlockRange range_;
  Payload to_;
  std::optional<Result<std::vector<BlockRange>>> in_base_;
};

TEST_F(LocalHistoryTest, ReadsWhatItHasAndNamesWhatOnlyTheBaseHolds) {
  rig_.base.add({{4}, {4}});
  rig_.write(1, {{1}, {2}}, 'a');
  rig_.write(2, {{3}, {3}}, 'r', WriteKind::kRepeated);
  rig_.write(3, {{2}, {1}}, 0, WriteKind::kZero);
  EXPECT_EQ(read({{0}, {8}}, 3), "0a0rrr..");
  EXPECT_EQ(**in_base_, (std::vector<BlockRange>{{{6}, {2}}}));
  EXPECT_EQ(read({{0}, {8}}, 1), "0aa0....");
  EXPECT_EQ(rig_.history.in_flight(), 0u);
}

TEST_F(LocalHistoryTest, LocatesSeveralRangesAsOfOneMoment) {
  rig_.base.add({{4}, {4}});
  rig_.write(5, {{1}, {2}}, 'a');
  rig_.write(6, {{6}, {4}}, 'r', WriteKind::kRepeated);
  rig_.capture({{4}, {1}}, 'b');
  const History::Located located =
      locate({{{{0}, {6}}, {6}}, {{{7}, {2}}, {6}, true}, {{{0}, {1}}, {0}}});
  ASSERT_EQ(located.runs.size(), 7u);
  EXPECT_EQ(located.newest, SequenceNumber{6});
  EXPECT_EQ(located.runs[0].source, Source::kZero) << "a base that is stored nowhere";
  EXPECT_EQ(located.runs[1].range, (BlockRange{{1}, {2}}));
  EXPECT_EQ(located.runs[1].sequence, SequenceNumber{5});
  EXPECT_EQ(located.runs[1].bytes.length, 0u) << "nobody asked for them";
  EXPECT_EQ(located.runs[2].source, Source::kZero);
  EXPECT_EQ(located.runs[3].source, Source::kLog) << "a before-image";
  EXPECT_EQ(located.runs[3].sequence, SequenceNumber{0});
  EXPECT_EQ(located.runs[4].source, Source::kBase);
  const PastRun& repeated = located.runs[5];
  EXPECT_EQ(repeated.range, (BlockRange{{7}, {2}}));
  EXPECT_TRUE(repeated.repeated);
  EXPECT_EQ(LoggedRig::text_of(repeated.bytes.bytes()), "r");
}

TEST_F(LocalHistoryTest, DamageOfTheLogIsFound) {
  rig_.write(1, {{0}, {1}}, 'a');
  const auto run = rig_.index.answers().locate({{0}, {1}}, SequenceNumber{1})[0];
  rig_.disk.flip_bit(run.location.payload_sector() * kBlockBytes, 0);
  EXPECT_EQ(read({{0}, {1}}, 1), "corrupt");
  EXPECT_EQ(located({{{{0}, {1}}, {1}, true}}).error().code, ErrorCode::kCorrupt);
  EXPECT_TRUE(located({{{{0}, {1}}, {1}}})) << "its bytes were not asked for";
}

TEST_F(LocalHistoryTest, BytesAreReadAFewPiecesAtATimeAndStandTogether) {
  constexpr std::uint64_t kWrites = 1500;
  const auto letter = [](std::uint64_t i) { return static_cast<char>('a' + i % 26); };
  std::vector<History::Lookup> lookups;
  for (std::uint64_t i = 1; i <= kWrites; ++i) {
    rig_.write(i, {{2 * i}, {1}}, letter(i));
    lookups.push_back({{{2 * i}, {1}}, {kWrites}, true});
  }
  rig_.disk.hold();
  // However many ask.
  std::array<std::optional<Result<History::Located>>, 3> answers;
  for (auto& each : answers) {
    rig_.history.locate(lookups,
                        [&each](Result<History::Located> answer) { each = std::move(answer); });
    rig_.executor.run_ready();
    EXPECT_EQ(rig_.disk.held(),
              logging::LogReader::kBytesAtATime / logging::LogReader::kPieceBytesMax);
  }
  rig_.disk.release();
  rig_.executor.run_ready();
  for (const auto& found : answers) {
    ASSERT_TRUE(found && *found);
    ASSERT_EQ((*found)->runs.size(), kWrites);
    for (std::uint64_t i = 0; i < kWrites; ++i) {
      const PayloadSlice& bytes = (*found)->runs[i].bytes;
      EXPECT_EQ(LoggedRig::text_of(bytes.bytes()), std::string(1, letter(i + 1)));
      const std::uint64_t place = i % (kHugePageBytes / kBlockBytes);
      EXPECT_EQ(bytes.payload.data(), (*found)->runs[i - place].bytes.payload.data());
      EXPECT_EQ(bytes.offset, place * kBlockBytes);
    }
  }
  EXPECT_EQ(rig_.history.in_flight(), 0u);
}

// A before-image that nobody needs any more goes while it is read.
TEST_F(LocalHistoryTest, WhatTheLogGivesUpWhileItIsReadIsSoughtElsewhere) {
  rig_.base.add({{0}, {2}});
  rig_.capture({{0}, {2}}, 'b');
  const auto run = rig_.index.answers().locate({{0}, {1}}, SequenceNumber{0})[0];
  EXPECT_EQ(read({{0}, {2}}, 0), "bb");
  rig_.disk.flip_bit(run.location.payload_sector() * kBlockBytes, 0);
  rig_.disk.hold();
  begin_read({{0}, {2}}, 0);
  rig_.executor.run_ready();
  EXPECT_EQ(text(), "...");
  logging::Record rebase;
  rebase.type = logging::RecordType::kRebase;
  rebase.volume = LoggedRig::kVolume;
  rebase.extent = {{0}, {1}};
  rebase.ordinal = 1000;
  rig_.index.insert(rebase, {});
  rig_.disk.release();
  rig_.executor.run_ready();
  EXPECT_EQ(text(), "corrupt") << "the other block is still said to be there";
  rebase.extent = {{1}, {1}};
  rebase.ordinal = 1001;
  rig_.disk.hold();
  begin_read({{1}, {1}}, 0);
  rig_.executor.run_ready();
  rig_.disk.flip_bit((run.location.payload_sector() + 1) * kBlockBytes, 0);
  rig_.index.insert(rebase, {});
  rig_.disk.release();
  rig_.executor.run_ready();
  EXPECT_EQ(text(), ".");
}

TEST_F(LocalHistoryTest, ABeforeImageIsKnownWhenItIsDurableAndTheFirstOneStays) {
  rig_.base.add({{0}, {2}});
  int logged = 0;
  for (const char byte : {'b', 'c'}) {
    rig_.history.log_before_image({{1}, {1}}, LoggedRig::blocks_of(byte, 1),
                                  [&](const Result<void>& r) { logged += r ? 1 : 0; });
  }
  EXPECT_EQ(logged, 0);
  EXPECT_EQ(read({{0}, {2}}, 0), "..") << "asked before it is durable";
  EXPECT_EQ(logged, 2);
  EXPECT_EQ(read({{0}, {2}}, 0), ".b");
}

TEST_F(LocalHistoryTest, TellsWhatChanged) {
  rig_.write(1, {{1}, {2}}, 'a');
  rig_.write(2, {{6}, {1}}, 'a');
  rig_.write(3, {{7}, {1}}, 'a');
  std::vector<BlockRange> changed;
  bool done = false;
  rig_.history.changed(
      SequenceNumber{1}, SequenceNumber{3},
      [&](std::span<const BlockRange> portion) {
        changed.insert(changed.end(), portion.begin(), portion.end());
      },
      [&](const Result<void>& r) { done = r.has_value(); });
  rig_.executor.run_ready();
  EXPECT_TRUE(done);
  EXPECT_EQ(changed, (std::vector<BlockRange>{{{6}, {2}}}));
}

TEST_F(LocalHistoryTest, HoldsMomentsUntilTheLastHoldGoes) {
  EXPECT_EQ(rig_.history.oldest_held({}), std::nullopt);
  std::vector<History::Hold> holds;
  const auto hold = [&](std::uint64_t at) {
    rig_.history.hold(SequenceNumber{at}, [&](Result<History::Hold> r) { holds.push_back(*r); });
  };
  hold(5);
  hold(3);
  hold(5);
  EXPECT_EQ(rig_.history.oldest_held({}), SequenceNumber{3});
  holds[1].reset();
  EXPECT_EQ(rig_.history.oldest_held({}), SequenceNumber{5});
  holds[0].reset();
  EXPECT_EQ(rig_.history.oldest_held({}), SequenceNumber{5});
  holds.clear();
  EXPECT_EQ(rig_.history.oldest_held({}), std::nullopt);
}

TEST_F(LocalHistoryTest, AMomentBeforeTheHorizonCannotBeHeld) {
  rig_.index.index().set_horizon({SequenceNumber{4}, VersionTime{4}});
  std::optional<ErrorCode> code;
  rig_.history.hold(SequenceNumber{3},
                    [&](const Result<History::Hold>& r) { code = r.error().code; });
  EXPECT_EQ(code, ErrorCode::kOutsideWindow);
  rig_.history.hold(SequenceNumber{4}, [&](const Result<History::Hold>& r) { EXPECT_TRUE(r); });
  EXPECT_EQ(rig_.history.oldest_held({}), std::nullopt);
}

// An image that is behind is told what changed as long as the log has it.
TEST_F(LocalHistoryTest, WhatChangedIsKnownFurtherBackThanMomentsCanBeOpened) {
  rig_.write(1, {{1}, {2}}, 'a');
  rig_.write(4, {{2}, {3}}, 'b');
  rig_.index.index().set_horizon({{4}, {4}});
  const auto changed = [&](std::uint64_t from) {
    std::string out;
    rig_.history.changed(
        {from}, {4},
        [&](std::span<const BlockRange> extents) {
          for (const BlockRange& extent : extents) {
            out += std::to_string(extent.first.value) + "+" + std::to_string(extent.count.value);
          }
        },
        [&](const Result<void>& r) {
          if (!r) out += error_code_name(r.error().code);
        });
    rig_.executor.run_ready();
    return out;
  };
  EXPECT_EQ(changed(0), "1+4");
  EXPECT_EQ(changed(1), "2+3");
  rig_.index.index().forget_through({1}, 0);
  EXPECT_EQ(changed(0), "outside-window");
  EXPECT_EQ(changed(1), "2+3");
}

TEST_F(LocalHistoryTest, ABaseMattersAsLongAsAMomentShowsIt) {
  rig_.base.add({{0}, {8}});
  rig_.write(2, {{1}, {2}}, 'a');
  rig_.write(4, {{2}, {3}}, 'b');
  index::StoredIndex& index = rig_.index.index();
  const auto base = [&] {
    std::string out(8, '-');
    std::uint64_t at = 0;
    for (const PastRun& run : locate({{{{0}, {8}}, SequenceNumber{0}}}).runs) {
      for (std::uint64_t i = 0; i < run.range.count.value; ++i, ++at) {
        if (run.source == Source::kBase) out[at] = 'B';
      }
    }
    return out;
  };
  EXPECT_EQ(base(), "BBBBBBBB");
  index.set_horizon({{2}, {2}});
  EXPECT_EQ(base(), "BBBBBBBB") << "a crash would take that back";
  index.set_stored_horizon({2});
  EXPECT_EQ(base(), "B--BBBBB");
  index.set_stored_horizon({4});
  EXPECT_EQ(base(), "B----BBB");
  index.begin_forgetting({2}, 0);
  EXPECT_EQ(base(), "BB---BBB") << "what was written there may become the base";
  logging::Record back;
  back.volume = LoggedRig::kVolume;
  back.type = logging::RecordType::kRollback;
  back.ordinal = 1000;
  back.sequence = {6};
  back.time = {6};
  back.target_sequence = {1};
  index.insert(back, {});
  EXPECT_EQ(base(), "BBBBBBBB") << "a rollback may go back to it";
}

// It goes any moment, and then the image is the base.
TEST_F(LocalHistoryTest, ABeforeImageThatIsBeingGivenUpCountsAsGone) {
  rig_.base.add({{0}, {8}});
  rig_.capture({{1}, {2}}, 'x');
  rig_.capture({{2}, {2}}, 'y');
  const auto base = [&] {
    std::string out;
    for (const PastRun& run : locate({{{{0}, {5}}, SequenceNumber{0}}}).runs) {
      out.append(run.range.count.value, run.source == Source::kBase ? 'B' : '-');
    }
    return out;
  };
  EXPECT_EQ(base(), "B---B");
  rig_.index.index().begin_forgetting({}, 1);
  EXPECT_EQ(base(), "BB--B");
  rig_.index.index().begin_forgetting({}, 2);
  EXPECT_EQ(base(), "BBBBB");
}

TEST_F(LocalHistoryTest, ListsWhatChangedBlocks) {
  rig_.write(1, {{1}, {2}}, 'a');
  rig_.write(4, {{2}, {3}}, 'r', WriteKind::kRepeated);
  rig_.write(6, {{2}, {1}}, 0, WriteKind::kZero);
  EXPECT_EQ(text_of(versions({{{1}, {0}}, {{2}, {1}}, {{4}, {0}}, {{9}, {0}}}, 6)),
            "1:1@1 2:4@4 2:6@6 4:4@4 ");
  EXPECT_EQ(text_of(versions({{{2}, {0}}}, 4)), "2:1@1 2:4@4 ");
  EXPECT_EQ(text_of(versions({{{2}, {6}}}, 6)), "");
  EXPECT_EQ(text_of(versions({}, 6)), "");
  rig_.index.index().set_horizon({{4}, {4}});
  EXPECT_EQ(text_of(versions({{{2}, {3}}}, 6)), "outside-window");
  EXPECT_EQ(text_of(versions({{{2}, {4}}}, 6)), "2:6@6 ");
}

TEST_F(LocalHistoryTest, ListsTheVersionsOfManyBlocksSomeAtATime) {
  std::vector<History::Since> blocks;
  for (std::uint64_t i = 0; i < 3 * LocalHistory::kListedAtATime; ++i) blocks.push_back({{i}, {0}});
  rig_.write(1, {{0}, {blocks.size()}}, 'a', WriteKind::kRepeated);
  EXPECT_EQ(versions(blocks, 1)->list.size(), blocks.size());
}

TEST_F(LocalHistoryTest, AnAnswerHasAsManyVersionsAsOneMayHave) {
  logging::Record record;
  record.volume = LoggedRig::kVolume;
  record.type = logging::RecordType::kZero;
  record.extent = {{5}, {2}};
  for (std::uint64_t i = 1; i <= History::kVersionsMax - 3; ++i) {
    record.ordinal = i;
    record.sequence = {i};
    record.time = {2 * i};
    rig_.index.index().insert(record, {});
  }
  const auto first = versions({{{5}, {0}}, {{6}, {0}}}, record.sequence.value);
  ASSERT_TRUE(first);
  ASSERT_EQ(first->list.size(), History::kVersionsMax);
  EXPECT_TRUE(first->more);
  EXPECT_EQ(first->list.back().block, Lbn{6});
  EXPECT_EQ(first->list.back().at.sequence, SequenceNumber{3});
  const auto rest = versions({{{6}, first->list.back().at.sequence}}, record.sequence.value);
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->list.size(), History::kVersionsMax - 6);
  EXPECT_FALSE(rest->more);
  EXPECT_EQ(rest->list.front().at.time, VersionTime{8});
}

}  // namespace
}  // namespace mariner::volume
