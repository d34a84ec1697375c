// The index of a directory (dir_index): which blocks belong to it, and which names each other block
// may have, by their hashes.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "ifsck/block_map.h"
#include "ifsck/ext_context.h"
#include "proto/error.h"

namespace mariner::ifsck {

class DirectoryIndex {
 public:
  // Of a directory without holes whose first block says that it has one. Errors: of the past alone.
  [[nodiscard]] static Result<DirectoryIndex> read(const ExtContext& context, const BlockMap& map);

  // It names each block once, in the order of their hashes.
  [[nodiscard]] bool good() const { return good_; }
  // Whether a block is one of the index; of others: whether it may have such a name.
  [[nodiscard]] bool is_node(std::uint64_t logical) const {
    return blocks_[logical].use == Use::kNode;
  }
  [[nodiscard]] bool may_have(std::uint64_t logical, std::string_view name) const;

 private:
  enum class Use : std::uint8_t { kNone, kNode, kLeaf };
  struct Block {
    FsBlock physical = 0;
    Use use = Use::kNone;
    std::uint32_t first = 0;  // hashes
    std::uint32_t last = 0;   // included: names of one hash may go on in the next block
  };

  DirectoryIndex(const ExtContext& context, const BlockMap& map);
  [[nodiscard]] Result<void> take_root();
  [[nodiscard]] Result<void> take_node(std::uint64_t logical, unsigned levels);
  [[nodiscard]] Result<void> take(std::span<const std::byte> bytes, std::uint64_t logical,
                                  std::size_t at, unsigned levels);

  const ExtContext* context_;
  std::vector<Block> blocks_;  // by logical number
  int version_ = 0;
  bool good_ = true;
};

}  // namespace mariner::ifsck
