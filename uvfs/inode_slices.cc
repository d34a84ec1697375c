#include "uvfs/inode_slices.h"

#include <algorithm>
#include <map>

#include "uvfs/inode_record.h"

namespace mariner::uvfs {

Result<InodeSlices> read_inode_slices(BlockTimelines& timelines, const ifsck::ExtLayout& layout,
                                      std::span<const ifsck::InodeNumber> numbers) {
  std::map<Lbn, std::vector<ifsck::InodeNumber>> by_block;
  for (const ifsck::InodeNumber each : numbers) {
    // (Inodes are no larger than a block, and stand at multiples of their size.)
    by_block[layout.inode_place(each).covering_blocks().first].push_back(each);
  }
  std::vector<Lbn> blocks;
  for (const auto& [lbn, inodes] : by_block) blocks.push_back(lbn);
  if (const auto loaded = timelines.load(blocks); !loaded) return loaded.error();

  struct Asked {
    const std::vector<ifsck::InodeNumber>* inodes;
    VersionTime time;
  };
  std::vector<BlockTimelines::Question> questions;
  std::vector<Asked> asked;
  for (const auto& [lbn, inodes] : by_block) {
    questions.push_back({lbn, timelines.stretch().first});
    asked.push_back({&inodes, timelines.first_time()});
    for (const auto& version : timelines.of(lbn)) {
      questions.push_back({lbn, version.sequence});
      asked.push_back({&inodes, version.time});
    }
  }
  InodeSlices slices;
  std::size_t made = 0;
  const auto read = timelines.read(questions, [&](std::size_t i, std::span<const std::byte> block) {
    for (const ifsck::InodeNumber number : *asked[i].inodes) {
      const auto bytes =
          block.subspan(layout.inode_place(number).offset % kBlockBytes, layout.inode_bytes());
      auto& mine = slices[number];
      if (made > kInodeSlicesMax || (!mine.empty() && is_same_inode(mine.back().bytes, bytes))) {
        continue;
      }
      mine.push_back({questions[i].at, asked[i].time, {bytes.begin(), bytes.end()}});
      ++made;
    }
  });
  if (!read) return read.error();
  if (made > kInodeSlicesMax) {
    return Error{ErrorCode::kLimit,
                 "the objects changed too often between these moments: ask for a shorter time, or "
                 "for fewer of them"};
  }
  return slices;
}

}  // namespace mariner::uvfs
