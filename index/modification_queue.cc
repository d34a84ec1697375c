#include "index/modification_queue.h"

#include <bit>
#include <cstring>
#include <new>
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
    free_ = header_of(chunk_at(number)).next;
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
  std::byte* chunk = queue.tail_ == 0 ? nullptr : chunk_at(queue.tail_);
  if (chunk == nullptr || header_of(chunk).bytes_each != modification.size() ||
      sizeof(Header) + (header_of(chunk).count + std::size_t{1}) * modification.size() >
          chunk_bytes_) {
    const std::uint32_t number = new_chunk();
    std::byte* const fresh = chunk_at(number);
    new (fresh) Header{0, static_cast<std::uint16_t>(modification.size()), 0};
    (chunk == nullptr ? queue.head_ : header_of(chunk).next) = number;
    queue.tail_ = number;
    chunk = fresh;
  }
  Header& header = header_of(chunk);
  std::memcpy(chunk + sizeof(Header) + std::size_t{header.count} * header.bytes_each,
              modification.data(), modification.size());
  ++header.count;
  ++queue.count_;
}

void ModificationPool::splice(ModificationQueue& queue, ModificationQueue&& from) {
  if (from.empty()) return;
  if (queue.empty()) {
    queue = std::exchange(from, {});
    return;
  }
  header_of(chunk_at(queue.tail_)).next = from.head_;
  queue.tail_ = from.tail_;
  queue.count_ += from.count_;
  from = {};
}

void ModificationPool::clear(ModificationQueue& queue) {
  for (std::uint32_t number = queue.head_; number != 0; --used_chunks_) {
    Header& header = header_of(chunk_at(number));
    const std::uint32_t next = header.next;
    header.next = std::exchange(free_, number);
    number = next;
  }
  queue = {};
}

}  // namespace mariner::index
