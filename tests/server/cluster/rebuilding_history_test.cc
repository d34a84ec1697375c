#include "server/cluster/rebuilding_history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "server/cluster/away_history.h"
#include "tests/server/cluster/letters_base.h"
#include "tests/server/volume/logged_rig.h"

namespace mariner::cluster {
namespace {

using test::LoggedRig;
using volume::History;
using volume::PastRun;

constexpr BlockCount kBlocks{100'000};

// A logger that has given up blocks 4 to 7, and has written to 6 since.
class RebuildingHistoryTest : public ::testing::Test {
 protected:
  RebuildingHistoryTest() {
    rig_.write(1, {{2}, {1}}, 'a');
    rig_.base.add({{4}, {4}});
    rig_.write(2, {{6}, {1}}, 'b');
  }
  std::string read(RebuildingHistory& history, BlockRange range, std::uint64_t at) {
    Payload to = Payload::zeroed(range.count.bytes());
    std::string out = "...";
    history.read(range, {at}, to.bytes(), [&](const Result<std::vector<BlockRange>>& base) {
      out = !base           ? std::string(error_code_name(base.error().code))
            : base->empty() ? LoggedRig::text_of(to.bytes())
                            : "base";
    });
    rig_.executor.run_ready();
    return out;
  }
  // Letters, '0' for zeros, '.' for base.
  std::string locate(RebuildingHistory& history, std::vector<History::Lookup> lookups) {
    std::string out;
    history.locate(std::move(lookups), [&](const Result<History::Located>& found) {
      if (!found) {
        out = error_code_name(found.error().code);
        return;
      }
      for (const PastRun& run : found->runs) {
        const std::size_t count = run.range.count.value;
        if (run.source == PastRun::Source::kZero) out += std::string(count, '0');
        if (run.source == PastRun::Source::kBase) out += std::string(count, '.');
        if (run.source != PastRun::Source::kLog) continue;
        out +=
            run.bytes.length == 0 ? std::string(count, '?') : LoggedRig::text_of(run.bytes.bytes());
      }
    });
    rig_.executor.run_ready();
    return out;
  }
  std::string changed(RebuildingHistory& history, std::uint64_t from, std::uint64_t to = 2) {
    std::string out;
    history.changed(
        {from}, {to},
        [&](std::span<const BlockRange> extents) {
          for (const BlockRange& each : extents) {
            out += std::to_string(each.first.value) + "+" + std::to_string(each.count.value) + " ";
          }
        },
        [&](const Result<void>& r) { out += r ? "done" : "failed"; });
    rig_.executor.run_ready();
    return out;
  }

  // That the image holds 'x's is nobody's business.
  std::string log_base(RebuildingHistory& history, BlockRange range) {
    std::string out = "...";
    history.log_before_image(
        range, LoggedRig::blocks_of('x', range.count.value),
        [&](const Result<void>& r) { out = r ? "logged" : error_code_name(r.error().code); });
    rig_.executor.run_ready();
    return out;
  }

  LoggedRig rig_{false};
  test::LettersBase other_;
  HeldBase holds_ = HeldBase::kNone;
  RebuildingHistory history_{rig_.history, &other_, kBlocks, [this] { return holds_; }};
};

TEST_F(RebuildingHistoryTest, TheBaseComesFromAnotherImage) {
  EXPECT_EQ(read(history_, {{1}, {7}}, 2), "0a0EFbH");
  EXPECT_EQ(locate(history_, {{{{4}, {4}}, {2}, true}}), "EFbH");
  EXPECT_EQ(locate(history_, {{{{4}, {4}}, {0}, false}, {{{4}, {2}}, {2}, true}}), "00..EF")
      << "where it gets the base itself, that need not be captured";
  other_.good = false;
  EXPECT_EQ(read(history_, {{4}, {1}}, 2), "unavailable");
  EXPECT_EQ(locate(history_, {{{{4}, {1}}, {2}, true}}), "unavailable");
  EXPECT_EQ(read(history_, {{6}, {1}}, 2), "b") << "which the log has";
}

// The other image may not have got so far when this one is built, and after a start nobody knows
// where this one got something else.
TEST_F(RebuildingHistoryTest, TheBaseOfWhatGetsSomethingElseIsLoggedFromTheOtherImage) {
  EXPECT_EQ(locate(history_, {{{{4}, {1}}, {2}, true}, {{{4}, {1}}, {0}}}), "E0") << "its base";
  EXPECT_EQ(locate(history_, {{{{6}, {1}}, {2}, true}, {{{6}, {1}}, {0}}}), "b.") << "another";
  other_.good = false;
  EXPECT_EQ(log_base(history_, {{6}, {1}}), "unavailable");
  other_.good = true;
  EXPECT_EQ(log_base(history_, {{6}, {1}}), "logged");
  holds_ = HeldBase::kAll;
  EXPECT_EQ(locate(history_, {{{{4}, {4}}, {0}, true}}), "..G.");
  RebuildingHistory restarted(rig_.history, &other_, kBlocks, [] { return HeldBase::kAll; });
  other_.asked.clear();
  EXPECT_EQ(read(restarted, {{6}, {1}}, 1), "G");
  EXPECT_EQ(read(restarted, {{4}, {1}}, 1), "base");
  EXPECT_TRUE(other_.asked.empty());
}

TEST_F(RebuildingHistoryTest, WhatIsStoredHasChangedSinceTheBeginning) {
  EXPECT_EQ(changed(history_, 0), "2+1 4+4 done");
  EXPECT_EQ(changed(history_, 1), "6+1 done");
}

TEST_F(RebuildingHistoryTest, SoHaveZerosWhoseBaseNobodyHasLogged) {
  rig_.write(3, {{7}, {1}}, 0, replication::WriteKind::kZero);
  rig_.write(4, {{9}, {1}}, 0, replication::WriteKind::kZero);
  EXPECT_EQ(changed(history_, 0, 4), "2+1 4+4 done");
  rig_.capture({{7}, {1}}, 'H');
  EXPECT_EQ(changed(history_, 0, 4), "2+1 4+3 done");
}

// A logger on this node, of a volume that is new: everything is answered at once.
class NothingStored final : public AwayHistory {
 public:
  void locate(std::vector<Lookup> lookups, LocateDone done) override {
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    highest = std::max(highest, here);
    lowest = std::min(lowest, here);
    ++asked;
    Located located;
    for (const Lookup& each : lookups) {
      located.runs.push_back({each.range, PastRun::Source::kZero, false, {}});
    }
    done(std::move(located));
  }
  std::size_t asked = 0;
  std::uintptr_t highest = 0;  // on the stack
  std::uintptr_t lowest = UINTPTR_MAX;
};

TEST(RebuildingHistoryOfMuch, DoesNotPileUpOnTheStack) {
  NothingStored below;
  RebuildingHistory history(below, nullptr, BlockCount{std::uint64_t{1} << 30},
                            [] { return HeldBase::kNone; });
  std::size_t extents = 0;
  std::optional<Result<void>> done;
  history.changed(
      {0}, {2}, [&](std::span<const BlockRange> some) { extents += some.size(); },
      [&](Result<void> result) { done = std::move(result); });
  ASSERT_TRUE(done && *done);
  EXPECT_EQ(extents, 0u);
  EXPECT_EQ(below.asked, 16384u) << "4 TiB";
  EXPECT_LT(below.highest - below.lowest, 64u << 10);
}

TEST_F(RebuildingHistoryTest, WithoutAnotherImageItCannotBe) {
  RebuildingHistory alone(rig_.history, nullptr, kBlocks, [] { return HeldBase::kNone; });
  EXPECT_EQ(read(alone, {{4}, {1}}, 2), "unavailable");
  EXPECT_EQ(read(alone, {{6}, {1}}, 2), "b");
  EXPECT_EQ(locate(alone, {{{{4}, {1}}, {2}, true}}), "unavailable");
  EXPECT_EQ(log_base(alone, {{6}, {1}}), "unavailable") << "nobody has it";
}

TEST_F(RebuildingHistoryTest, WhatIsNotKnownToBeTheBaseIsNotTakenForIt) {
  holds_ = HeldBase::kUnknown;
  EXPECT_EQ(read(history_, {{4}, {1}}, 2), "unavailable");
  EXPECT_EQ(read(history_, {{6}, {1}}, 2), "b");
  EXPECT_EQ(locate(history_, {{{{4}, {1}}, {2}, true}}), "unavailable");
  EXPECT_EQ(locate(history_, {{{{6}, {1}}, {2}, true}, {{{6}, {1}}, {0}}}), "unavailable");
  EXPECT_EQ(locate(history_, {{{{2}, {1}}, {2}, true}, {{{2}, {1}}, {0}}}), "a0");
  EXPECT_EQ(locate(history_, {{{{4}, {3}}, {2}}}), "..?") << "where it stands is no secret";
  EXPECT_EQ(changed(history_, 0), "2+1 6+1 done");
  EXPECT_TRUE(other_.asked.empty());
}

TEST_F(RebuildingHistoryTest, PassesOnWhenItIsBuilt) {
  holds_ = HeldBase::kAll;
  EXPECT_EQ(locate(history_, {{{{4}, {4}}, {2}, true}}), "..b.");
  EXPECT_EQ(read(history_, {{4}, {1}}, 2), "base");
  EXPECT_EQ(changed(history_, 0), "2+1 6+1 done");
  EXPECT_EQ(log_base(history_, {{4}, {1}}), "logged");
  EXPECT_EQ(read(history_, {{4}, {1}}, 2), "x");
  EXPECT_TRUE(other_.asked.empty());
  EXPECT_TRUE(history_.idle());
}

}  // namespace
}  // namespace mariner::cluster
