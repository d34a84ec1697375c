// The file that a file system's journal is in, block by block.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ifsck/block_map.h"
#include "ifsck/ext_layout.h"
#include "ifsck/journal_superblock.h"

namespace mariner::ifsck {

class JournalFile {
 public:
  // `volume` has a journal, and a view that outlives the file. kInvalidArgument: it is on a device
  // of its own. kCorrupt: there is no such file. Others: as the past says.
  [[nodiscard]] static Result<JournalFile> open(const ExtVolume& volume, const ExtLayout& layout);

  [[nodiscard]] std::uint32_t block_bytes() const { return block_bytes_; }
  // From the first one on, up to where it ends or has a hole.
  [[nodiscard]] std::uint64_t blocks() const { return blocks_; }
  // It says that it goes on behind its last block.
  [[nodiscard]] bool is_short() const { return short_; }
  // Of a block below blocks().
  [[nodiscard]] ByteRange bytes_of(JournalBlock block) const;
  // A block of the file system is one of the file, or says where these are.
  [[nodiscard]] bool has(FsBlock block) const;
  // Which one of the file it is; nothing: none.
  [[nodiscard]] std::optional<JournalBlock> find(FsBlock block) const;

 private:
  // Blocks [block, block + count) of the file are blocks [place, place + count).
  struct Run {
    static constexpr std::uint64_t kNode = ~std::uint64_t{0};  // says where others are

    std::uint64_t block = 0;
    FsBlock place = 0;
    std::uint64_t count = 0;
  };
  explicit JournalFile(std::uint32_t block_bytes) : block_bytes_(block_bytes) {}
  void take(const BlockMap& map, std::uint64_t blocks_max);
  // Null: it is none of its blocks.
  [[nodiscard]] const Run* run_of(FsBlock block) const;

  std::uint32_t block_bytes_;
  std::uint64_t blocks_ = 0;
  bool short_ = false;
  std::vector<Run> by_block_;
  std::vector<Run> by_place_;
};

// The superblock says from then on that there is no journal.
void forget_journal(ext2_super_block& super);

}  // namespace mariner::ifsck
