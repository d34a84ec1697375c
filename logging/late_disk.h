// A disk that is missing at first: every request fails until it has come.
//
// For what must be there to own a history that is not to be given up, whether or not anybody can
// read or write its image now. As on every Disk, blocking calls may come from any thread.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "logging/disk.h"
#include "proto/executor.h"

namespace mariner::logging {

class LateDisk final : public Disk {
 public:
  // It has `size_bytes` until it comes. `missing`: what requests fail with. The executor is that of
  // the owner's thread.
  LateDisk(std::uint64_t size_bytes, Error missing, Executor& executor)
      : size_bytes_(size_bytes), missing_(std::move(missing)), executor_(executor) {}

  // Requests go to it from now on. Once; owner's thread, blocking calls may be under way.
  void arrive(std::unique_ptr<Disk> disk);

  [[nodiscard]] std::uint64_t size_bytes() const override;
  [[nodiscard]] std::uint32_t alignment() const override;
  Result<void> read(std::uint64_t offset, std::span<std::byte> to) override;
  Result<void> write(std::uint64_t offset, std::span<const ConstBytes> parts,
                     Durability durability) override;
  Result<void> write_past_cache(std::span<const Write> writes) override;
  [[nodiscard]] bool has_place(ByteRange range) override;
  Result<void> flush() override;
  void start_writeback(ByteRange range) override;
  Result<void> wait_for_writeback(ByteRange range) override;
  Result<void> discard(ByteRange range) override;
  [[nodiscard]] bool can_forget() const override;
  bool try_read(std::uint64_t offset, std::span<std::byte> to) override;
  void async_read(std::uint64_t offset, std::span<std::byte> to, Completion done) override;
  void async_prefetch(ByteRange range, Completion done) override;
  void submit_now() override;
  void async_write(std::uint64_t offset, std::vector<ConstBytes> parts, Durability durability,
                   Completion done) override;
  void async_flush(Completion done) override;
  void async_forget(ByteRange range, Completion done) override;

 private:
  [[nodiscard]] Disk* there() const { return there_.load(std::memory_order_acquire); }
  void fail(Completion done);

  const std::uint64_t size_bytes_;
  const Error missing_;
  Executor& executor_;
  std::unique_ptr<Disk> disk_;
  std::atomic<Disk*> there_{nullptr};  // disk_, once it has come
};

}  // namespace mariner::logging
