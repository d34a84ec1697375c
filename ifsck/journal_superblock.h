// The first block of a journal (JBD2): what the journal is like, and where its log begins.
//
// The format is that of Linux, Documentation/filesystems/ext4/journal.rst: big endian. Pure: bytes
// in, bytes out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "proto/error.h"

namespace mariner::ifsck {

// A number of a block of the journal: 0 is its superblock.
using JournalBlock = std::uint32_t;

struct JournalSuperblock {
  static constexpr std::size_t kBytes = 1024;
  // Each in the field that it is in.
  static constexpr std::uint32_t kCompatChecksum = 0x1;  // of a whole transaction, in its commit
  static constexpr std::uint32_t kRevoke = 0x1;
  static constexpr std::uint32_t k64Bit = 0x2;
  static constexpr std::uint32_t kAsyncCommit = 0x4;
  static constexpr std::uint32_t kChecksumV2 = 0x8;
  static constexpr std::uint32_t kChecksumV3 = 0x10;
  static constexpr std::uint32_t kFastCommit = 0x20;

  JournalBlock blocks = 0;       // of the journal
  JournalBlock first = 0;        // of the log, which is a ring: [first, log_end)
  JournalBlock log_end = 0;      // behind it: a block that is not used, and fast commits
  std::uint32_t sequence = 0;    // of the first transaction
  JournalBlock start = 0;        // where it begins; 0: the log is empty
  std::int32_t error = 0;        // why the file system gave its journal up
  std::uint32_t compatible = 0;  // features
  std::uint32_t incompatible = 0;
  std::uint32_t seed = 0;  // of all its checksums but the superblock's own

  // Of the journal of a file system with blocks of that size, in a file of `file_blocks`.
  // kCorrupt; kInvalidArgument: it has features that are not known.
  [[nodiscard]] static Result<JournalSuperblock> parse(std::span<const std::byte> bytes,
                                                       std::uint32_t block_bytes,
                                                       std::uint64_t file_blocks);

  // Whether that is one at all: parse() asks for more, of one that is to be replayed. Errors as
  // there.
  [[nodiscard]] static Result<void> check(std::span<const std::byte> bytes,
                                          std::uint32_t block_bytes, std::uint64_t file_blocks);

  [[nodiscard]] bool has(std::uint32_t feature) const { return (incompatible & feature) != 0; }
  // Its blocks have checksums of their own.
  [[nodiscard]] bool has_checksums() const { return has(kChecksumV2 | kChecksumV3); }
  // Blocks of fast commits: [fast_first(), blocks).
  [[nodiscard]] JournalBlock fast_first() const { return log_end + 1; }
};

// Makes the log of a journal's superblock empty; the next transaction will be `sequence`. It has no
// error from then on.
void empty_log(std::span<std::byte> bytes, std::uint32_t sequence);

}  // namespace mariner::ifsck
