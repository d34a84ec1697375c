// Reads the past of one volume: any blocks as of any settled moment.
//
// The history gives what it has; what only the base holds comes from there, and is looked at again
// afterwards, because it may have been overwritten, which makes it a before-image first. Owner's
// thread only; the owner keeps the reader alive while reads are in flight (in_flight()).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "proto/error.h"
#include "proto/units.h"
#include "server/volume/history.h"
#include "server/volume/layer.h"

namespace mariner::volume {

// What a volume held before its first write, where that is stored: elsewhere it is zeros, and
// nobody asks.
class Base {
 public:
  virtual ~Base() = default;
  // Fills `to` with the base's bytes of `range`.
  virtual void read(BlockRange range, std::span<std::byte> to, Done done) = 0;
  // True if the image holds it: the bytes may move to a before-image at any time.
  [[nodiscard]] virtual bool may_move() const = 0;
};

class HistoryReader {
 public:
  // Both outlive it.
  HistoryReader(History& history, Base& base) : history_(history), base_(base) {}
  ~HistoryReader();

  // Fills `to` (range.count blocks, 4 KiB-aligned memory that stays valid) with the blocks as of
  // `at`, which is settled.
  void read(BlockRange range, SequenceNumber at, std::span<std::byte> to, Done done);

  // A block, and when.
  struct Question {
    Lbn block;
    SequenceNumber at;  // settled
  };
  using EachDone = UniqueFunction<void(Result<std::vector<PayloadSlice>>)>;
  // Base reads of one read_each() under way.
  static constexpr std::size_t kBaseReadsMax = 32;
  // The blocks one behind the other, in the order of the questions (1 to History::kBytesBlocksMax),
  // in as few slices as they are. Nothing that the history has is copied.
  void read_each(std::vector<Question> questions, EachDone done);

  [[nodiscard]] History& history() const { return history_; }
  [[nodiscard]] std::size_t in_flight() const { return in_flight_; }

 private:
  struct Operation;
  struct Batch;
  using BatchPtr = std::shared_ptr<Batch>;
  void ask(BlockRange range, std::span<std::byte> to, const std::shared_ptr<Operation>& operation);
  void read_base(BlockRange range, std::span<std::byte> to,
                 const std::shared_ptr<Operation>& operation);
  void locate(const BatchPtr& batch);
  void read_bases(const BatchPtr& batch);
  void look_again(const BatchPtr& batch);
  void finish(const BatchPtr& batch, const Result<void>& result);
  static void finished(const std::shared_ptr<Operation>& operation, const Result<void>& result);

  History& history_;
  Base& base_;
  std::size_t in_flight_ = 0;
};

}  // namespace mariner::volume
