// A disk that remembers every batch that was ever begun on it, and where: what a log writer tells
// nobody, and a judge of reported damage must know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "logging/batch.h"
#include "logging/disk.h"

namespace mariner::logging::test {

class BatchSpy final : public Disk {
 public:
  struct Batch {
    std::uint64_t number = 0;
    ByteRange range;                       // header area and payloads
    std::vector<std::uint64_t> sequences;  // of its records
    std::size_t begun = 0;                 // its place among all batches of the disk
  };

  // `disk` outlives it.
  BatchSpy(Disk& disk, const BatchFormat& format) : disk_(&disk), format_(format) {}
  // From now on in front of this one.
  void stand_before(Disk& disk) { disk_ = &disk; }

  // Of the batches begun at the sector the last one that holds a record of this sequence number.
  [[nodiscard]] std::optional<Batch> holding(std::uint64_t sequence, std::uint64_t sector) const;
  // The others that were begun under the same number, before it or after: one of them had failed,
  // or was cut.
  [[nodiscard]] std::vector<Batch> namesakes(const Batch& batch) const;

  [[nodiscard]] std::uint64_t size_bytes() const override { return disk_->size_bytes(); }
  [[nodiscard]] std::uint32_t alignment() const override { return disk_->alignment(); }
  Result<void> read(std::uint64_t offset, std::span<std::byte> to) override {
    return disk_->read(offset, to);
  }
  Result<void> write(std::uint64_t offset, std::span<const ConstBytes> parts,
                     Durability durability) override {
    return disk_->write(offset, parts, durability);
  }
  Result<void> flush() override { return disk_->flush(); }
  Result<void> discard(ByteRange range) override { return disk_->discard(range); }
  void async_read(std::uint64_t offset, std::span<std::byte> to, Completion done) override {
    disk_->async_read(offset, to, std::move(done));
  }
  void async_write(std::uint64_t offset, std::vector<ConstBytes> parts, Durability durability,
                   Completion done) override;

 private:
  Disk* disk_;
  const BatchFormat format_;
  std::vector<Batch> batches_;  // in the order in which they were begun
};

}  // namespace mariner::logging::test
