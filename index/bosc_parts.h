// What Bosc has under way. For its own sources only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "index/bosc.h"

namespace mariner::index {

// Neighbouring blocks on their way through read, apply and write.
struct Bosc::Run {
  struct Member {
    BlockAddress address;
    bool dirty = false;  // else carried: written as it was read
    bool from_cache = false;
    ModificationQueue taken;
    std::uint64_t number = 0;  // the local frontier that it will have
    std::uint32_t version = 0;
    BlockDamage damage = BlockDamage::kNone;
    bool left_out = false;  // damaged, or could not be read: is not written
    // For the thread that applies.
    bool is_stored = false;  // on disk, or in the cache
    IndexBlockHeader expected;
    const CommitFunction* function = nullptr;
    std::unique_ptr<BlockCommit> commit;
  };
  struct Added {
    std::size_t member = 0;
    std::size_t number = 0;  // among those of the member's commit
    BlockAddress address;
  };

  std::vector<Member> members;  // by address
  BlockAddress first;
  std::size_t block_bytes = 0;
  Payload before;  // from `first` on, gaps included
  Payload after;
  bool is_read = false;
  std::vector<Added> added;
  std::size_t waiting = 0;
  Result<void> result;

  // Checks, applies and seals all members. Any thread.
  void apply(const IndexFileId& file);
  [[nodiscard]] const Member* find(BlockAddress address) const {
    for (const Member& member : members) {
      if (member.address == address) return &member;
    }
    return nullptr;
  }
  [[nodiscard]] std::size_t offset(const Member& member) const {
    return (member.address.value - first.value) * block_bytes;
  }
  [[nodiscard]] std::span<std::byte> before_of(const Member& member) {
    return before.bytes().subspan(offset(member), block_bytes);
  }
  [[nodiscard]] std::span<std::byte> after_of(const Member& member) {
    return after.bytes().subspan(offset(member), block_bytes);
  }
};

// A block that queries wait for.
struct Bosc::Read {
  struct Waiter {
    UniqueFunction<bool(const BlockView&)> look;
    Answered answered;
  };
  IndexBlockHeader expected;
  Payload block;
  std::vector<Waiter> waiters;
};

struct Bosc::Checkpoint {
  bool ends_sweep = false;  // else it only lets blocks be committed again
  std::uint64_t frontier = 0;
  IndexSuperblock superblock;
  Payload bytes;
  Payload superblock_bytes;
  std::size_t waiting = 0;
  Result<void> result;
  std::vector<BlockAddress> freed;  // can be allocated again once it is durable
};

inline Error damage_error(BlockAddress address, BlockDamage damage) {
  return {ErrorCode::kCorrupt, "index block " + std::to_string(address.value) + " " +
                                   std::string(block_damage_name(damage))};
}

}  // namespace mariner::index
