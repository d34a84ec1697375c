#include "uvfs/inode_slices.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "uvfs/inode_record.h"

namespace mariner::uvfs {

using ifsck::InodeNumber;

// One of the volume's, with inodes.
struct InodeSliceReader::Block {
  Lbn lbn;
  std::vector<InodeNumber> asked;
  std::vector<InodeNumber> beside;
};

std::vector<InodeSliceReader::Block> InodeSliceReader::blocks_of(
    std::span<const InodeNumber> numbers) const {
  std::map<Lbn, Block> by_lbn;
  for (const InodeNumber number : numbers) {
    // (Inodes are no larger than a block, and stand at multiples of their size.)
    const Lbn lbn = layout_.inode_place(number).covering_blocks().first;
    Block& block = by_lbn[lbn];
    block.lbn = lbn;
    block.asked.push_back(number);
  }
  std::vector<Block> blocks;
  for (auto& [lbn, block] : by_lbn) {
    // Those of the same group: another one's table may begin in the block, too.
    const std::uint32_t of_group = layout_.inodes_per_group();
    const std::uint32_t in_block = kBlockBytes / layout_.inode_bytes();
    const std::uint32_t index = (block.asked[0] - 1) % of_group;
    const std::uint32_t from = index - std::min(index, in_block);
    const std::uint32_t end = std::min(index + in_block, of_group);
    for (std::uint32_t i = from; i < end; ++i) {
      const InodeNumber number = block.asked[0] - index + i;
      if (layout_.inode_place(number).covering_blocks().first == lbn &&
          std::ranges::find(block.asked, number) == block.asked.end()) {
        block.beside.push_back(number);
      }
    }
    blocks.push_back(std::move(block));
  }
  return blocks;
}

Result<InodeSlices> InodeSliceReader::read(std::span<const InodeNumber> numbers) {
  InodeSlices slices;
  std::vector<InodeNumber> missing;
  made_ = 0;
  for (const InodeNumber number : numbers) {
    auto known = beside_.extract(number);
    if (known.empty()) {
      missing.push_back(number);
      continue;
    }
    beside_slices_ -= known.mapped().size();
    made_ += known.mapped().size();
    slices.insert(std::move(known));
  }
  const std::vector<Block> blocks = blocks_of(missing);
  std::vector<Lbn> lbns;
  for (const Block& each : blocks) lbns.push_back(each.lbn);
  if (const auto loaded = timelines_.load(lbns); !loaded) return loaded.error();

  struct Asked {
    const Block* block;
    Instant at;
  };
  std::vector<Asked> asked;
  for (const Block& block : blocks) {
    // (Of what is read anew all is told again.)
    forget_beside(block);
    asked.push_back({&block, {timelines_.stretch().first, timelines_.first_time()}});
    for (const auto& version : timelines_.of(block.lbn)) {
      asked.push_back({&block, {version.sequence, version.time}});
    }
  }
  // As it was written: that is how it stands in the log.
  std::ranges::stable_sort(asked, {}, [](const Asked& each) { return each.at.at; });
  std::vector<BlockTimelines::Question> questions;
  questions.reserve(asked.size());
  for (const Asked& each : asked) questions.push_back({each.block->lbn, each.at.at});
  InodeSlice now;
  const auto read =
      timelines_.read(questions, [&](std::size_t i, std::span<const std::byte> block) {
        now.from = questions[i].at;
        now.time = asked[i].at.time;
        now.bytes.assign(block.begin(), block.end());
        add(*asked[i].block, now, slices);
      });
  if (!read) return read.error();
  if (made_ > kSlicesMax) {
    return Error{ErrorCode::kLimit,
                 "the objects changed too often between these moments: ask for a shorter time, or "
                 "for fewer of them"};
  }
  return slices;
}

void InodeSliceReader::add(const Block& block, const InodeSlice& now, InodeSlices& slices) {
  const bool first = now.from == timelines_.stretch().first;
  for (const InodeNumber number : block.asked) {
    auto& mine = slices[number];
    const std::size_t before = mine.size();
    if (made_ <= kSlicesMax) take(number, now, mine);
    made_ += mine.size() - before;
  }
  for (const InodeNumber number : block.beside) {
    // (Who was forgotten within the block's history is not begun in the middle of it.)
    const auto known = first ? beside_.try_emplace(number).first : beside_.find(number);
    if (known == beside_.end()) return;
    const std::size_t before = known->second.size();
    take(number, now, known->second);
    beside_slices_ += known->second.size() - before;
  }
  if (beside_slices_ > kBesideMax) forget_beside(block);
}

void InodeSliceReader::take(InodeNumber number, const InodeSlice& now,
                            std::vector<InodeSlice>& to) {
  const auto bytes = std::span(now.bytes).subspan(layout_.inode_place(number).offset % kBlockBytes,
                                                  layout_.inode_bytes());
  if (!to.empty() && (std::memcmp(to.back().bytes.data(), bytes.data(), bytes.size()) == 0 ||
                      is_same_inode(to.back().bytes, bytes))) {
    return;
  }
  to.push_back({now.from, now.time, {bytes.begin(), bytes.end()}});
}

void InodeSliceReader::forget_beside(const Block& block) {
  for (const InodeNumber number : block.beside) {
    const auto known = beside_.find(number);
    if (known == beside_.end()) continue;
    beside_slices_ -= known->second.size();
    beside_.erase(known);
  }
}

}  // namespace mariner::uvfs
