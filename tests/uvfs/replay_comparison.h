// What a ReplayedPast says, beside what replay_journal() says of each moment.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ifsck/journal.h"
#include "ifsck/volume_ranges.h"
#include "uvfs/replayed_past.h"

namespace mariner::uvfs {

using Bytes = std::vector<std::byte>;

// What replay_journal() says of a moment.
class ReplayedTruth {
 public:
  ReplayedTruth(ifsck::Past& past, SequenceNumber at) : view_(past, at, overlay_) {
    const auto done = ifsck::replay_journal(view_);
    transactions = done ? done->transactions : 0;
    refused = !done;
    if (!done) error = done.error().message;
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
  std::string error;  // why

 private:
  ifsck::Overlay overlay_;
  ifsck::View view_;
};

// What all moments of a stretch have been like.
struct ReplaySum {
  std::uint64_t moments = 0;
  std::uint64_t replayed = 0;  // of them
  std::uint64_t refused = 0;
  std::uint64_t changes = 0;         // of blocks
  std::uint64_t by_the_journal = 0;  // of them: that no write to the block made
  std::uint64_t versions = 0;        // that were found
};

class ReplayComparison {
 public:
  ReplayComparison(ifsck::Past& past, ReplayedPast& replayed, const ifsck::JournalFile& journal,
                   std::vector<Lbn> blocks)
      : past_(past), replayed_(replayed), journal_(journal), blocks_(std::move(blocks)) {}

  void run(SequenceNumber first, SequenceNumber last, const std::string& name) {
    // (A log that was spoiled can say any block.)
    for (const Lbn lbn : ReplayedTruth(past_, first).written()) add(lbn);
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
  ReplaySum sum;

 private:
  std::vector<Bytes> read(SequenceNumber at, const std::string& name) {
    ReplayedTruth truth(past_, at);
    sum.replayed += truth.transactions > 0 ? 1 : 0;
    sum.refused += truth.refused ? 1 : 0;
    for (const Lbn lbn : truth.written()) {
      EXPECT_TRUE(std::ranges::binary_search(blocks_, lbn) || is_ignored(lbn)) << lbn.value;
    }
    std::vector<ifsck::Past::Question> questions;
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
          << truth.transactions << " transactions; " << truth.error;
    }
    return out;
  }
  // Without what is the journal's own, or the superblock.
  [[nodiscard]] Bytes masked(Lbn lbn, Bytes bytes) const {
    const std::uint32_t size = std::min(journal_.block_bytes(), kBlockBytes);
    for (std::size_t at = 0; at < bytes.size(); at += size) {
      if (!journal_.has((lbn.byte_offset() + at) / size)) continue;
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
  void check_order(const std::vector<ifsck::Past::Version>& found) {
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].time, past_.time_of(found[i].sequence).value());
      if (i == 0) continue;
      EXPECT_LT(std::pair(found[i - 1].block, found[i - 1].sequence),
                std::pair(found[i].block, found[i].sequence));
    }
  }
  // changed() of some is what versions() of the same is.
  void check_stretches(const std::vector<ifsck::Past::Version>& found, SequenceNumber first,
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

  ifsck::Past& past_;
  ReplayedPast& replayed_;
  const ifsck::JournalFile& journal_;
  std::vector<Lbn> blocks_;
  std::set<std::pair<Lbn, SequenceNumber>> versions_;
  std::set<std::pair<Lbn, SequenceNumber>> raw_;
  std::mt19937_64 random_{1};
};

inline void add(ReplaySum& sum, const ReplaySum& more) {
  sum.moments += more.moments;
  sum.replayed += more.replayed;
  sum.refused += more.refused;
  sum.changes += more.changes;
  sum.by_the_journal += more.by_the_journal;
  sum.versions += more.versions;
}

}  // namespace mariner::uvfs
