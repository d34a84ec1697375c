// A disk that remembers which batch was written to which place: what a log writer tells nobody, and
// a judge of reported damage must know.
#pragma once

#include <cstdint>
#include <map>
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
    ByteRange range;  // header area and payloads
  };

  // `disk` outlives it.
  BatchSpy(Disk& disk, const BatchFormat& format) : disk_(disk), format_(format) {}

  // The batch that was written last so that it begins at the sector.
  [[nodiscard]] std::optional<Batch> at(std::uint64_t sector) const;

  [[nodiscard]] std::uint64_t size_bytes() const override { return disk_.size_bytes(); }
  [[nodiscard]] std::uint32_t alignment() const override { return disk_.alignment(); }
  Result<void> read(std::uint64_t offset, std::span<std::byte> to) override {
    return disk_.read(offset, to);
  }
  Result<void> write(std::uint64_t offset, std::span<const ConstBytes> parts,
                     Durability durability) override {
    return disk_.write(offset, parts, durability);
  }
  Result<void> flush() override { return disk_.flush(); }
  Result<void> discard(ByteRange range) override { return disk_.discard(range); }
  void async_read(std::uint64_t offset, std::span<std::byte> to, Completion done) override {
    disk_.async_read(offset, to, std::move(done));
  }
  void async_write(std::uint64_t offset, std::vector<ConstBytes> parts, Durability durability,
                   Completion done) override;

 private:
  Disk& disk_;
  const BatchFormat format_;
  std::map<std::uint64_t, Batch> batches_;
};

}  // namespace mariner::logging::test
