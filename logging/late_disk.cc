#include "logging/late_disk.h"

#include <utility>

#include "proto/check.h"

namespace mariner::logging {

void LateDisk::arrive(std::unique_ptr<Disk> disk) {
  CHECK(disk != nullptr && disk_ == nullptr);
  disk_ = std::move(disk);
  there_.store(disk_.get(), std::memory_order_release);
}

// Never before the call has returned.
void LateDisk::fail(Completion done) {
  executor_.post([done = std::move(done), error = missing_]() mutable { done(std::move(error)); });
}

std::uint64_t LateDisk::size_bytes() const {
  const Disk* const disk = there();
  return disk == nullptr ? size_bytes_ : disk->size_bytes();
}

std::uint32_t LateDisk::alignment() const {
  const Disk* const disk = there();
  return disk == nullptr ? 1 : disk->alignment();
}

Result<void> LateDisk::read(std::uint64_t offset, std::span<std::byte> to) {
  Disk* const disk = there();
  if (disk == nullptr) return missing_;
  return disk->read(offset, to);
}

Result<void> LateDisk::write(std::uint64_t offset, std::span<const ConstBytes> parts,
                             Durability durability) {
  Disk* const disk = there();
  if (disk == nullptr) return missing_;
  return disk->write(offset, parts, durability);
}

Result<void> LateDisk::write_past_cache(std::span<const Write> writes) {
  Disk* const disk = there();
  if (disk == nullptr) return missing_;
  return disk->write_past_cache(writes);
}

bool LateDisk::has_place(ByteRange range) {
  Disk* const disk = there();
  return disk != nullptr && disk->has_place(range);
}

Result<void> LateDisk::flush() {
  Disk* const disk = there();
  if (disk == nullptr) return missing_;
  return disk->flush();
}

void LateDisk::start_writeback(ByteRange range) {
  if (Disk* const disk = there()) disk->start_writeback(range);
}

Result<void> LateDisk::wait_for_writeback(ByteRange range) {
  Disk* const disk = there();
  if (disk == nullptr) return missing_;
  return disk->wait_for_writeback(range);
}

Result<void> LateDisk::discard(ByteRange range) {
  Disk* const disk = there();
  if (disk == nullptr) return missing_;
  return disk->discard(range);
}

bool LateDisk::can_forget() const {
  const Disk* const disk = there();
  return disk != nullptr && disk->can_forget();
}

bool LateDisk::try_read(std::uint64_t offset, std::span<std::byte> to) {
  Disk* const disk = there();
  return disk != nullptr && disk->try_read(offset, to);
}

void LateDisk::async_read(std::uint64_t offset, std::span<std::byte> to, Completion done) {
  Disk* const disk = there();
  if (disk == nullptr) return fail(std::move(done));
  disk->async_read(offset, to, std::move(done));
}

void LateDisk::async_prefetch(ByteRange range, Completion done) {
  Disk* const disk = there();
  if (disk == nullptr) return done({});
  disk->async_prefetch(range, std::move(done));
}

void LateDisk::submit_now() {
  if (Disk* const disk = there()) disk->submit_now();
}

void LateDisk::async_write(std::uint64_t offset, std::vector<ConstBytes> parts,
                           Durability durability, Completion done) {
  Disk* const disk = there();
  if (disk == nullptr) return fail(std::move(done));
  disk->async_write(offset, std::move(parts), durability, std::move(done));
}

void LateDisk::async_flush(Completion done) {
  Disk* const disk = there();
  if (disk == nullptr) return fail(std::move(done));
  disk->async_flush(std::move(done));
}

void LateDisk::async_forget(ByteRange range, Completion done) {
  Disk* const disk = there();
  if (disk == nullptr) return fail(std::move(done));
  disk->async_forget(range, std::move(done));
}

}  // namespace mariner::logging
