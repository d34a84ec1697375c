#include "server/volume/history.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tests/server/volume/asked_history.h"

namespace mariner::volume {
namespace {

using test::AskedHistory;
using Source = PastRun::Source;

PastRun run(std::uint64_t first, std::uint64_t count, Source source) {
  return {{{first}, {count}}, source, false, {}};
}

// Answers one block at a time, at once.
class TerseHistory final : public History {
 public:
  void locate(std::vector<Lookup> lookups, LocateDone done) override {
    ++asked;
    const BlockRange first{lookups.front().range.first, {1}};
    done(Located{{{first, Source::kLog, false, lookups.front().at}}, {asked}});
  }
  void read(BlockRange, SequenceNumber, std::span<std::byte>, ReadDone) override {}
  void changed(SequenceNumber, SequenceNumber, Portion, Done) override {}
  void versions(std::vector<Since>, SequenceNumber, VersionsDone) override {}
  void hold(SequenceNumber, HoldDone) override {}
  void log_before_image(BlockRange, PayloadSlice, Done) override {}
  void moment(std::variant<VersionTime, SequenceNumber>, MomentDone) override {}
  void summarize(const HistorySummary::Question&, SummaryDone) override {}

  std::uint64_t asked = 0;
};

TEST(LocateAll, AsksForTheRestOfAnAnswerThatEndsEarly) {
  AskedHistory history;
  std::optional<Result<History::Located>> found;
  locate_all(history, {{{{4}, {4}}, {9}}, {{{4}, {2}}, {0}, true}},
             [&](Result<History::Located> r) { found = std::move(r); });
  AskedHistory::Locate asked = AskedHistory::next(history.locates);
  ASSERT_EQ(asked.lookups.size(), 2u);
  asked.done(History::Located{{run(4, 1, Source::kLog), run(5, 1, Source::kZero)}, {20}});
  asked = AskedHistory::next(history.locates);
  ASSERT_EQ(asked.lookups.size(), 2u);
  EXPECT_EQ(asked.lookups[0].range, (BlockRange{{6}, {2}}));
  EXPECT_EQ(asked.lookups[0].at, SequenceNumber{9});
  asked.done(History::Located{{run(6, 2, Source::kBase), run(4, 1, Source::kBase)}, {21}});
  asked = AskedHistory::next(history.locates);
  ASSERT_EQ(asked.lookups.size(), 1u);
  EXPECT_EQ(asked.lookups[0].range, (BlockRange{{5}, {1}}));
  EXPECT_TRUE(asked.lookups[0].with_bytes);
  EXPECT_FALSE(found);
  asked.done(History::Located{{run(5, 1, Source::kLog)}, {22}});
  ASSERT_TRUE(found && *found);
  ASSERT_EQ((*found)->runs.size(), 5u);
  EXPECT_EQ((*found)->runs[2].range, (BlockRange{{6}, {2}}));
  EXPECT_EQ((*found)->runs[4].range, (BlockRange{{5}, {1}}));
  EXPECT_EQ((*found)->newest, SequenceNumber{22});
}

TEST(LocateAll, AGreatManyAnswersDoNotPileUp) {
  TerseHistory history;
  std::size_t runs = 0;
  locate_all(history, {{{{0}, {200'000}}, {1}}},
             [&](const Result<History::Located>& found) { runs = found->runs.size(); });
  EXPECT_EQ(runs, 200'000u);
  EXPECT_EQ(history.asked, 200'000u);
}

TEST(LocateAll, EndsWithTheFirstError) {
  AskedHistory history;
  std::optional<ErrorCode> code;
  locate_all(history, {{{{0}, {2}}, {1}}},
             [&](const Result<History::Located>& found) { code = found.error().code; });
  AskedHistory::next(history.locates).done(History::Located{{run(0, 1, Source::kLog)}, {}});
  EXPECT_FALSE(code);
  AskedHistory::next(history.locates).done(Error{ErrorCode::kUnavailable, "away"});
  EXPECT_EQ(code, ErrorCode::kUnavailable);
  EXPECT_TRUE(history.locates.empty());
}

TEST(LocateAll, NothingToAskIsAnsweredAtOnce) {
  AskedHistory history;
  bool answered = false;
  locate_all(history, {}, [&](const Result<History::Located>& found) {
    answered = found && found->runs.empty();
  });
  EXPECT_TRUE(answered);
  EXPECT_TRUE(history.locates.empty());
}

TEST(AllocationAt, JoinsWhatIsAlikeAndEndsWithTheBytes) {
  AskedHistory history;
  std::vector<Allocation> parts;
  allocation_at(history, {512, 6 * kBlockBytes}, SequenceNumber{1},
                [&](Result<std::vector<Allocation>> found) { parts = *std::move(found); });
  AskedHistory::Locate asked = AskedHistory::next(history.locates);
  EXPECT_EQ(asked.lookups[0].range, (BlockRange{{0}, {7}}));
  asked.done(History::Located{{run(0, 1, Source::kLog), run(1, 1, Source::kBase),
                               run(2, 2, Source::kZero), run(4, 3, Source::kBase)},
                              {1}});
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].range, (ByteRange{512, 2 * kBlockBytes - 512}));
  EXPECT_TRUE(parts[0].mapped);
  EXPECT_EQ(parts[1].range, (ByteRange{2 * kBlockBytes, 2 * kBlockBytes}));
  EXPECT_FALSE(parts[1].mapped);
  EXPECT_EQ(parts[2].range.end(), 512 + 6 * kBlockBytes);
}

}  // namespace
}  // namespace mariner::volume
