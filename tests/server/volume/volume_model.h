// A model of one volume that remembers every write: the contents after each sequence number.
//
// Writes are begun in the order in which they are given to the volume. Which number each got, the
// model learns from the index (follow()): an indexed write is the earliest begun one of its type
// and extent, because writes that overlap keep their order.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "tests/server/volume/sectors.h"
#include "tests/support/index_answers.h"

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

  explicit VolumeModel(Sectors base) : states_{{SequenceNumber{0}, std::move(base), {}}} {}

  Handle begin(ModelWrite write);
  // The write was answered. One that failed may still turn up after a recovery, never before, and
  // not once it was voided.
  void answered(Handle handle, bool success);
  // All that was stamped is settled: what failed has been voided.
  void forget_failed();

  // Takes the writes of the index up to `until`. Returns what contradicts the model, or nothing.
  std::string follow(const IndexAnswers& index, SequenceNumber until);
  // The same of a recovered index, whole; what it does not have and nobody was told of never
  // happened. Of several unanswered writes of one extent a crash may have kept the later one:
  // `contents` tells the volume as of a moment.
  using Contents = std::function<Sectors(SequenceNumber)>;
  std::string recover(const IndexAnswers& index, const Contents& contents);

  // The contents as of `moment`, which has been followed.
  [[nodiscard]] const Sectors& at(SequenceNumber moment) const;
  // When the moment's last write was; 0 of the base.
  [[nodiscard]] VersionTime time_of(SequenceNumber moment) const {
    return states_[state_of(moment)].time;
  }
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
    VersionTime time;
  };
  struct Begun {
    Handle handle = 0;
    ModelWrite write;
    bool answered = false;
    bool failed = false;
    bool found = false;
  };
  // `contents`: of a recovery.
  std::string take(const index::IndexedWrite& indexed, const Contents* contents);
  [[nodiscard]] Sectors after(const ModelWrite& write) const;
  void apply(const ModelWrite& write, const index::IndexedWrite& indexed);
  [[nodiscard]] std::size_t state_of(SequenceNumber moment) const;

  std::vector<State> states_;
  std::list<Begun> begun_;  // in order; gone once found and answered
  Handle next_ = 1;
};

}  // namespace mariner::test
