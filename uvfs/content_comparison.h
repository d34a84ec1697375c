// Whether what a file has in its blocks is the same at two moments that follow each other.
//
// Only bytes are compared that can differ: where its blocks lie elsewhere, or were written to.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ifsck/block_map.h"
#include "ifsck/ext_layout.h"
#include "proto/error.h"
#include "uvfs/block_timelines.h"

namespace mariner::uvfs {

class ContentComparison {
 public:
  // Blocks of one file that are compared; where more may differ, they are said to.
  static constexpr std::size_t kBlocksMax = 64 * 1024;

  // Both outlive it.
  ContentComparison(const BlockTimelines& timelines, const ifsck::ExtLayout& layout)
      : timelines_(timelines), layout_(layout) {}

  struct Pair {
    const ifsck::BlockMap* before = nullptr;
    const ifsck::BlockMap* after = nullptr;
    std::uint64_t size = 0;        // bytes of the file that are looked at
    std::span<const Lbn> written;  // by the write `at`; ascending
    SequenceNumber at;             // the later of the moments
  };
  // Its number, by which same() is asked: from 0 on.
  std::size_t add(const Pair& pair);
  // A block of the file system by itself, from its byte `skip` on.
  std::size_t add_block(ifsck::FsBlock block, std::uint64_t skip, SequenceNumber at);

  // Compares all. Errors: of the past.
  [[nodiscard]] Result<void> run();
  [[nodiscard]] bool same(std::size_t number) const { return same_[number]; }

 private:
  static constexpr std::uint64_t kZeros = ~std::uint64_t{0};
  // Bytes within one block of the volume, before and after; kZeros: none, which read as zeros.
  struct Piece {
    std::size_t pair = 0;
    std::uint64_t before = 0;  // byte of the volume
    std::uint64_t after = 0;
    std::uint32_t bytes = 0;
    SequenceNumber at;
  };
  void add_pieces(std::size_t pair, const Piece& whole);

  const BlockTimelines& timelines_;
  const ifsck::ExtLayout& layout_;
  std::vector<Piece> pieces_;
  std::vector<bool> same_;
};

}  // namespace mariner::uvfs
