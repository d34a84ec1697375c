// The backlog of an image: what it is to get out of the history, because memory does not hold it
// (a node that was away missed it, a restart found it, it was too much, or a rollback changed it).
//
// It is fetched a part at a time, in turn with tables of writes that are in memory; what such a
// table has put into the image need not be fetched any more. So a node that catches up under load
// has less and less to fetch, however long that takes. What comes while the older part is fetched
// waits in a newer one, so that the older one ends, and with it what the image durably holds gets
// on.
//
// Invariants: a block is in one of the two parts at most; it leaves when the image durably holds
// what it was to get, or something newer. Sans I/O. Owner's thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "server/volume/pending_table.h"

namespace mariner::volume {

class Backlog {
 public:
  // What is said of contents that come in together.
  struct Share {
    std::uint64_t bytes = 0;           // by which the image is behind because of them
    bool missed = false;               // some of them were missed
    bool restores = false;             // a rollback changed some of them
    std::optional<VersionTime> since;  // when the oldest of them was written
  };

  Backlog();

  // `content`, which the history has, is the newest that `range` is to get.
  void add(BlockRange range, const PendingContent& content);
  // ... and that holds of all that was added since the last call.
  void added(const Share& share);
  // The same of a table of such contents alone, as a whole; this is empty.
  void add_all(std::shared_ptr<PendingTable> table);
  // The image durably holds for `range` what is newer than all that was added, or what first() has.
  void remove(BlockRange range);
  void remove_first(BlockRange range);

  // To be fetched now. It stays the same until it is empty, and loses what is removed; then
  // advance() puts what came meanwhile in its place.
  [[nodiscard]] const std::shared_ptr<PendingTable>& first() const { return older_.runs; }
  [[nodiscard]] bool first_was_missed() const { return older_.missed; }

  // The image durably holds all that was written up to `applied`, but for this. Returns up to where
  // it holds everything; 0 while that stays as it was.
  SequenceNumber advance(SequenceNumber applied);

  [[nodiscard]] bool empty() const { return older_.runs->empty() && newer_.runs->empty(); }
  // As PendingTable::visit().
  void visit(BlockRange range,
             const std::function<void(BlockRange, const PendingContent*)>& visitor) const;

  [[nodiscard]] std::uint64_t bytes() const {
    return static_cast<std::uint64_t>(older_.bytes + newer_.bytes);
  }
  // What of it was missed is still to be fetched.
  [[nodiscard]] std::uint64_t missed_bytes() const;
  [[nodiscard]] bool missed() const { return older_.missed || newer_.missed; }
  [[nodiscard]] bool restores() const { return older_.restores || newer_.restores; }
  [[nodiscard]] bool first_restores() const { return older_.restores; }
  // Of what a rollback changed, or was added with that, so much is still to be fetched.
  [[nodiscard]] std::uint64_t restoring_bytes() const;
  [[nodiscard]] std::optional<VersionTime> since() const {
    return older_.since ? older_.since : newer_.since;
  }

 private:
  struct Part {
    std::shared_ptr<PendingTable> runs;
    double bytes = 0;     // what is removed takes its share of them with it
    SequenceNumber last;  // when it is empty, the image durably holds everything up to here
    bool missed = false;
    bool restores = false;
    std::optional<VersionTime> since;

    template <typename Remove>
    void removing(Remove remove);
  };

  Part older_;
  Part newer_;
};

}  // namespace mariner::volume
