// The two bitmaps of a group: what they say, and whether they are well-formed.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "ifsck/ext_context.h"
#include "ifsck/finding.h"
#include "proto/error.h"

namespace mariner::ifsck {

class GroupBitmaps {
 public:
  // `context` outlives it. Errors: of the past alone.
  [[nodiscard]] static Result<GroupBitmaps> read(const ExtContext& context, GroupNumber group);

  // Of a block, or an inode, of the group. What is not initialized has structures alone.
  [[nodiscard]] bool is_marked(FsBlock block) const;
  [[nodiscard]] bool is_marked_inode(InodeNumber number) const;
  // The first block from `from` on that is not marked; last() + 1: there is none.
  [[nodiscard]] FsBlock next_unmarked(FsBlock from) const;

  // Calls `block(number)` and `inode(number)` for each that the other one, of the same group at
  // another moment, says otherwise.
  void compare(const GroupBitmaps& other, const std::function<void(FsBlock)>& block,
               const std::function<void(InodeNumber)>& inode) const;

  // Checksums, of the descriptor, too; and what stands behind what there is. `found` is called for
  // each finding.
  template <typename Found>
  void check(Found found) {
    for (const Finding& each : faults()) found(each);
  }

  [[nodiscard]] FsBlock first() const { return first_; }
  [[nodiscard]] FsBlock last() const { return last_; }

 private:
  GroupBitmaps(const ExtContext& context, GroupNumber group);
  void mark_structures();
  [[nodiscard]] std::vector<Finding> faults();
  [[nodiscard]] bool is_padded(const std::vector<std::byte>& bitmap, std::uint64_t from) const;

  const ExtContext* context_;
  GroupNumber group_;
  FsBlock first_;
  FsBlock last_;
  bool has_blocks_;  // initialized
  bool has_inodes_;
  std::vector<std::byte> blocks_;  // of what is not initialized: as it would be
  std::vector<std::byte> inodes_;
};

}  // namespace mariner::ifsck
