#include "uvfs/replayed_past.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ifsck/journal.h"
#include "ifsck/volume_ranges.h"
#include "tests/ifsck/past_behind.h"
#include "tests/uvfs/made_journal_history.h"

namespace mariner::uvfs {
namespace {

using ifsck::Past;
using ifsck::TracePast;
using Bytes = std::vector<std::byte>;

std::uint64_t rounds(std::uint64_t few) {
  const char* const more = std::getenv("MARINER_TEST_SEEDS");
  return more != nullptr ? std::strtoull(more, nullptr, 10) : few;
}

// What replay_journal() says of a moment.
class Truth {
 public:
  Truth(Past& past, SequenceNumber at) : view_(past, at, overlay_) {
    const auto done = ifsck::replay_journal(view_);
    transactions = done ? done->transactions : 0;
    refused = !done;
  }
  // Blocks that it wrote.
  [[nodiscard]] std::vector<Lbn> written() const {
    std::vector<Lbn> out;
    overlay_.for_each([&](Lbn lbn, const ifsck::Overlay::Block&) { out.push_back(lbn); });
    return out;
  }
  Bytes read(Lbn lbn) {
    Bytes bytes(kBlockBytes);
    EXPECT_TRUE(view_.read({lbn.byte_offset(), kBlockBytes}, bytes).has_value());
    return bytes;
  }
  std::uint64_t transactions = 0;
  bool refused = false;

 private:
  ifsck::Overlay overlay_;
  ifsck::View view_;
};

// What all moments of a stretch have been like.
struct Sum {
  std::uint64_t moments = 0;
  std::uint64_t replayed = 0;  // of them
  std::uint64_t refused = 0;
  std::uint64_t changes = 0;         // of blocks
  std::uint64_t by_the_journal = 0;  // of them: that no write to the block made
  std::uint64_t versions = 0;        // that were found
};

class Comparison {
 public:
  Comparison(Past& past, ReplayedPast& replayed, MadeJournalHistory& history)
      : past_(past), replayed_(replayed), journal_(history.journal()), blocks_(history.blocks()) {}

  void run(SequenceNumber first, SequenceNumber last, const std::string& name) {
    // (A log that was spoiled can say any block.)
    for (const Lbn lbn : Truth(past_, first).written()) add(lbn);
    const auto changed = replayed_.changed(first, last).value();
    ifsck::for_each_block(changed, [this](Lbn lbn) { add(lbn); });
    std::ranges::sort(blocks_);
    const auto repeated = std::ranges::unique(blocks_);
    blocks_.erase(repeated.begin(), repeated.end());
    const auto found = replayed_.versions(blocks_, first, last).value();
    check_order(found);
    for (const auto& each : found) versions_.insert({each.block, each.sequence});
    for (const auto& each : past_.versions(blocks_, first, last).value()) {
      raw_.insert({each.block, each.sequence});
    }
    sum.versions += found.size();
    std::vector<Bytes> before;
    for (SequenceNumber at = first; at <= last; at = at.next()) {
      ++sum.moments;
      const std::vector<Bytes> now = read(at, name);
      if (::testing::Test::HasFatalFailure() || ::testing::Test::HasNonfatalFailure()) return;
      if (at != first) check_changes(before, now, at, name);
      before = now;
    }
    check_stretches(found, first, last);
  }
  Sum sum;

 private:
  std::vector<Bytes> read(SequenceNumber at, const std::string& name) {
    Truth truth(past_, at);
    sum.replayed += truth.transactions > 0 ? 1 : 0;
    sum.refused += truth.refused ? 1 : 0;
    for (const Lbn lbn : truth.written()) {
      EXPECT_TRUE(std::ranges::binary_search(blocks_, lbn) || is_ignored(lbn)) << lbn.value;
    }
    std::vector<Past::Question> questions;
    for (const Lbn lbn : blocks_) questions.push_back({lbn, at});
    Bytes bytes(questions.size() * kBlockBytes);
    const auto read = replayed_.read(questions, bytes);
    EXPECT_TRUE(read.has_value()) << read.error().message;
    std::vector<Bytes> out;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(i * kBlockBytes);
      out.emplace_back(begin, begin + kBlockBytes);
      EXPECT_TRUE(masked(blocks_[i], out.back()) == masked(blocks_[i], truth.read(blocks_[i])))
          << name << ": block " << blocks_[i].value << " at " << at.value << ", "
          << truth.transactions << " transactions, refused " << truth.refused;
    }
    return out;
  }
  // Without what is the journal's own, or the superblock.
  [[nodiscard]] Bytes masked(Lbn lbn, Bytes bytes) const {
    const std::uint32_t size = std::min(journal_.layout().block_bytes(), kBlockBytes);
    for (std::size_t at = 0; at < bytes.size(); at += size) {
      if (!journal_.file().has((lbn.byte_offset() + at) / size)) continue;
      std::ranges::fill(std::span(bytes).subspan(at, size), std::byte{});
    }
    if (lbn.value == 0) std::ranges::fill(std::span(bytes).subspan(1024, 1024), std::byte{});
    return bytes;
  }
  // Whole.
  [[nodiscard]] bool is_ignored(Lbn lbn) const {
    return masked(lbn, Bytes(kBlockBytes, std::byte{1})) == Bytes(kBlockBytes);
  }
  void add(Lbn lbn) {
    if (!is_ignored(lbn)) blocks_.push_back(lbn);
  }
  void check_changes(const std::vector<Bytes>& before, const std::vector<Bytes>& now,
                     SequenceNumber at, const std::string& name) {
    const SequenceNumber last{at.value - 1};
    const auto changed = replayed_.changed(last, at).value();
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      if (before[i] == now[i]) continue;
      ++sum.changes;
      sum.by_the_journal += raw_.contains({blocks_[i], at}) ? 0 : 1;
      const auto has = [&](const BlockRange& each) { return each.contains(blocks_[i]); };
      EXPECT_TRUE(versions_.contains({blocks_[i], at}))
          << name << ": block " << blocks_[i].value << " at " << at.value;
      EXPECT_TRUE(std::ranges::any_of(changed, has))
          << name << ": block " << blocks_[i].value << " at " << at.value;
    }
    // What versions() says of one moment is what it says of all.
    const auto some = replayed_.versions(blocks_, last, at).value();
    EXPECT_EQ(some.size(), static_cast<std::size_t>(std::ranges::count_if(
                               versions_, [&](const auto& each) { return each.second == at; })));
  }
  void check_order(const std::vector<Past::Version>& found) {
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].time, past_.time_of(found[i].sequence).value());
      if (i == 0) continue;
      EXPECT_LT(std::pair(found[i - 1].block, found[i - 1].sequence),
                std::pair(found[i].block, found[i].sequence));
    }
  }
  // changed() of some is what versions() of the same is.
  void check_stretches(const std::vector<Past::Version>& found, SequenceNumber first,
                       SequenceNumber last) {
    for (int i = 0; i < 20; ++i) {
      const SequenceNumber from{first.value + random_() % (last.value - first.value + 1)};
      const SequenceNumber to{from.value + random_() % (last.value - from.value + 1)};
      const auto changed = replayed_.changed(from, to).value();
      for (const auto& each : found) {
        if (each.sequence <= from || each.sequence > to) continue;
        const auto has = [&](const BlockRange& range) { return range.contains(each.block); };
        EXPECT_TRUE(std::ranges::any_of(changed, has)) << each.block.value;
      }
      EXPECT_TRUE(std::ranges::is_sorted(changed));
    }
  }

  Past& past_;
  ReplayedPast& replayed_;
  const MadeJournal& journal_;
  std::vector<Lbn> blocks_;
  std::set<std::pair<Lbn, SequenceNumber>> versions_;
  std::set<std::pair<Lbn, SequenceNumber>> raw_;
  std::mt19937_64 random_{1};
};

void add(Sum& sum, const Sum& more) {
  sum.moments += more.moments;
  sum.replayed += more.replayed;
  sum.refused += more.refused;
  sum.changes += more.changes;
  sum.by_the_journal += more.by_the_journal;
  sum.versions += more.versions;
}

constexpr std::uint32_t kRevoke = Super::kRevoke;
struct Case {
  const char* image;
  MadeJournal::Options journal;
  friend void PrintTo(const Case& one, std::ostream* out) {
    *out << one.image << ", features " << one.journal.compatible << " " << one.journal.incompatible;
  }
};
const Case kCases[] = {
    {"-t ext3 -b 1024 -J size=1", {.version = 1, .incompatible = 0, .blocks = 61}},
    {"-t ext3 -b 1024 -J size=1", {.sequence = ~0u - 9, .blocks = 90}},
    {"-t ext3 -b 4096 -J size=4", {.compatible = Super::kCompatChecksum, .blocks = 70}},
    {"-t ext4 -b 1024 -J size=1",
     {.compatible = Super::kCompatChecksum,
      .incompatible = kRevoke | Super::kAsyncCommit,
      .start = 30,
      .blocks = 80}},
    {"-t ext4 -b 2048 -J size=2 -O 64bit,metadata_csum",
     {.incompatible = kRevoke | Super::k64Bit | Super::kChecksumV3, .blocks = 64}},
    {"-t ext4 -b 4096 -J size=4 -O ^64bit",
     {.incompatible = kRevoke | Super::kChecksumV2, .blocks = 50}},
    {"-t ext4 -b 1024 -J size=1",
     {.incompatible = kRevoke | Super::k64Bit | Super::kChecksumV2, .blocks = 77}},
    {"-t ext4 -b 4096 -J size=4",
     {.incompatible = kRevoke | Super::k64Bit | Super::kChecksumV3, .start = 40, .blocks = 60}},
    {"-t ext4 -b 4096 -J size=4",
     {.incompatible = kRevoke | Super::kChecksumV3 | Super::kAsyncCommit, .blocks = 60}},
    {"-t ext4 -b 4096 -J size=4", {.sequence = 77, .start = 1000}},
};

class ReplayedPastTest : public ::testing::TestWithParam<Case> {
 protected:
  static Sum compare(bool calm, std::uint64_t seed, std::size_t steps,
                     const ReplayedPast::Options& options) {
    const std::string name = "seed " + std::to_string(seed);
    MadeJournalHistory history({GetParam().image, GetParam().journal, calm}, seed);
    history.run(steps);
    TracePast past = history.past();
    const SequenceNumber first{seed % 3 == 0 ? 0 : 1 + seed * 13 % (history.last().value / 2)};
    auto replayed = ReplayedPast::open(past, first, history.last(), options);
    EXPECT_TRUE(replayed.has_value()) << replayed.error().message;
    Comparison comparison(past, **replayed, history);
    comparison.run(first, history.last(), name);
    return comparison.sum;
  }
};

TEST_P(ReplayedPastTest, IsWhatAMountWouldHaveAtEveryMoment) {
  Sum sum;
  for (std::uint64_t seed = 0; seed < rounds(4); ++seed) {
    add(sum, compare(true, seed, 60, {}));
    if (HasFailure()) return;
  }
  EXPECT_GT(sum.replayed, sum.moments / 2);
  EXPECT_EQ(sum.refused, 0u);
  EXPECT_GT(sum.by_the_journal, sum.moments / 8);
}

TEST_P(ReplayedPastTest, IsThatOfAnyLog) {
  Sum sum;
  for (std::uint64_t seed = 0; seed < rounds(12); ++seed) {
    // Little is kept, and much is read again.
    ReplayedPast::Options options;
    if (seed % 2 == 0) {
      options.ring = {.kept_blocks_max = 1 + seed, .questions_max = 5, .ahead = 1 + seed % 4};
      options.fetched_at_once = 1 + seed % 7;
    }
    add(sum, compare(false, 100 + seed, 80, options));
    if (HasFailure()) return;
  }
  EXPECT_GT(sum.replayed, sum.moments / 6);
  EXPECT_GT(sum.refused, 0u);
  EXPECT_GT(sum.by_the_journal, sum.moments / 8);
}

INSTANTIATE_TEST_SUITE_P(Journals, ReplayedPastTest, ::testing::ValuesIn(kCases));

}  // namespace
}  // namespace mariner::uvfs
