// A disk that tells a test of each blocking change before it happens.
#pragma once

#include <functional>
#include <utility>

#include "logging/disk.h"

namespace mariner::test {

class TellingDisk final : public logging::Disk {
 public:
  using Watcher = std::function<void(ByteRange range, bool discards)>;

  // `below` outlives it.
  TellingDisk(logging::Disk& below, Watcher watcher)
      : below_(below), watcher_(std::move(watcher)) {}

  [[nodiscard]] std::uint64_t size_bytes() const override { return below_.size_bytes(); }
  [[nodiscard]] std::uint32_t alignment() const override { return below_.alignment(); }
  Result<void> read(std::uint64_t offset, std::span<std::byte> to) override {
    return below_.read(offset, to);
  }
  Result<void> write(std::uint64_t offset, std::span<const logging::ConstBytes> parts,
                     logging::Durability durability) override {
    std::uint64_t length = 0;
    for (const logging::ConstBytes& part : parts) length += part.size();
    watcher_({offset, length}, false);
    return below_.write(offset, parts, durability);
  }
  void start_writeback(ByteRange range) override {
    if (begun) begun(range);
    below_.start_writeback(range);
  }
  Result<void> wait_for_writeback(ByteRange range) override {
    return awaited ? awaited(range) : Result<void>{};
  }
  Result<void> write_past_cache(std::span<const Write> writes) override {
    if (past_cache) past_cache(writes);
    return Disk::write_past_cache(writes);
  }
  [[nodiscard]] bool has_place(ByteRange range) override { return places && places(range); }
  Result<void> flush() override { return below_.flush(); }
  Result<void> discard(ByteRange range) override {
    watcher_(range, true);
    return below_.discard(range);
  }
  void async_read(std::uint64_t offset, std::span<std::byte> to, Completion done) override {
    below_.async_read(offset, to, std::move(done));
  }
  void async_prefetch(ByteRange range, Completion done) override {
    below_.async_prefetch(range, std::move(done));
  }
  void async_write(std::uint64_t offset, std::vector<logging::ConstBytes> parts,
                   logging::Durability durability, Completion done) override {
    below_.async_write(offset, std::move(parts), durability, std::move(done));
  }

  std::function<void(ByteRange)> begun;  // told where the device is to begin
  std::function<Result<void>(ByteRange)> awaited;
  std::function<void(std::span<const Write>)> past_cache;
  std::function<bool(ByteRange)> places;  // what has its place; none: nothing

 private:
  logging::Disk& below_;
  const Watcher watcher_;
};

}  // namespace mariner::test
