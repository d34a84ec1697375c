#include "uvfs/block_timelines.h"

#include <fmt/format.h>

#include <algorithm>

#include "proto/check.h"

namespace mariner::uvfs {
namespace {

constexpr std::size_t kQuestionsAtOnce = 2048;  // 8 MiB of answers
constexpr std::size_t kBlocksAtOnce = 16 * 1024;

}  // namespace

Result<BlockTimelines> BlockTimelines::open(ifsck::Past& past, const Stretch& stretch) {
  CHECK(stretch.first <= stretch.last);
  BlockTimelines timelines(past, stretch);
  auto time = past.time_of(stretch.first);
  if (!time) return time.error();
  timelines.first_time_ = *time;
  auto written = past.changed(stretch.first, stretch.last);
  if (!written) return written.error();
  timelines.written_ = std::move(*written);
  return timelines;
}

void BlockTimelines::add_written(const BlockRange& range, std::vector<Lbn>& to) const {
  auto each = std::ranges::upper_bound(written_, range.first, {},
                                       [](const BlockRange& one) { return one.end(); });
  for (; each != written_.end() && each->first < range.end(); ++each) {
    const Lbn end = std::min(each->end(), range.end());
    for (Lbn lbn = std::max(each->first, range.first); lbn < end; lbn = lbn + BlockCount{1}) {
      to.push_back(lbn);
    }
  }
}

Result<void> BlockTimelines::load(std::vector<Lbn> blocks) {
  std::ranges::sort(blocks);
  const auto repeated = std::ranges::unique(blocks);
  blocks.erase(repeated.begin(), repeated.end());
  std::vector<Lbn> missing;
  for (const Lbn each : blocks) {
    if (!places_.contains(each.value)) missing.push_back(each);
  }
  std::vector<Lbn> asked;
  for (const Lbn each : missing) add_written({each, BlockCount{1}}, asked);
  for (std::span<const Lbn> left(asked); !left.empty();) {
    const auto some = left.first(std::min(left.size(), kBlocksAtOnce));
    left = left.subspan(some.size());
    const auto found = past_->versions(some, stretch_.first, stretch_.last);
    if (!found) return found.error();
    if (versions_.size() + found->size() > kVersionsMax) {
      return Error{ErrorCode::kLimit,
                   fmt::format("more than {} writes to what is to be looked at, between #{} and "
                               "#{}: ask for a shorter time, or for fewer files",
                               kVersionsMax, stretch_.first.value, stretch_.last.value)};
    }
    for (const Version& each : *found) {
      Place& place = places_[each.block.value];
      if (place.begin == place.end) place = {versions_.size(), versions_.size()};
      CHECK(place.end == versions_.size());
      versions_.push_back(each);
      ++place.end;
    }
  }
  for (const Lbn each : missing) places_.try_emplace(each.value);
  return {};
}

std::span<const BlockTimelines::Version> BlockTimelines::of(Lbn block) const {
  const auto found = places_.find(block.value);
  CHECK(found != places_.end());
  return std::span(versions_).subspan(found->second.begin, found->second.end - found->second.begin);
}

std::span<const BlockTimelines::Version> BlockTimelines::of(Lbn block, SequenceNumber from,
                                                            SequenceNumber end) const {
  const auto all = of(block);
  const auto first = std::ranges::upper_bound(all, from, {}, &Version::sequence);
  return {first, std::ranges::lower_bound(first, all.end(), end, {}, &Version::sequence)};
}

Result<void> BlockTimelines::read(std::span<const Question> questions, const Visit& visit) const {
  std::vector<std::byte> bytes(std::min(questions.size(), kQuestionsAtOnce) * kBlockBytes);
  for (std::size_t done = 0; done < questions.size();) {
    const auto some = questions.subspan(done, std::min(questions.size() - done, kQuestionsAtOnce));
    const auto to = std::span(bytes).first(some.size() * kBlockBytes);
    if (const auto read = past_->read(some, to); !read) return read.error();
    const auto next = questions.subspan(done + some.size());
    if (!next.empty()) past_->expect(next.first(std::min(next.size(), kQuestionsAtOnce)));
    for (std::size_t i = 0; i < some.size(); ++i) {
      visit(done + i, to.subspan(i * kBlockBytes, kBlockBytes));
    }
    done += some.size();
  }
  return {};
}

}  // namespace mariner::uvfs
