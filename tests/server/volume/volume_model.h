// A model of one volume that remembers every write: the contents after each sequence number.
//
// Writes are begun in the order in which they are given to the volume. Which number each got, the
// model learns from the index (follow()): an indexed write is the earliest begun one of its type
// and extent, because writes that overlap keep their order.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "index/version_index.h"
#include "tests/server/volume/sectors.h"

namespace mariner::test {

struct ModelWrite {
  logging::RecordType type = logging::RecordType::kWrite;
  BlockRange extent;      // as it will stand in the log
  ByteRange range;        // what it changes
  Sectors sectors;        // ... to this
  SequenceNumber target;  // of a rollback
};

class VolumeModel {
 public:
  using Handle = std::uint64_t;

  explicit VolumeModel(Sectors base) : states_{{SequenceNumber{0}, std::move(base)}} {}

  Handle begin(ModelWrite write);
  // The write was answered. One that failed may still turn up after a recovery, never before, and
  // not once it was voided.
  void answered(Handle handle, bool success);
  // All that was stamped is settled: what failed has been voided.
  void forget_failed();

  // Takes the writes of the index up to `until`. Returns what contradicts the model, or nothing.
  std::string follow(const index::VersionIndex& index, SequenceNumber until);
  // The same of a recovered index, whole; what it does not have and nobody was told of never
  // happened.
  std::string recover(const index::VersionIndex& index);

  // The contents as of `moment`, which has been followed.
  [[nodiscard]] const Sectors& at(SequenceNumber moment) const;
  [[nodiscard]] const Sectors& newest() const { return states_.back().sectors; }
  [[nodiscard]] SequenceNumber last() const { return states_.back().sequence; }
  [[nodiscard]] std::size_t unanswered() const;
  [[nodiscard]] std::size_t states() const { return states_.size(); }

  // Whether block number `block` had the contents of `bytes` at some moment in [from, to].
  [[nodiscard]] bool block_was(std::uint64_t block, std::span<const std::byte> bytes,
                               SequenceNumber from, SequenceNumber to) const;

 private:
  struct State {
    SequenceNumber sequence;
    Sectors sectors;
  };
  struct Begun {
    Handle handle = 0;
    ModelWrite write;
    bool answered = false;
    bool failed = false;
    bool found = false;
  };
  std::string take(const index::IndexedWrite& indexed, bool recovering);
  void apply(const ModelWrite& write, SequenceNumber sequence);
  [[nodiscard]] std::size_t state_of(SequenceNumber moment) const;

  std::vector<State> states_;
  std::list<Begun> begun_;  // in order; gone once found and answered
  Handle next_ = 1;
};

}  // namespace mariner::test
