#include "tests/hammer/history_match.h"

#include <gtest/gtest.h>

namespace mariner::hammer {
namespace {

Write write_of(std::uint64_t id, std::uint64_t block, std::uint64_t issued_ns,
               std::uint64_t acknowledged_ns, Kind kind = Kind::kWrite) {
  return {.id = id,
          .kind = kind,
          .first_cell = block * kCellsPerBlock,
          .cells = kCellsPerBlock,
          .issued_ns = issued_ns,
          .acknowledged_ns = acknowledged_ns,
          .outcome = acknowledged_ns == 0 ? Outcome::kAbsent : Outcome::kAcknowledged};
}

void add(api::History& history, std::uint64_t sequence, std::uint64_t time_ns, std::uint64_t block,
         const char* kind = "write") {
  auto* record = history.add_write_list();
  record->set_sequence(sequence);
  record->set_time_ns(time_ns);
  record->set_first_block(block);
  record->set_blocks(1);
  record->set_kind(kind);
}

TEST(HistoryMatch, records_of_one_extent_follow_the_journal) {
  const std::vector<Write> writes{write_of(1, 5, 10, 20), write_of(2, 6, 11, 30),
                                  write_of(3, 5, 40, 50, Kind::kUnmap), write_of(4, 5, 60, 70)};
  api::History history;
  add(history, 1, 12, 6);
  add(history, 2, 13, 5);
  add(history, 3, 45, 5, "zero");
  add(history, 4, 65, 5);
  const Match match = match_history(history, writes);
  EXPECT_TRUE(match.faults.empty()) << match.faults[0];
  ASSERT_EQ(match.history.size(), 4u);
  EXPECT_EQ(match.history[0].write->id, 2u);
  EXPECT_EQ(match.history[1].write->id, 1u);
  EXPECT_EQ(match.history[3].write->id, 4u);
}

TEST(HistoryMatch, an_acknowledged_write_without_record_is_a_fault) {
  const std::vector<Write> writes{write_of(1, 5, 10, 20)};
  EXPECT_EQ(match_history({}, writes).faults.size(), 1u);
}

TEST(HistoryMatch, an_unacknowledged_write_may_have_none) {
  const std::vector<Write> writes{write_of(1, 5, 10, 0), write_of(2, 5, 100, 120)};
  api::History history;
  add(history, 1, 110, 5);
  const Match match = match_history(history, writes);
  EXPECT_TRUE(match.faults.empty()) << match.faults[0];
  EXPECT_EQ(match.history.at(0).write->id, 2u);
}

TEST(HistoryMatch, an_absent_write_must_have_none) {
  const std::vector<Write> writes{write_of(1, 5, 10, 0)};
  api::History history;
  add(history, 1, 12, 5);
  EXPECT_EQ(match_history(history, writes).faults.size(), 1u);
}

TEST(HistoryMatch, invented_records_and_wrong_times_are_faults) {
  const std::vector<Write> writes{write_of(1, 5, 10, 20), write_of(2, 6, 30, 40)};
  api::History history;
  add(history, 1, 21, 5);  // after its acknowledgement
  add(history, 2, 22, 6);  // before it was issued
  add(history, 3, 23, 7);  // nobody's
  add(history, 3, 24, 5);  // the same number again, and nobody's
  EXPECT_EQ(match_history(history, writes).faults.size(), 5u);
}

TEST(HistoryMatch, a_moment_asked_by_time_divides_the_writes) {
  const std::vector<Write> writes{write_of(1, 5, 10, 20), write_of(2, 6, 30, 40)};
  api::History history;
  add(history, 1, 15, 5);
  add(history, 2, 35, 6);
  const auto faults = [&](std::uint64_t sequence, std::uint64_t asked_ns) {
    Match match = match_history(history, writes);
    check_moment(sequence, asked_ns, match);
    return match.faults.size();
  };
  EXPECT_EQ(faults(1, 25), 0u);
  EXPECT_EQ(faults(0, 25), 1u);
  EXPECT_EQ(faults(2, 25), 1u);
  EXPECT_EQ(faults(1, 35), 0u);
  EXPECT_EQ(faults(2, 35), 0u);
}

}  // namespace
}  // namespace mariner::hammer
