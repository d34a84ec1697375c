// The fast commits of a journal (ext4): what was done since the last transaction, operation by
// operation.
//
// The format is that of Linux, Documentation/filesystems/ext4/journal.rst and
// fs/ext4/fast_commit.h: little endian, a kind and a length before each value. Pure: bytes in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ifsck/ext_layout.h"
#include "proto/error.h"

namespace mariner::ifsck {

struct FastOperation {
  enum class Kind : std::uint16_t {
    kAddRange = 1,  // blocks of a file
    kDelRange = 2,
    kCreate = 3,  // a name of an inode that is new
    kLink = 4,
    kUnlink = 5,
    kInode = 6,  // as it is now, without its blocks
    kPadding = 7,
    kTail = 8,  // the end of a commit
    kHead = 9,  // the beginning of all
  };

  Kind kind{};
  InodeNumber inode = 0;
  InodeNumber parent = 0;     // of a name
  std::string name;           // not checked
  std::uint64_t logical = 0;  // blocks [logical, logical + count) of the file
  std::uint64_t count = 0;
  FsBlock physical = 0;  // kAddRange: where they are; not checked
  bool unwritten = false;
  std::vector<std::byte> bytes;  // of an inode, as many as were written

  friend bool operator==(const FastOperation&, const FastOperation&) = default;
};

// Reads the blocks of fast commits one after the other.
class FastCommits {
 public:
  // Those that follow the transaction before `sequence`.
  explicit FastCommits(std::uint32_t sequence) : sequence_(sequence) {}

  // False: no other block is needed. kInvalidArgument: a feature that is not known.
  [[nodiscard]] Result<bool> add(std::span<const std::byte> block);

  // Of whole commits: oldest first.
  [[nodiscard]] std::vector<FastOperation> take_operations();
  [[nodiscard]] std::uint64_t commits() const { return commits_; }
  // One was begun, and is not whole.
  [[nodiscard]] bool cut() const { return cut_; }

 private:
  struct Value;
  [[nodiscard]] Result<bool> take(const Value& value);
  [[nodiscard]] bool take_tail(const Value& value);

  const std::uint32_t sequence_;
  std::uint32_t crc_ = 0;
  bool begun_ = false;
  bool cut_ = false;
  std::uint64_t commits_ = 0;
  std::size_t whole_ = 0;  // operations of whole commits
  std::vector<FastOperation> operations_;
};

}  // namespace mariner::ifsck
