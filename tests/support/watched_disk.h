// A disk that passes everything on and remembers what was read, so that a test or a benchmark can
// count it. Any thread where the disk under it allows any.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "logging/disk.h"

namespace mariner::test {

class WatchedDisk final : public logging::Disk {
 public:
  explicit WatchedDisk(logging::Disk& disk) : disk_(disk) {}  // which outlives it

  // In the order in which they were asked for.
  [[nodiscard]] std::vector<ByteRange> reads() const;
  [[nodiscard]] std::uint64_t bytes_read() const;
  void forget();

  [[nodiscard]] std::uint64_t size_bytes() const override { return disk_.size_bytes(); }
  [[nodiscard]] std::uint32_t alignment() const override { return disk_.alignment(); }
  Result<void> read(std::uint64_t offset, std::span<std::byte> to) override;
  Result<void> write(std::uint64_t offset, std::span<const logging::ConstBytes> parts,
                     logging::Durability durability) override;
  Result<void> flush() override { return disk_.flush(); }
  Result<void> discard(ByteRange range) override { return disk_.discard(range); }
  void async_read(std::uint64_t offset, std::span<std::byte> to, Completion done) override;
  void async_write(std::uint64_t offset, std::vector<logging::ConstBytes> parts,
                   logging::Durability durability, Completion done) override;
  void async_flush(Completion done) override { disk_.async_flush(std::move(done)); }

 private:
  logging::Disk& disk_;
  mutable std::mutex mutex_;
  std::vector<ByteRange> reads_;  // guarded by mutex_
};

}  // namespace mariner::test
