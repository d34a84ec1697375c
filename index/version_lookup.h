// One computation's look at a stored index. What it says counts when the reader's computation is
// complete at its end. Owner's thread only.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "index/kept_index.h"
#include "index/version_index.h"
#include "proto/units.h"

namespace mariner::index {

class BlockReader;
class StoredIndex;

class VersionLookup {
 public:
  VersionLookup(StoredIndex& index, BlockReader& reader);

  // The newest version of every block of `range` at or before `at`: runs in order, without gaps.
  [[nodiscard]] std::vector<LocatedRun> locate(BlockRange range, SequenceNumber at) const;
  // The same of each that is asked for; neighbours are looked up together.
  struct Asked {
    BlockRange range;  // not empty
    SequenceNumber at;
  };
  [[nodiscard]] std::vector<std::vector<LocatedRun>> locate_each(
      std::span<const Asked> asked) const;
  // The base, as it will be without the before-images that are being forgotten.
  [[nodiscard]] std::vector<LocatedRun> base_to_be(BlockRange range) const;
  // The base of `ranges`, which ascend, as it will be without the before-images below `ordinal`.
  [[nodiscard]] std::vector<LocatedRun> base_from(std::span<const BlockRange> ranges,
                                                  std::uint64_t ordinal) const;
  // What the log has written again of `ranges`, which ascend, for kept moments: by ordinal.
  [[nodiscard]] std::vector<KeptRun> kept(std::span<const BlockRange> ranges) const;
  // The sequence numbers of the writes that changed `block` in (from, to], in order.
  [[nodiscard]] std::vector<SequenceNumber> versions(Lbn block, SequenceNumber from,
                                                     SequenceNumber to) const;
  // What changed `block` in (from, to], in order: writes, and rollbacks that gave it other
  // contents.
  struct Changes {
    std::vector<IndexMoment> list;  // the first ones, `most` of them at most
    SequenceNumber through;         // none is missing up to here
  };
  [[nodiscard]] Changes changes(Lbn block, SequenceNumber from, SequenceNumber to,
                                std::size_t most) const;
  // The index, for what it knows without looking.
  [[nodiscard]] const StoredIndex& index() const { return index_; }

 private:
  StoredIndex& index_;
  BlockReader& reader_;
};

}  // namespace mariner::index
