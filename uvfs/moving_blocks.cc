#include "uvfs/moving_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "proto/check.h"

namespace mariner::uvfs {

void MovingBlocks::move_to(SequenceNumber at) {
  CHECK(at >= at_);
  at_ = at;
}

const ifsck::Overlay::Block* MovingBlocks::find(Lbn block) const {
  const auto found = kept_.find(block.value);
  return found == kept_.end() || found->second.end <= at_ ? nullptr : found->second.bytes.get();
}

Result<void> MovingBlocks::read(BlockRange blocks, std::span<std::byte> to) {
  CHECK(to.size() == blocks.count.bytes());
  const std::uint64_t all = timelines_.past().size_bytes() / kBlockBytes;
  if (blocks.end().value > all) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("block {} is behind the volume's end at {}", blocks.end().value - 1, all)};
  }
  for (Lbn lbn = blocks.first; lbn < blocks.end(); lbn = lbn + BlockCount{1}) {
    const ifsck::Overlay::Block* bytes = find(lbn);
    if (bytes == nullptr) {
      if (const auto fetched = fetch({lbn, BlockCount{blocks.end().value - lbn.value}}); !fetched) {
        return fetched;
      }
      bytes = find(lbn);
      CHECK(bytes != nullptr);
    }
    // (Of bytes, std::copy() is one by one.)
    std::memcpy(to.data(), bytes->data(), kBlockBytes);
    to = to.subspan(kBlockBytes);
  }
  return {};
}

// The first of them at least.
Result<void> MovingBlocks::fetch(BlockRange blocks) {
  const std::uint64_t all = timelines_.past().size_bytes() / kBlockBytes;
  const std::uint64_t wanted = std::min<std::uint64_t>(blocks.count.value, kBlocksMax / 4);
  const std::uint64_t begin = blocks.first.value / kAhead * kAhead;
  const std::uint64_t end =
      std::min(all, (blocks.first.value + wanted + kAhead - 1) / kAhead * kAhead);
  if (kept_.size() + (end - begin) > kBlocksMax) kept_.clear();
  std::vector<BlockTimelines::Question> questions;
  for (std::uint64_t i = begin; i < end; ++i) {
    if (find(Lbn{i}) == nullptr) questions.push_back({Lbn{i}, at_});
  }
  std::vector<std::byte> bytes(questions.size() * kBlockBytes);
  if (const auto read = cache_.read(questions, bytes); !read) return read;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    const auto later = timelines_.of(questions[i].block, at_, kEndless);
    Kept& one = kept_[questions[i].block.value];
    one.end = later.empty() ? kEndless : later.front().sequence;
    if (one.bytes == nullptr) one.bytes = std::make_unique<ifsck::Overlay::Block>();
    std::memcpy(one.bytes->data(), bytes.data() + i * kBlockBytes, kBlockBytes);
  }
  return {};
}

}  // namespace mariner::uvfs
