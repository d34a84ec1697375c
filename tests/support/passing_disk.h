// A disk that passes everything on, for those that do one thing otherwise. Any thread where the
// disk under it allows any.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "logging/disk.h"

namespace mariner::test {

class PassingDisk : public logging::Disk {
 public:
  explicit PassingDisk(logging::Disk& under) : under_(under) {}  // which outlives it

  [[nodiscard]] std::uint64_t size_bytes() const override { return under_.size_bytes(); }
  [[nodiscard]] std::uint32_t alignment() const override { return under_.alignment(); }
  Result<void> read(std::uint64_t offset, std::span<std::byte> to) override {
    return under_.read(offset, to);
  }
  Result<void> write(std::uint64_t offset, std::span<const logging::ConstBytes> parts,
                     logging::Durability durability) override {
    return under_.write(offset, parts, durability);
  }
  Result<void> flush() override { return under_.flush(); }
  Result<void> discard(ByteRange range) override { return under_.discard(range); }
  void async_read(std::uint64_t offset, std::span<std::byte> to, Completion done) override {
    under_.async_read(offset, to, std::move(done));
  }
  void async_write(std::uint64_t offset, std::vector<logging::ConstBytes> parts,
                   logging::Durability durability, Completion done) override {
    under_.async_write(offset, std::move(parts), durability, std::move(done));
  }

 private:
  logging::Disk& under_;
};

}  // namespace mariner::test
