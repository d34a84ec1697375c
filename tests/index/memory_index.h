// A version index in memory: what the one on disk (index/stored_index.h) must agree with.
//
// TL is the list of writes in order of sequence. LT is a tree of aligned runs of 8^level blocks: a
// write's extent is cut into such runs (at most 14 a level), each of which remembers the write, so
// that a large write or UNMAP costs few entries. A lookup walks from the root to the block and
// takes the newest write at or before the moment on the way: exact for every overlap.
//
#pragma once

#include <boost/container/small_vector.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "index/version_index.h"

namespace mariner::index {

struct IndexStatistics {
  std::uint64_t writes = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t memory_bytes = 0;  // an estimate
};

class MemoryIndex final {
 public:
  // The largest volume that it serves.
  static constexpr std::uint64_t kBlocksMax = std::uint64_t{1} << 39;

  void insert(const logging::Record& record, const logging::LogLocation& location);
  [[nodiscard]] std::vector<LocatedRun> locate(BlockRange range, SequenceNumber at) const;
  [[nodiscard]] std::vector<BlockRange> changed(SequenceNumber from, SequenceNumber to) const;
  [[nodiscard]] std::vector<SequenceNumber> versions(Lbn block, SequenceNumber from,
                                                     SequenceNumber to) const;
  void forget(const logging::Record& record, const logging::LogLocation& location);
  void set_horizon(IndexMoment horizon);
  [[nodiscard]] std::vector<SequenceNumber> rollback_targets(SequenceNumber after) const;
  [[nodiscard]] SequenceNumber last_rollback() const;
  [[nodiscard]] IndexMoment moment_at(VersionTime time) const;
  [[nodiscard]] IndexMoment moment_of(SequenceNumber sequence) const;
  [[nodiscard]] IndexMoment oldest() const;
  [[nodiscard]] IndexMoment newest() const;
  void for_each(SequenceNumber from, SequenceNumber to,
                const std::function<bool(const IndexedWrite&)>& visit) const;
  [[nodiscard]] IndexStatistics statistics() const;

 private:
  static constexpr unsigned kFanoutBits = 3;
  static constexpr unsigned kLevels = 14;  // the root covers 8^13 blocks: 2 PiB, kBlocksMax

  static_assert(kBlocksMax == std::uint64_t{1} << ((kLevels - 1) * kFanoutBits));

  // Writes are numbered as they are inserted, and the numbers wrap: a write's place in writes_ is
  // its number less first_number_.
  using WriteNumber = std::uint32_t;
  using Place = std::uint32_t;
  static constexpr Place kNone = UINT32_MAX;

  struct Node {
    std::uint8_t children = 0;  // which of the 8 smaller runs have a node
    boost::container::small_vector<WriteNumber, 3> writes;
  };
  struct Rollback {
    SequenceNumber sequence;
    SequenceNumber target;
  };
  struct BeforeImage {
    BlockCount count;
    logging::LogLocation location;
    std::uint32_t payload_block = 0;
  };

  static std::uint64_t key(unsigned level, std::uint64_t run) {
    return (std::uint64_t{level} << 56) | run;
  }
  [[nodiscard]] Place place_of(WriteNumber number) const { return number - first_number_; }
  [[nodiscard]] Place first_after(SequenceNumber at) const;
  // Calls use(level, run) for each aligned run that the extent is cut into.
  template <typename Use>
  static void cut_extent(BlockRange extent, Use use);
  void insert_run(unsigned level, std::uint64_t run, WriteNumber number);
  void forget_run(unsigned level, std::uint64_t run, WriteNumber number);
  void forget_before_image(const logging::Record& record, const logging::LogLocation& location);
  void insert_before_image(const logging::Record& record, const logging::LogLocation& location);
  void drop_before_images(BlockRange range);
  void walk(unsigned level, std::uint64_t run, Place limit, Place newest, BlockRange range,
            std::vector<LocatedRun>& out) const;
  void emit(BlockRange range, Place place, std::vector<LocatedRun>& out) const;
  void emit_base(BlockRange range, std::vector<LocatedRun>& out) const;
  void resolve(BlockRange range, SequenceNumber at, std::vector<LocatedRun>& out) const;

  std::deque<IndexedWrite> writes_;  // forgotten ones stay until all before them are
  std::deque<bool> forgotten_;       // of each of writes_
  WriteNumber first_number_ = 0;
  IndexMoment floor_;  // the horizon, or the last write that is gone from writes_: the later one
  IndexMoment horizon_;
  boost::unordered_flat_map<std::uint64_t, Node> nodes_;
  std::vector<Rollback> rollbacks_;
  std::map<Lbn, BeforeImage> before_images_;
  std::uint64_t payload_bytes_ = 0;
};

}  // namespace mariner::index
