#include "server/cluster/remote_history.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/server/cluster/history_link.h"
#include "tests/server/cluster/letters_base.h"
#include "tests/server/volume/asked_history.h"
#include "tests/server/volume/logged_rig.h"

namespace mariner::cluster {
namespace {

using test::AskedHistory;
using volume::History;
using volume::PastRun;
using Source = PastRun::Source;

PayloadSlice bytes_of(char byte, std::uint64_t blocks) {
  return test::LoggedRig::blocks_of(byte, blocks);
}

std::string text_of(const PastRun& run) {
  std::string out = run.source == Source::kZero  ? "zero"
                    : run.source == Source::kLog ? "log"
                                                 : "base";
  out += "@" + std::to_string(run.range.first.value) + "+" + std::to_string(run.range.count.value);
  if (run.bytes.length > 0) out += " " + test::LoggedRig::text_of(run.bytes.bytes());
  return out;
}

class RemoteHistoryTest : public ::testing::Test {
 protected:
  RemoteHistoryTest() { link_.connect(); }
  void turn() { link_.executor.run_ready(); }

  AskedHistory far_;
  HistoryLink link_{far_};
  RemoteHistory& near_ = link_.near;
};

TEST_F(RemoteHistoryTest, LocatesWithTheBytes) {
  std::vector<std::string> found;
  SequenceNumber newest;
  near_.locate({{{{10}, {8}}, {50}, true}, {{{100}, {4}}, {51}, false}},
               [&](Result<History::Located> located) {
                 ASSERT_TRUE(located.has_value());
                 newest = located->newest;
                 for (const PastRun& run : located->runs) found.push_back(text_of(run));
               });
  turn();
  auto asked = AskedHistory::next(far_.locates);
  ASSERT_EQ(asked.lookups.size(), 2u);
  EXPECT_EQ(asked.lookups[0].range, (BlockRange{{10}, {8}}));
  EXPECT_EQ(asked.lookups[0].at, SequenceNumber{50});
  EXPECT_TRUE(asked.lookups[0].with_bytes);
  EXPECT_FALSE(asked.lookups[1].with_bytes);
  asked.done(History::Located{{{{{10}, {2}}, Source::kLog, false, {40}, bytes_of('a', 2)},
                               {{{12}, {5}}, Source::kLog, true, {41}, bytes_of('b', 1)},
                               {{{17}, {1}}, Source::kBase, false, {}},
                               {{{100}, {4}}, Source::kZero, false, {42}}},
                              {60}});
  turn();
  EXPECT_EQ(found,
            (std::vector<std::string>{"log@10+2 aa", "log@12+5 b", "base@17+1", "zero@100+4"}));
  EXPECT_EQ(newest, SequenceNumber{60});
}

TEST_F(RemoteHistoryTest, ReadsInPiecesAndLeavesTheBaseAlone) {
  const BlockRange range{{5}, {kQuestionBlocksMax + 3}};
  Payload to = test::LoggedRig::blocks_of('-', range.count.value).payload;
  std::optional<std::vector<BlockRange>> base;
  near_.read(range, {9}, to.bytes(), [&](Result<std::vector<BlockRange>> result) {
    ASSERT_TRUE(result.has_value());
    base = std::move(*result);
  });
  turn();
  ASSERT_EQ(far_.reads.size(), 2u);
  auto first = AskedHistory::next(far_.reads);
  auto second = AskedHistory::next(far_.reads);
  EXPECT_EQ(second.range, (BlockRange{{5 + kQuestionBlocksMax}, {3}}));
  std::memset(second.to.data(), 'z', second.to.size());
  second.done(std::vector<BlockRange>{{{6 + kQuestionBlocksMax}, {1}}});
  turn();
  EXPECT_FALSE(base.has_value());
  std::memset(first.to.data(), 'y', first.to.size());
  first.done(std::vector<BlockRange>{{{5}, {2}}});
  turn();
  ASSERT_TRUE(base.has_value());
  EXPECT_EQ(*base, (std::vector<BlockRange>{{{5}, {2}}, {{6 + kQuestionBlocksMax}, {1}}}));
  const std::string text = test::LoggedRig::text_of(to.bytes());
  EXPECT_EQ(text.substr(0, 4), "--yy");
  EXPECT_EQ(text.substr(text.size() - 4), "yz-z");
}

TEST_F(RemoteHistoryTest, ChangesComeInPortions) {
  std::size_t extents = 0;
  std::optional<bool> all;
  near_.changed(
      {3}, {8}, [&](std::span<const BlockRange> some) { extents += some.size(); },
      [&](const Result<void>& done) { all = done.has_value(); });
  turn();
  auto asked = AskedHistory::next(far_.changes);
  EXPECT_EQ(asked.from, SequenceNumber{3});
  EXPECT_EQ(asked.to, SequenceNumber{8});
  const std::vector<BlockRange> many(kAnswerRunsMax + 10, BlockRange{{1}, {1}});
  asked.portion(many);
  turn();
  EXPECT_EQ(extents, many.size());
  EXPECT_FALSE(all.has_value());
  asked.portion(std::span(many).first(1));
  asked.done({});
  turn();
  EXPECT_EQ(extents, many.size() + 1);
  EXPECT_EQ(all, true);
}

TEST_F(RemoteHistoryTest, HoldsLastAsLongAsTheyAreHeldAlsoWhenTheConnectionBreaks) {
  History::Hold hold;
  const auto held = std::make_shared<int>(1);
  near_.hold({33}, [&](Result<History::Hold> result) { hold = *result; });
  turn();
  AskedHistory::next(far_.holds).done(History::Hold(held));
  turn();
  ASSERT_NE(hold, nullptr);
  EXPECT_EQ(held.use_count(), 2);
  link_.disconnect();
  EXPECT_EQ(held.use_count(), 1) << "the logger lets go";
  link_.connect();
  turn();
  auto again = AskedHistory::next(far_.holds);
  EXPECT_EQ(again.at, SequenceNumber{33});
  again.done(History::Hold(held));
  turn();
  EXPECT_EQ(held.use_count(), 2);
  hold.reset();
  turn();
  EXPECT_EQ(held.use_count(), 1);
}

TEST_F(RemoteHistoryTest, AHoldThatIsLetGoBeforeItIsAnsweredDoesNotStay) {
  const auto held = std::make_shared<int>(1);
  link_.disconnect();
  link_.connect();
  History::Hold hold;
  near_.hold({33}, [&](Result<History::Hold> result) { hold = *result; });
  turn();
  AskedHistory::next(far_.holds).done(History::Hold(held));
  turn();
  link_.disconnect();
  link_.connect();
  turn();
  hold.reset();  // while it is being asked for again
  turn();
  AskedHistory::next(far_.holds).done(History::Hold(held));
  turn();
  EXPECT_EQ(held.use_count(), 1);
}

TEST_F(RemoteHistoryTest, BeforeImagesAreLogged) {
  std::optional<Result<void>> logged;
  near_.log_before_image({{8}, {2}}, test::LoggedRig::blocks_of('o', 2),
                         [&](const Result<void>& result) { logged = result; });
  turn();
  auto asked = AskedHistory::next(far_.before_images);
  EXPECT_EQ(asked.range, (BlockRange{{8}, {2}}));
  EXPECT_EQ(test::LoggedRig::text_of(asked.bytes.bytes()), "oo");
  asked.done({});
  turn();
  ASSERT_TRUE(logged.has_value());
  EXPECT_TRUE(logged->has_value());
}

TEST_F(RemoteHistoryTest, ErrorsComeAsTheyAre) {
  ErrorCode code{};
  const auto failed = [&](const auto& result) { code = result.error().code; };
  near_.locate({{{{10}, {8}}, {50}, false}}, failed);
  turn();
  AskedHistory::next(far_.locates).done(Error{ErrorCode::kOutsideWindow, "gone"});
  turn();
  EXPECT_EQ(code, ErrorCode::kOutsideWindow);
  near_.locate({{{{10}, {1}}, {50}, true}}, failed);
  turn();
  AskedHistory::next(far_.locates).done(Error{ErrorCode::kCorrupt, "damaged"});
  turn();
  EXPECT_EQ(code, ErrorCode::kCorrupt);
}

TEST_F(RemoteHistoryTest, WithoutALoggerEverythingIsUnavailable) {
  std::size_t unavailable = 0;
  const auto count = [&](const auto& result) {
    unavailable += result.error().code == ErrorCode::kUnavailable ? 1 : 0;
  };
  Payload to = Payload::allocate(2 * kBlockBytes);
  const auto ask_all = [&] {
    near_.locate({{{{10}, {8}}, {50}, false}}, count);
    near_.read({{1}, {2}}, {5}, to.bytes(), count);
    near_.changed(
        {1}, {2}, [](std::span<const BlockRange>) {}, count);
    near_.hold({4}, count);
    near_.log_before_image({{8}, {2}}, test::LoggedRig::blocks_of('o', 2), count);
  };
  ask_all();
  turn();
  link_.disconnect();
  EXPECT_EQ(unavailable, 5u) << "under way";
  ask_all();
  EXPECT_EQ(unavailable, 10u);
  // What was under way answers into the void.
  AskedHistory::next(far_.locates).done(Error{ErrorCode::kIo, "late"});
  AskedHistory::next(far_.before_images).done({});
  turn();
  EXPECT_EQ(unavailable, 10u);
}

TEST_F(RemoteHistoryTest, ABeforeImageOfABrokenConnectionComesBeforeTheNextOnes) {
  const auto ignore = [](const Result<void>&) {};
  near_.log_before_image({{8}, {1}}, test::LoggedRig::blocks_of('o', 1), ignore);
  turn();
  ASSERT_EQ(far_.before_images.size(), 1u);
  link_.disconnect();
  link_.connect();
  bool logged = false;
  near_.log_before_image({{8}, {1}}, test::LoggedRig::blocks_of('n', 1),
                         [&](const Result<void>& result) { logged = result.has_value(); });
  turn();
  ASSERT_EQ(far_.before_images.size(), 1u) << "the first one may not be overtaken";
  AskedHistory::next(far_.before_images).done({});
  turn();
  ASSERT_EQ(far_.before_images.size(), 1u);
  EXPECT_EQ(test::LoggedRig::text_of(far_.before_images.front().bytes.bytes()), "n");
  AskedHistory::next(far_.before_images).done({});
  turn();
  EXPECT_TRUE(logged);
}

TEST_F(RemoteHistoryTest, AsksForMomentsAndSummaries) {
  std::optional<History::Moment> moment;
  near_.moment(VersionTime{17}, [&](Result<History::Moment> found) { moment = *found; });
  std::optional<volume::HistorySummary> summary;
  near_.summarize({{1}, {9}, {}, 0, 0, UINT32_MAX},
                  [&](Result<volume::HistorySummary> made) { summary = *made; });
  turn();
  auto asked = AskedHistory::next(far_.moments);
  EXPECT_EQ(std::get<VersionTime>(asked.asked), VersionTime{17});
  asked.done(History::Moment{{{4}, {16}}, {{1}, {2}}, {{8}, {20}}, SequenceNumber{3}});
  auto summing = AskedHistory::next(far_.summaries);
  EXPECT_EQ(summing.question.to, SequenceNumber{9});
  EXPECT_EQ(summing.question.writes_max, kSummaryWritesMax) << "no more than an answer holds";
  volume::HistorySummary made;
  made.writes = 8;
  summing.done(std::move(made));
  turn();
  ASSERT_TRUE(moment && summary);
  EXPECT_EQ(moment->at.sequence, SequenceNumber{4});
  EXPECT_EQ(moment->last_rollback, SequenceNumber{3});
  EXPECT_EQ(summary->writes, 8u);

  std::vector<ErrorCode> failed;
  near_.moment(SequenceNumber{5}, [&](const auto& found) { failed.push_back(found.error().code); });
  near_.summarize({{1}, {9}}, [&](const auto& out) { failed.push_back(out.error().code); });
  turn();
  AskedHistory::next(far_.moments).done(Error{ErrorCode::kIo, "damaged"});
  turn();
  link_.disconnect();
  EXPECT_EQ(failed, (std::vector{ErrorCode::kIo, ErrorCode::kUnavailable}));
}

TEST_F(RemoteHistoryTest, AsksForVersions) {
  std::optional<Result<History::Versions>> listed;
  const auto ask = [&] {
    near_.versions({{{4}, {1}}, {{6}, {2}}}, {9},
                   [&](Result<History::Versions> found) { listed = std::move(found); });
    turn();
  };
  ask();
  auto asked = AskedHistory::next(far_.listings);
  ASSERT_EQ(asked.blocks.size(), 2u);
  EXPECT_EQ(asked.blocks[1].after, SequenceNumber{2});
  EXPECT_EQ(asked.to, SequenceNumber{9});
  asked.done(History::Versions{{{{4}, {{2}, {20}}}, {{6}, {{3}, {30}}}, {{6}, {{9}, {90}}}}, true});
  turn();
  ASSERT_TRUE(listed && *listed);
  EXPECT_EQ((*listed)->list[2].at.time, VersionTime{90});
  EXPECT_TRUE((*listed)->more);

  ask();
  AskedHistory::next(far_.listings).done(Error{ErrorCode::kOutsideWindow, "gone"});
  turn();
  EXPECT_EQ(listed->error().code, ErrorCode::kOutsideWindow);
  ask();
  link_.disconnect();
  EXPECT_EQ(listed->error().code, ErrorCode::kUnavailable);
}

TEST_F(RemoteHistoryTest, ReadsTheImageOfAnotherNodeInPieces) {
  constexpr BlockCount kMore{kQuestionBlocksMax + 2};
  Payload to = Payload::zeroed(kMore.bytes());
  std::optional<Result<void>> read;
  near_.read_base({{1}, kMore}, to.bytes(), [&](const Result<void>& r) { read = r; });
  turn();
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->error().code, ErrorCode::kUnavailable) << "there is none";
  test::LettersBase letters;
  link_.image = &letters;
  near_.read_base({{1}, kMore}, to.bytes(), [&](const Result<void>& r) { read = r; });
  turn();
  EXPECT_TRUE(read->has_value());
  EXPECT_EQ(letters.asked.size(), 2u);
  EXPECT_EQ(test::LoggedRig::text_of(to.bytes().first(3 * kBlockBytes)), "BCD");
  letters.good = false;
  near_.read_base({{1}, {1}}, to.bytes().first(kBlockBytes),
                  [&](const Result<void>& r) { read = r; });
  turn();
  EXPECT_FALSE(read->has_value());
}

// What a storage node holds now: what it answers, the test says.
struct AskedCurrent final : public CurrentSource {
  void read(const CurrentQuestion& question, volume::ReadDone done) override {
    asked.push_back(question);
    answers.push_back(std::move(done));
  }
  std::vector<CurrentQuestion> asked;
  std::vector<volume::ReadDone> answers;
};

TEST_F(RemoteHistoryTest, ReadsWhatAStorageNodeHoldsNow) {
  constexpr BlockCount kMore{kQuestionBlocksMax + 1};
  Payload to = Payload::zeroed(kMore.bytes());
  std::optional<Result<void>> read;
  const auto ask = [&](BlockRange range) {
    read.reset();
    near_.read_current(range, {9}, {4}, to.bytes().first(range.count.bytes()),
                       [&](const Result<void>& r) { read = r; });
    turn();
  };
  ask({{1}, {2}});
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->error().code, ErrorCode::kUnavailable) << "it is not stored there";
  AskedCurrent current;
  link_.current = &current;
  ask({{1}, kMore});
  ASSERT_EQ(current.asked.size(), 2u);
  EXPECT_EQ(current.asked[1].range, (BlockRange{{1 + kQuestionBlocksMax}, {1}}));
  EXPECT_EQ(current.asked[1].at, SequenceNumber{9});
  EXPECT_EQ(current.asked[1].epoch, Epoch{4});
  current.answers[1](test::LoggedRig::blocks_of('z', 1));
  turn();
  EXPECT_FALSE(read.has_value());
  current.answers[0](test::LoggedRig::blocks_of('a', kQuestionBlocksMax));
  turn();
  ASSERT_TRUE(read.has_value());
  EXPECT_TRUE(read->has_value());
  EXPECT_EQ(test::LoggedRig::text_of(to.bytes().first(2 * kBlockBytes)), "aa");
  EXPECT_EQ(test::LoggedRig::text_of(to.bytes().last(kBlockBytes)), "z");
  ask({{1}, {1}});
  current.answers.back()(Error{ErrorCode::kUnavailable, "it follows another coordinator"});
  turn();
  EXPECT_EQ(read->error().code, ErrorCode::kUnavailable);
  ask({{1}, {1}});
  EXPECT_FALSE(read.has_value());
  link_.disconnect();
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->error().code, ErrorCode::kUnavailable);
}

TEST_F(RemoteHistoryTest, WaitsWhileTheConnectionTakesNothing) {
  link_.refuse_questions = true;
  bool done = false;
  near_.hold({4}, [&](const auto&) { done = true; });
  turn();
  EXPECT_TRUE(far_.holds.empty());
  link_.let_questions_go();
  turn();
  link_.refuse_answers = true;
  AskedHistory::next(far_.holds).done(Error{ErrorCode::kOutsideWindow, "gone"});
  turn();
  EXPECT_FALSE(done);
  near_.hold({5}, [](const auto&) {});
  turn();
  EXPECT_TRUE(far_.holds.empty()) << "nothing is begun whose answer would wait, too";
  link_.let_answers_go();
  turn();
  EXPECT_TRUE(done);
  EXPECT_EQ(far_.holds.size(), 1u);
}

// A logger that answers nonsense: the question ends, and the connection is given up.
class Nonsense : public RemoteHistoryTest {
 protected:
  Nonsense() {
    link_.disconnect();
    near_.up([](const HistoryFrame&) { return true; });
  }
  bool refused(decltype(HistoryAnswer::what) what) {
    bool failed = false;
    near_.locate({{{{10}, {8}}, {50}, true}},
                 [&](const auto& result) { failed = !result.has_value(); });
    ++id_;
    return !near_.received({HistoryLink::kVolume, id_, std::move(what)}).has_value() && failed;
  }
  static LocatedAnswer one(BlockRange range, PayloadSlice bytes = {}) {
    LocatedAnswer answer;
    answer.runs.push_back({range, Source::kLog, false, {3}, std::move(bytes)});
    return answer;
  }
  std::uint64_t id_ = 0;
};

TEST_F(Nonsense, IsNoAnswer) {
  EXPECT_FALSE(near_.received({HistoryLink::kVolume, 99, DoneAnswer{}}).has_value());
  EXPECT_TRUE(refused(DoneAnswer{}));
  EXPECT_TRUE(refused(ReadAnswer{}));
  EXPECT_TRUE(refused(MomentAnswer{}));
  EXPECT_TRUE(refused(SummaryAnswer{}));
  EXPECT_TRUE(refused(one({{11}, {1}}, test::LoggedRig::blocks_of('a', 1)))) << "a gap";
  EXPECT_TRUE(refused(one({{10}, {9}}, test::LoggedRig::blocks_of('a', 9)))) << "more";
  EXPECT_TRUE(refused(one({{10}, {1}}))) << "without its bytes";
  EXPECT_FALSE(refused(one({{10}, {1}}, test::LoggedRig::blocks_of('a', 1)))) << "it ends early";
}

TEST_F(Nonsense, VersionsThatWereNotAskedFor) {
  const auto is_refused = [this](std::vector<History::Version> list) {
    bool failed = false;
    near_.versions({{{4}, {1}}, {{6}, {2}}}, {9},
                   [&](const auto& result) { failed = !result.has_value(); });
    ++id_;
    return !near_.received({HistoryLink::kVolume, id_, VersionsAnswer{{std::move(list), false}}})
                .has_value() &&
           failed;
  };
  EXPECT_FALSE(is_refused({}));
  EXPECT_FALSE(is_refused({{{4}, {{2}, {}}}, {{4}, {{9}, {}}}, {{6}, {{3}, {}}}}));
  EXPECT_TRUE(is_refused({{{5}, {{2}, {}}}})) << "another block";
  EXPECT_TRUE(is_refused({{{6}, {{3}, {}}}, {{4}, {{2}, {}}}})) << "in another order";
  EXPECT_TRUE(is_refused({{{4}, {{3}, {}}}, {{4}, {{3}, {}}}})) << "one twice";
  EXPECT_TRUE(is_refused({{{6}, {{2}, {}}}})) << "too early";
  EXPECT_TRUE(is_refused({{{6}, {{10}, {}}}})) << "too late";
}

}  // namespace
}  // namespace mariner::cluster
