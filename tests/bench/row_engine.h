// What the papers' experiments ask of an index: rows of a key of 16 bytes and a value go in, are
// replaced, are deleted and are looked up.
//
// An engine has one or several tables, which share its memory and its file. All engines stand on
// one RingLoop, whose thread drives them, and get the same updates in the same order. What they do
// with the disk is their own. An error of the disk ends the program.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "index/btree.h"
#include "index/leaf.h"
#include "proto/error.h"
#include "tests/bench/index_engine.h"
#include "tests/bench/ring_loop.h"

namespace mariner::bench {

struct RowTable {
  std::size_t value_bytes = 0;
  std::uint32_t load_fill = 70;  // percent of a leaf that load() fills
  // Of the keys with one `high`, what comes is behind what is there.
  bool ascends_within_high = false;
};

struct RowEngineOptions {
  std::string path;  // made anew, and removed in the end
  std::uint64_t disk_bytes = 0;
  std::uint32_t block_bytes = 65536;
  std::size_t memory_bytes = 0;  // queues, caches and buffers together, internal nodes apart
  std::vector<RowTable> tables;
};

struct RowUpdate {
  std::uint32_t table = 0;
  index::IndexKey key;
  std::span<const std::byte> value;  // empty: the row goes
};

class RowEngine {
 public:
  using IndexKey = index::IndexKey;
  using KeyRange = index::KeyRange;
  using Value = std::span<const std::byte>;
  struct Row {
    IndexKey key;
    Value value;
  };
  using Next = std::function<std::optional<Row>()>;
  using Found = std::function<void(std::optional<index::IndexRecord>)>;

  virtual ~RowEngine() = default;
  [[nodiscard]] virtual std::string name() const = 0;

  // Fills an empty table, in the order of its keys, with what `next` gives until it gives nothing.
  virtual void load(std::uint32_t table, const Next& next) = 0;
  // In order. Waits while the engine has no room. Their bytes are needed until it returns.
  virtual void apply(std::span<const RowUpdate> updates) = 0;
  // The row of the greatest key in `range`, as of the updates so far: calls `done` before it
  // returns or during a later call.
  virtual void begin_find(std::uint32_t table, KeyRange range, Found done) = 0;
  // How many rows there are in `range`. Waits for it.
  virtual std::uint64_t count(std::uint32_t table, KeyRange range) = 0;
  // Looks after what is under way.
  virtual void poll() = 0;
  // Everything applied so far is on disk when it returns.
  virtual void commit() = 0;

  [[nodiscard]] virtual EngineCounts counts() const = 0;
};

// Chunks of a modification queue (ModificationPool) that hold seven or more of the longest.
[[nodiscard]] inline std::uint32_t chunk_bytes_for(std::span<const RowTable> tables) {
  std::size_t longest = 0;
  for (const RowTable& table : tables) longest = std::max(longest, table.value_bytes);
  const std::size_t bytes = std::bit_ceil(4 * (index::kKeyBytes + longest) + 8);
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(bytes, 256, 65'536));
}

}  // namespace mariner::bench
