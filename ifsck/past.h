// What a volume held, at every moment of a stretch of its history: what the checker reads.
//
// A moment is a sequence number: the volume with the writes up to it. Wherever the history is kept
// (a logger, or a file beside an image), questions are asked for many blocks at once, because each
// costs a way there and back. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "proto/error.h"
#include "proto/units.h"

namespace mariner::ifsck {

class Past {
 public:
  struct Question {
    Lbn block;
    SequenceNumber at;
    friend bool operator==(const Question&, const Question&) = default;
  };
  // A write to a block.
  struct Version {
    Lbn block;
    SequenceNumber sequence;
    VersionTime time;
    friend bool operator==(const Version&, const Version&) = default;
  };
  // The moments that can be asked for.
  struct Reach {
    SequenceNumber oldest;
    SequenceNumber newest;
    friend bool operator==(const Reach&, const Reach&) = default;
  };

  virtual ~Past() = default;

  [[nodiscard]] virtual std::uint64_t size_bytes() const = 0;
  [[nodiscard]] virtual Result<Reach> reach() = 0;
  // The last write at or before the time; 0: none was.
  [[nodiscard]] virtual Result<SequenceNumber> moment_of(VersionTime time) = 0;
  // Of a write; of 0, or before all that is known: 0.
  [[nodiscard]] virtual Result<VersionTime> time_of(SequenceNumber sequence) = 0;

  // Fills `to` (kBlockBytes for each question, in their order). kOutsideWindow, kInvalidArgument: a
  // block behind the volume's end, which has whole blocks.
  [[nodiscard]] virtual Result<void> read(std::span<const Question> questions,
                                          std::span<std::byte> to) = 0;
  // The next read() will begin with these questions, so that what takes time can begin now. Without
  // any effect on what is answered; anything else may be asked instead.
  virtual void expect(std::span<const Question> /*questions*/) {}
  // The blocks that writes in (from, to] have touched: ascending, with gaps between them.
  [[nodiscard]] virtual Result<std::vector<BlockRange>> changed(SequenceNumber from,
                                                                SequenceNumber to) = 0;
  // All such writes to `blocks` (ascending), by block and then by sequence.
  [[nodiscard]] virtual Result<std::vector<Version>> versions(std::span<const Lbn> blocks,
                                                              SequenceNumber from,
                                                              SequenceNumber to) = 0;
  // The first in (from, to] that does not continue what was before: a rollback, or a write behind a
  // gap; 0: all do.
  [[nodiscard]] virtual Result<SequenceNumber> first_break(SequenceNumber /*from*/,
                                                           SequenceNumber /*to*/) {
    return SequenceNumber{};
  }
};

}  // namespace mariner::ifsck
