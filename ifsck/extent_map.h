// The blocks of a file as extents, while they are being changed; and the tree that says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "ifsck/block_map.h"
#include "ifsck/ext_layout.h"
#include "proto/error.h"

namespace mariner::ifsck {

class ExtentMap {
 public:
  struct Extent {
    FsBlock physical = 0;
    std::uint64_t count = 0;
    bool unwritten = false;
    friend bool operator==(const Extent&, const Extent&) = default;
  };
  static constexpr std::size_t kRootBytes = 60;

  ExtentMap() = default;
  // Of a map without faults.
  explicit ExtentMap(const BlockMap& map);

  // Blocks [logical, logical + count) of the file, below 2^32.
  void add(std::uint64_t logical, const Extent& extent);
  void remove(std::uint64_t logical, std::uint64_t count);

  [[nodiscard]] const std::map<std::uint64_t, Extent>& extents() const { return extents_; }
  friend bool operator==(const ExtentMap&, const ExtentMap&) = default;

  // The tree: its root, as it stands in an inode. `take` gives a block for a node; `put` writes it,
  // as large as a block of the file system, but for its checksum. Errors: theirs.
  [[nodiscard]] Result<std::vector<std::byte>> make_tree(
      std::uint32_t block_bytes, const std::function<Result<FsBlock>()>& take,
      const std::function<Result<void>(FsBlock, std::span<std::byte>)>& put) const;

 private:
  std::map<std::uint64_t, Extent> extents_;  // by their first block of the file
};

}  // namespace mariner::ifsck
