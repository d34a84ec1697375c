// A part of a volume, a partition or a logical volume, as a volume of its own at every moment.
//
// Its block i is the bytes [4096 i, 4096 i + 4096) of the part, wherever these are; a rest that is
// no whole block is left out. Where blocks of the part are blocks of the volume, questions go
// through it as they are; where they are not (partitions that begin at sector 63), one is made of
// pieces of several, and was written to when one of these was: maybe beside the piece. One thread.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "ifsck/past_behind.h"
#include "proto/error.h"
#include "proto/units.h"
#include "uvfs/parts/part_map.h"

namespace mariner::uvfs {

class PartPast final : public ifsck::PastBehind {
 public:
  // `past`, of the volume, outlives it. kInvalidArgument: as PartMap::of().
  [[nodiscard]] static Result<PartPast> open(ifsck::Past& past, std::span<const ByteRange> extents);

  [[nodiscard]] std::uint64_t size_bytes() const override {
    return map_.bytes() / kBlockBytes * kBlockBytes;
  }
  // Moments are the volume's.

  // The past is asked once.
  [[nodiscard]] Result<void> read(std::span<const Question> questions,
                                  std::span<std::byte> to) override;
  void expect(std::span<const Question> questions) override;
  [[nodiscard]] Result<std::vector<BlockRange>> changed(SequenceNumber from,
                                                        SequenceNumber to) override;
  // Of blocks behind the end: none.
  [[nodiscard]] Result<std::vector<Version>> versions(std::span<const Lbn> blocks,
                                                      SequenceNumber from,
                                                      SequenceNumber to) override;

 private:
  // A block of the volume in which there is something of one of the part.
  struct Use {
    Lbn on_volume;
    Lbn block;
    friend auto operator<=>(const Use&, const Use&) = default;
  };

  PartPast(ifsck::Past& past, PartMap map) : PastBehind(past), map_(std::move(map)) {}

  // Where blocks of the part are blocks of the volume: that.
  [[nodiscard]] std::vector<Question> on_volume(std::span<const Question> questions) const;
  [[nodiscard]] Result<void> check(std::span<const Question> questions) const;
  Result<void> read_pieces(std::span<const Question> questions, std::span<std::byte> to);
  [[nodiscard]] std::vector<Use> uses_of(std::span<const Lbn> blocks) const;

  PartMap map_;
};

}  // namespace mariner::uvfs
