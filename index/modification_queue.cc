#include "index/modification_queue.h"

#include <bit>
#include <cstring>
#include <utility>

#include "proto/huge_pages.h"

namespace mariner::index {

ModificationPool::ModificationPool(const Options& options)
    : chunk_bytes_(options.chunk_bytes),
      slab_shift_(static_cast<std::uint32_t>(
          std::countr_zero(kHugePageBytes / std::size_t{options.chunk_bytes}))) {
  slabs_.reserve(kSlabsMax);  // it never moves: other threads read queues meanwhile
  CHECK(std::has_single_bit(chunk_bytes_) && chunk_bytes_ >= 64 && chunk_bytes_ <= 65'536);
}

ModificationPool::~ModificationPool() {
  CHECK_MSG(used_chunks_ == 0, "modifications are still queued");
  for (std::byte* const slab : slabs_) free_huge(slab, kHugePageBytes);
}

std::uint32_t ModificationPool::new_chunk() {
  ++used_chunks_;
  if (free_ != 0) {
    const std::uint32_t number = free_;
    free_ = trailer_of(chunk_at(number)).next;
    // The next one is wanted soon, and has long been out of the processor's caches.
    if (free_ != 0) __builtin_prefetch(&trailer_of(chunk_at(free_)));
    return number;
  }
  if ((fresh_ - 1) >> slab_shift_ == slabs_.size()) {
    std::byte* const slab = allocate_huge(kHugePageBytes);
    if (slab == nullptr) throw std::bad_alloc();
    CHECK_MSG(slabs_.size() < kSlabsMax, "modifications take more than 64 GiB");
    slabs_.push_back(slab);
  }
  return fresh_++;
}

void ModificationPool::append(ModificationQueue& queue, Modification modification) {
  CHECK(!modification.empty() && modification.size() <= modification_bytes_max());
  if (queue.tail_ == 0 || queue.tail_bytes_each_ != modification.size() ||
      sizeof(Trailer) + (queue.tail_count_ + std::size_t{1}) * modification.size() > chunk_bytes_) {
    const std::uint32_t number = new_chunk();
    if (queue.tail_ == 0) {
      queue.head_ = number;
      queue.generation_ = static_cast<std::uint32_t>(++generations_);
    } else {
      close_tail(queue, number);
    }
    queue.tail_ = number;
    queue.tail_bytes_each_ = static_cast<std::uint16_t>(modification.size());
    queue.tail_count_ = 0;
    ++queue.chunks_;
  }
  std::memcpy(end_of(queue), modification.data(), modification.size());
  ++queue.tail_count_;
  ++queue.count_;
}

void ModificationPool::splice(ModificationQueue& queue, ModificationQueue&& from) {
  if (from.empty()) return;
  if (queue.empty()) {
    queue = std::exchange(from, {});
    return;
  }
  close_tail(queue, from.head_);
  queue.tail_ = from.tail_;
  queue.tail_bytes_each_ = from.tail_bytes_each_;
  queue.tail_count_ = from.tail_count_;
  queue.count_ += from.count_;
  queue.chunks_ += from.chunks_;
  from = {};
}

// All its chunks at once: they are chained already.
void ModificationPool::clear(ModificationQueue& queue) {
  if (queue.empty()) return;
  close_tail(queue, free_);
  free_ = queue.head_;
  used_chunks_ -= queue.chunks_;
  queue = {};
}

}  // namespace mariner::index
