// What knows the contents of an index file's blocks: applies modifications to them.
//
// A store of blocks (bosc.h) treats contents and modifications as bytes. Each block belongs to one
// commit function, which is registered under an id that stands in the block, so that it is found
// again after a restart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "index/block_buffers.h"
#include "index/index_block.h"
#include "index/modification_queue.h"
#include "proto/payload.h"

namespace mariner::index {

// One block at its commit: what it holds, what is to be applied, and where the result goes.
class BlockCommit {
 public:
  struct Parts {
    BlockAddress address;
    std::span<const std::byte> before;
    std::span<std::byte> after;
    PendingModifications pending;
    BlockBuffers* buffers = nullptr;  // outlives it
  };
  explicit BlockCommit(const Parts& parts) : parts_(parts) {}
  ~BlockCommit() {
    for (Payload& block : added_) parts_.buffers->give_back(std::move(block));
  }
  BlockCommit(const BlockCommit&) = delete;
  BlockCommit& operator=(const BlockCommit&) = delete;

  [[nodiscard]] BlockAddress address() const { return parts_.address; }
  // Empty if the block was never written.
  [[nodiscard]] std::span<const std::byte> before() const { return parts_.before; }
  [[nodiscard]] const PendingModifications& pending() const { return parts_.pending; }
  // Undefined bytes, another memory than before(): all of it is to be filled.
  [[nodiscard]] std::span<std::byte> after() { return parts_.after; }
  // The contents of one block more, as long as after(), into which the commit divides its result.
  // It is written and published together with the block.
  [[nodiscard]] std::span<std::byte> add_block() {
    added_.push_back(parts_.buffers->take());
    return contents_of(added_.back().bytes());
  }

  // When the commit has been written: the blocks that were added, in order.
  [[nodiscard]] std::span<const BlockAddress> added() const { return addresses_; }
  // How many blocks the result has: 1 and those that were added.
  [[nodiscard]] std::size_t result_blocks() const { return 1 + added_.size(); }
  // The contents of block `i` of the result: 0 is the block itself, then those that were added.
  [[nodiscard]] std::span<const std::byte> result(std::size_t i) const {
    return i == 0 ? std::span<const std::byte>(parts_.after)
                  : contents_of(std::span<const std::byte>(added_[i - 1].bytes()));
  }

 private:
  friend class Bosc;
  const Parts parts_;
  std::vector<Payload> added_;  // whole blocks
  std::vector<BlockAddress> addresses_;
};

class CommitFunction {
 public:
  virtual ~CommitFunction() = default;

  // Applies commit.pending(), in order. Any thread: it uses nothing but its argument and what never
  // changes.
  virtual void commit(BlockCommit& commit) const = 0;

  // The commit is what readers see from now on. With blocks added, the function decides now which
  // of them what is still queued belongs to (Bosc::divide). Owner's thread.
  virtual void committed(const BlockCommit& commit) = 0;

  // Applies one modification to contents in memory, in place; false when it does not fit in.
  // Owner's thread.
  [[nodiscard]] virtual bool apply(std::span<std::byte> contents, Modification modification) = 0;

  // What this needs to know after a restart, besides its blocks: how many bytes, and those bytes.
  // Owner's thread.
  [[nodiscard]] virtual std::size_t saved_bytes() const = 0;
  virtual void save(std::span<std::byte> to) const = 0;
};

}  // namespace mariner::index
