// What the blocks of a journal's log held, for those who ask for it once the log has been followed:
// it was read then, and would be read again for every file.
//
// Kept are copies of file system blocks, each as what differs from the copy of the same block
// before it: of an inode table or a directory that is little. One thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ifsck/ext_layout.h"
#include "ifsck/journal_superblock.h"
#include "proto/units.h"

namespace mariner::uvfs {

class CopyStore {
 public:
  static constexpr std::size_t kBytesMax = 128u << 20;  // beyond, nothing more is kept

  // From a moment on, not before one that was told already, the log's block `from` holds `bytes`, a
  // copy of `to`: all as long, and no longer than 64 KiB.
  void put(ifsck::JournalBlock from, SequenceNumber since, ifsck::FsBlock to,
           std::span<const std::byte> bytes);
  // Nothing more comes: what only put() needs goes.
  void finish() { last_ = {}; }

  // What it held at a moment: since it was put there for the last time. False: it is not known.
  // (Who asks for one copy of a block after the other gets each from the one before.)
  [[nodiscard]] bool get(ifsck::JournalBlock from, SequenceNumber at, std::span<std::byte> to);
  [[nodiscard]] bool has(ifsck::JournalBlock from, SequenceNumber at) const {
    return find(from, at) != kNone;
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  using Index = std::uint32_t;
  static constexpr Index kNone = ~Index{0};
  static constexpr std::uint32_t kDepthMax = 16;  // copies to go through for one
  static constexpr std::size_t kPieceBytes = 1u << 20;
  using Piece = std::array<std::byte, kPieceBytes>;

  struct Copy {
    Index before = kNone;  // that it is told by; none: all of it is here
    Index first = kNone;   // of those that lead to it, all of which is there
    std::uint32_t depth = 0;
    std::uint32_t piece = 0;
    std::uint32_t at = 0;  // in the piece
    std::uint32_t bytes = 0;
  };
  struct Last {
    Index copy = kNone;
    std::vector<std::byte> bytes;
  };
  static constexpr std::size_t kMadeMax = 4096;  // blocks

  [[nodiscard]] Index find(ifsck::JournalBlock from, SequenceNumber at) const;
  // Where so many bytes are kept from now on.
  [[nodiscard]] std::span<std::byte> room(std::size_t bytes, Copy& copy);
  [[nodiscard]] std::span<const std::byte> bytes_of(const Copy& copy) const;
  // Into difference_; false: it is not worth it.
  [[nodiscard]] bool tell_difference(std::span<const std::byte> before,
                                     std::span<const std::byte> now);
  static void apply(std::span<const std::byte> difference, std::span<std::byte> to);

  std::vector<Copy> copies_;
  std::vector<std::unique_ptr<Piece>> pieces_;
  std::size_t used_ = kPieceBytes;  // of the last one
  std::size_t bytes_ = 0;
  std::unordered_map<ifsck::JournalBlock, std::vector<std::pair<SequenceNumber, Index>>> places_;
  std::unordered_map<ifsck::FsBlock, Last> last_;
  std::unordered_map<Index, Last> made_;  // the last one that was made, by the first one of its
  std::vector<std::byte> difference_;
};

}  // namespace mariner::uvfs
