// Reads the past of one volume: any blocks as of any settled moment.
//
// The index says where each version stands; the log gives its bytes, verified; what was never
// written comes from the base. Owner's thread only; the owner keeps the reader alive while reads
// are in flight (in_flight()).
#pragma once

#include <memory>
#include <span>

#include "index/stored_index.h"
#include "logging/log_reader.h"
#include "proto/error.h"
#include "proto/units.h"
#include "server/volume/layer.h"

namespace mariner::volume {

// What a volume held before its first write.
class Base {
 public:
  virtual ~Base() = default;
  // Fills `to` with the base's bytes of `range`.
  virtual void read(BlockRange range, std::span<std::byte> to, Done done) = 0;
  // True if the image holds it: the bytes may move to a before-image at any time.
  [[nodiscard]] virtual bool may_move() const = 0;
};

class ZeroBase final : public Base {
 public:
  void read(BlockRange range, std::span<std::byte> to, Done done) override;
  [[nodiscard]] bool may_move() const override { return false; }
};

class HistoryReader {
 public:
  HistoryReader(VolumeId volume, index::StoredIndex& index, logging::LogReader& log, Base& base)
      : volume_(volume), index_(index), log_(log), base_(base) {}
  ~HistoryReader();

  // Fills `to` (range.count blocks, 4 KiB-aligned memory that stays valid) with the blocks as of
  // `at`, which is settled.
  void read(BlockRange range, SequenceNumber at, std::span<std::byte> to, Done done);

  // Reads one located run. The building brick of read(), for the background restorer too.
  [[nodiscard]] logging::LogRead log_read_of(const index::LocatedRun& run,
                                             std::span<std::byte> to) const;

  [[nodiscard]] std::size_t in_flight() const { return in_flight_; }

 private:
  struct Operation;
  void read_run(const index::LocatedRun& run, std::span<std::byte> to,
                const std::shared_ptr<Operation>& operation);
  void locate(BlockRange range, SequenceNumber at, std::span<std::byte> to,
              const std::shared_ptr<Operation>& operation);
  void read_elsewhere(const index::LocatedRun& run, std::span<std::byte> to, const Error& error,
                      const std::shared_ptr<Operation>& operation);
  void read_base(BlockRange range, std::span<std::byte> to,
                 const std::shared_ptr<Operation>& operation);
  static void finished(const std::shared_ptr<Operation>& operation, const Result<void>& result);

  const VolumeId volume_;
  index::StoredIndex& index_;
  logging::LogReader& log_;
  Base& base_;
  std::size_t in_flight_ = 0;
};

}  // namespace mariner::volume
