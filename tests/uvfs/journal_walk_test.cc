#include "uvfs/journal_walk.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "ifsck/journal.h"
#include "tests/uvfs/counted_past.h"
#include "tests/uvfs/made_journal_history.h"

namespace mariner::uvfs {
namespace {

using ifsck::Past;

class JournalWalkTest : public ::testing::Test {
 protected:
  JournalWalkTest()
      : history_({.image = "-t ext4 -b 4096 -J size=4",
                  .journal = {.incompatible = Super::kChecksumV3, .blocks = 64},
                  .calm = true},
                 8) {
    history_.run(60);
    past_.emplace(history_.past());
  }
  [[nodiscard]] const ifsck::JournalFile& file() { return history_.journal().file(); }
  Result<ReplayHistory> walk(Past& past, const JournalWalk::Options& options = {}) {
    return JournalWalk::run(
        past,
        {.file = file(), .file_system = *history_.journal().volume().fs()->super, .seed = seed_},
        {.first = SequenceNumber{2}, .last = history_.last()}, options);
  }
  // What is replayed at all moments is what is said to be.
  void compare(Past& past, const ReplayHistory& history) {
    for (SequenceNumber at{2}; at <= history_.last(); at = at.next()) {
      ifsck::Overlay overlay;
      ifsck::View view(past, at, overlay);
      const auto done = ifsck::replay_journal(view);
      for (const FsBlock each : history_.targets()) {
        const auto copy = history.copy_of(each, at);
        const bool written = done && overlay.find(Lbn{each}) != nullptr;
        ASSERT_EQ(copy.has_value(), written) << each << " at " << at.value;
        if (!copy) continue;
        std::vector<std::byte> bytes(kBlockBytes);
        ASSERT_TRUE(view.read(file().bytes_of(copy->from), bytes).has_value());
        if (copy->escaped) store_be(bytes.data(), JournalHead::kMagic);
        ASSERT_TRUE(std::ranges::equal(bytes, *overlay.find(Lbn{each}))) << at.value;
      }
    }
  }
  std::size_t copies(const ReplayHistory& history, SequenceNumber at) {
    return static_cast<std::size_t>(std::ranges::count_if(
        history_.targets(), [&](FsBlock each) { return history.copy_of(each, at).has_value(); }));
  }

  MadeJournalHistory history_;
  std::optional<ifsck::TracePast> past_;
  std::uint32_t seed_ = 0;
};

TEST_F(JournalWalkTest, FindsWhatIsReplayedAtEachMoment) {
  const auto history = walk(*past_);
  ASSERT_TRUE(history.has_value()) << history.error().message;
  compare(*past_, *history);
  EXPECT_GT(history->changes(), 50u);
}

TEST_F(JournalWalkTest, HasItsBounds) {
  const std::pair<const char*, std::function<void(JournalWalk::Options&)>> bounds[] = {
      {"may have 1000", [](auto& options) { options.journal_blocks_max = 1000; }},
      {"more than 100 writes", [](auto& options) { options.writes_max = 100; }},
      {"more than 10 transactions", [](auto& options) { options.transactions_max = 10; }},
      {"more than 12 blocks in", [](auto& options) { options.changes_max = 12; }},
      {"more than 90 blocks to look at", [](auto& options) { options.looks_max = 90; }},
  };
  for (const auto& [text, set] : bounds) {
    JournalWalk::Options options;
    set(options);
    const auto history = walk(*past_, options);
    ASSERT_FALSE(history.has_value()) << text;
    EXPECT_EQ(history.error().code, ErrorCode::kLimit);
    EXPECT_NE(history.error().message.find(text), std::string::npos) << history.error().message;
  }
}

// How far it was asked for writes, and how often.
class Asked final : public ifsck::PastBehind {
 public:
  using PastBehind::PastBehind;
  Result<std::vector<Version>> versions(std::span<const Lbn> blocks, SequenceNumber from,
                                        SequenceNumber to) override {
    ++times;
    last = to;
    return PastBehind::versions(blocks, from, to);
  }
  int times = 0;
  SequenceNumber last;
};

TEST_F(JournalWalkTest, AsksAboutSomeMomentsAtATime) {
  Asked past(*past_);
  const auto history = walk(past, {.moments_at_once = 4});
  ASSERT_TRUE(history.has_value()) << history.error().message;
  EXPECT_GT(past.times, 2);
  EXPECT_EQ(past.last, history_.last());
  compare(past, *history);
  // Of what is too much, no more is asked for than shows that.
  Asked much(*past_);
  EXPECT_EQ(walk(much, {.writes_max = 20, .moments_at_once = 4}).error().code, ErrorCode::kLimit);
  EXPECT_LT(much.last, history_.last());
}

// From `at` on it is as it was at `target`; versions() says nothing of that.
class Broken final : public ifsck::PastBehind {
 public:
  Broken(Past& past, SequenceNumber break_at, SequenceNumber break_to)
      : PastBehind(past), at(break_at), target(break_to) {}
  Result<void> read(std::span<const Question> questions, std::span<std::byte> to) override {
    std::vector<Question> asked(questions.begin(), questions.end());
    for (Question& each : asked) {
      if (each.at >= at) each.at = target;
    }
    return PastBehind::read(asked, to);
  }
  Result<std::vector<Version>> versions(std::span<const Lbn> blocks, SequenceNumber from,
                                        SequenceNumber to) override {
    auto found = PastBehind::versions(blocks, from, to);
    if (found) std::erase_if(*found, [this](const Version& each) { return each.sequence >= at; });
    return found;
  }
  Result<SequenceNumber> first_break(SequenceNumber from, SequenceNumber to) override {
    return from < at && at <= to ? at : SequenceNumber{};
  }
  const SequenceNumber at;
  const SequenceNumber target;
};

TEST_F(JournalWalkTest, BeginsAnewAtABreak) {
  int other = 0;
  for (std::uint64_t target = 10; target + 60 < history_.last().value; target += 17) {
    Broken past(*past_, SequenceNumber{target + 50}, SequenceNumber{target});
    const auto history = walk(past);
    ASSERT_TRUE(history.has_value()) << history.error().message;
    compare(past, *history);
    for (const FsBlock each : history_.targets()) {
      const SequenceNumber before{past.at.value - 1};
      if (!history->copy_of(each, before) && !history->copy_of(each, past.at)) continue;
      ++other;
      EXPECT_EQ(history->changes_of(each, before, past.at).size(), 1u);
    }
  }
  EXPECT_GT(other, 20);
  Broken past(*past_, history_.last(), {});
  EXPECT_EQ(walk(past, {.breaks_max = 0}).error().code, ErrorCode::kLimit);
}

TEST_F(JournalWalkTest, FindsNothingInTheJournalOfAnother) {
  EXPECT_GT(copies(*walk(*past_), history_.last()), 0u);
  seed_ = history_.journal().super().seed;
  EXPECT_GT(copies(*walk(*past_), history_.last()), 0u);
  seed_ ^= 1;
  EXPECT_EQ(walk(*past_)->changes(), 0u);
}

TEST_F(JournalWalkTest, ReplaysNothingWhileTheJournalIsElsewhere) {
  ext2_super_block super = *history_.journal().volume().fs()->super;
  const auto copies_of = [&](const ext2_super_block& like) {
    const auto found = JournalWalk::run(*past_, {.file = file(), .file_system = like},
                                        {.first = SequenceNumber{2}, .last = history_.last()}, {});
    return copies(*found, history_.last());
  };
  EXPECT_GT(copies_of(super), 0u);
  super.s_jnl_blocks[5] += 1;
  EXPECT_EQ(copies_of(super), 0u);
  super.s_jnl_blocks[5] -= 1;
  super.s_journal_inum = 20;
  EXPECT_EQ(copies_of(super), 0u);
}

}  // namespace
}  // namespace mariner::uvfs
