// What the index benchmark asks of an engine: versions of blocks go in, their places come out.
//
// A version is one entry by time and one by block. All engines get the same versions in the same
// order, the same memory and the same disk. One thread drives them; what they do in the background
// is their own.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "proto/error.h"

namespace mariner::bench {

struct BenchVersion {
  std::uint64_t block = 0;     // LBN
  std::uint64_t sequence = 0;  // from 1, ascending
  std::uint64_t place = 0;     // where it stands in the log
};

struct EngineCounts {
  std::uint64_t reads = 0;  // of the disk
  std::uint64_t bytes_read = 0;
  std::uint64_t writes = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t disk_bytes = 0;    // that the index takes
  std::uint64_t memory_bytes = 0;  // queues and caches, internal nodes apart
  std::uint64_t node_bytes = 0;    // internal nodes
  std::uint64_t cycles = 0;        // of the commit, where there is such a thing
};

class IndexEngine {
 public:
  virtual ~IndexEngine() = default;
  [[nodiscard]] virtual std::string name() const = 0;

  // Fills the empty engine with what `next` gives until it gives nothing: in the order of (block,
  // sequence). The entries by time are made of the same versions, in the order of `sequence`, by a
  // second round of `next_by_time`.
  using Next = std::function<std::optional<BenchVersion>()>;
  virtual Result<void> load(const Next& next_by_block, const Next& next_by_time) = 0;

  // Waits while the engine has no room.
  virtual void insert(const BenchVersion& version) = 0;
  // The newest version of `block` at or before `sequence`. Waits for it.
  virtual std::optional<BenchVersion> find(std::uint64_t block, std::uint64_t sequence) = 0;
  // The same beside inserts: begins it, calls `done` during a later insert() or poll().
  virtual void begin_find(std::uint64_t block, std::uint64_t sequence,
                          std::function<void(std::optional<BenchVersion>)> done) = 0;
  // Looks after what is under way.
  virtual void poll() = 0;
  // How many versions there are of `blocks` blocks from `first` on. Waits for it.
  virtual std::uint64_t scan(std::uint64_t first, std::uint64_t blocks) = 0;
  // Everything inserted so far is on disk when it returns.
  virtual void commit() = 0;

  [[nodiscard]] virtual EngineCounts counts() const = 0;
};

}  // namespace mariner::bench
