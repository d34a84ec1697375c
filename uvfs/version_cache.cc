#include "uvfs/version_cache.h"

#include <algorithm>
#include <iterator>

#include "proto/check.h"

namespace mariner::uvfs {

Result<void> VersionCache::prefetch(std::span<const Question> questions) {
  std::vector<Lbn> asked;
  std::ranges::transform(questions, std::back_inserter(asked), &Question::block);
  if (const auto loaded = timelines_.load(std::move(asked)); !loaded) return loaded;
  std::vector<Key> missing;
  for (const Question& each : questions) {
    const Key key = key_of(each);
    if (!blocks_.contains(key)) missing.push_back(key);
  }
  std::ranges::sort(missing);
  const auto repeated = std::ranges::unique(missing);
  missing.erase(repeated.begin(), repeated.end());
  if (blocks_.size() + missing.size() > kBlocksMax) blocks_.clear();
  missing.resize(std::min(missing.size(), kBlocksMax));
  std::vector<Question> wanted;
  for (const auto& [block, at] : missing) wanted.push_back({block, at});
  return timelines_.read(wanted, [&](std::size_t i, std::span<const std::byte> bytes) {
    auto& block = blocks_[missing[i]];
    block = std::make_unique<ifsck::Overlay::Block>();
    std::ranges::copy(bytes, block->begin());
  });
}

Result<void> VersionCache::read(std::span<const Question> questions, std::span<std::byte> to) {
  CHECK(to.size() == questions.size() * kBlockBytes);
  while (!questions.empty()) {
    const auto some = questions.first(std::min(questions.size(), kBlocksMax));
    if (const auto fetched = prefetch(some); !fetched) return fetched;
    for (const Question& each : some) {
      auto found = blocks_.find(key_of(each));
      if (found == blocks_.end()) {
        // (It was there, and was forgotten to make room for another of these.)
        if (const auto fetched = prefetch(std::span(&each, 1)); !fetched) return fetched;
        found = blocks_.find(key_of(each));
      }
      std::ranges::copy(*found->second, to.begin());
      to = to.subspan(kBlockBytes);
    }
    questions = questions.subspan(some.size());
  }
  return {};
}

// As of the last write at or before the moment, or of the stretch's beginning.
VersionCache::Key VersionCache::key_of(const Question& question) const {
  const auto writes = timelines_.of(question.block);
  const auto behind = std::ranges::upper_bound(writes, question.at, {}, &Version::sequence);
  return {question.block,
          behind == writes.begin() ? timelines_.stretch().first : std::prev(behind)->sequence};
}

std::uint64_t VersionCache::size_bytes() const { return timelines_.past().size_bytes(); }
Result<ifsck::Past::Reach> VersionCache::reach() { return timelines_.past().reach(); }
Result<SequenceNumber> VersionCache::moment_of(VersionTime time) {
  return timelines_.past().moment_of(time);
}
Result<VersionTime> VersionCache::time_of(SequenceNumber sequence) {
  return timelines_.past().time_of(sequence);
}
Result<std::vector<BlockRange>> VersionCache::changed(SequenceNumber from, SequenceNumber to) {
  return timelines_.past().changed(from, to);
}
Result<std::vector<ifsck::Past::Version>> VersionCache::versions(std::span<const Lbn> blocks,
                                                                 SequenceNumber from,
                                                                 SequenceNumber to) {
  return timelines_.past().versions(blocks, from, to);
}

}  // namespace mariner::uvfs
