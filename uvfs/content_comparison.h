// Whether what a file has in its blocks is the same at two moments that follow each other.
//
// Only bytes are compared that can differ: where its blocks lie elsewhere, or were written to.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "proto/error.h"
#include "uvfs/block_timelines.h"
#include "uvfs/byte_run.h"

namespace mariner::uvfs {

class ContentComparison {
 public:
  // Bytes of one file that are compared; where more may differ, they are said to.
  static constexpr std::uint64_t kBytesMax = std::uint64_t{256} << 20;

  // They outlive it.
  explicit ContentComparison(const BlockTimelines& timelines) : timelines_(timelines) {}

  struct Pair {
    const ByteRuns* before = nullptr;
    const ByteRuns* after = nullptr;
    std::uint64_t size = 0;        // bytes of the file that are looked at
    std::span<const Lbn> written;  // by the write `at`; ascending
    SequenceNumber at;             // the later of the moments
  };
  // Its number, by which same() is asked: from 0 on.
  std::size_t add(const Pair& pair);
  // Bytes of the volume by themselves.
  std::size_t add_place(ByteRange place, SequenceNumber at);

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
    std::uint64_t bytes = 0;  // kBlockBytes at most
    SequenceNumber at;
  };
  // In pieces. False: the pair has more than it may have.
  bool add_pieces(Piece whole, std::uint64_t& compared);

  const BlockTimelines& timelines_;
  std::vector<Piece> pieces_;
  std::vector<bool> same_;
};

}  // namespace mariner::uvfs
