#include "proto/huge_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "proto/check.h"

namespace mariner {
namespace {

constexpr std::size_t kSmallest = 4096;
constexpr std::size_t kSizes = 10;  // 4 KiB to 2 MiB
constexpr std::size_t kFreeSlabsMax = 8;

// A huge page, aligned; the address space around it is given back.
std::byte* map_slab() {
  void* const all = ::mmap(nullptr, 2 * kHugePageBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(all);
  const std::size_t before =
      (kHugePageBytes - reinterpret_cast<std::uintptr_t>(begin)) & (kHugePageBytes - 1);
  std::byte* const slab = begin + before;
  if (before > 0) ::munmap(begin, before);
  ::munmap(slab + kHugePageBytes, kHugePageBytes - before);
  // Refused where there are none.
  static_cast<void>(::madvise(slab, kHugePageBytes, MADV_HUGEPAGE));
  return slab;
}

class Slabs {
 public:
  std::byte* allocate(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    std::vector<Slab*>& open = open_[size_index(bytes)];
    if (open.empty()) {
      Slab* const slab = new_slab(bytes);
      if (slab == nullptr) return nullptr;
      open.push_back(slab);
    }
    Slab& slab = *open.back();
    if (slab.free.size() == slab.pieces) --free_slabs_;
    const std::size_t piece = slab.free.back();
    slab.free.pop_back();
    if (slab.free.empty()) open.pop_back();
    return slab.base + piece * bytes;
  }

  void free(std::byte* memory, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    const auto found = slabs_.find(address & ~(kHugePageBytes - 1));
    CHECK(found != slabs_.end() && found->second->pieces == kHugePageBytes / bytes);
    Slab& slab = *found->second;
    std::vector<Slab*>& open = open_[size_index(bytes)];
    if (slab.free.empty()) open.push_back(&slab);
    slab.free.push_back(static_cast<std::uint16_t>((address & (kHugePageBytes - 1)) / bytes));
    if (slab.free.size() < slab.pieces) return;
    if (free_slabs_ < kFreeSlabsMax) {
      ++free_slabs_;
      return;
    }
    std::erase(open, &slab);
    ::munmap(slab.base, kHugePageBytes);
    slabs_.erase(found);
  }

  std::size_t bytes() {
    const std::lock_guard lock(mutex_);
    return slabs_.size() * kHugePageBytes;
  }

 private:
  struct Slab {
    std::byte* base = nullptr;
    std::size_t pieces = 0;
    std::vector<std::uint16_t> free;
  };

  static std::size_t size_index(std::size_t bytes) {
    CHECK(std::has_single_bit(bytes) && bytes >= kSmallest && bytes <= kHugePageBytes);
    return static_cast<std::size_t>(std::countr_zero(bytes) - std::countr_zero(kSmallest));
  }

  Slab* new_slab(std::size_t bytes) {
    std::byte* const base = map_slab();
    if (base == nullptr) return nullptr;
    auto slab = std::make_unique<Slab>();
    slab->base = base;
    slab->pieces = kHugePageBytes / bytes;
    // In the order of addresses: what is allocated in a row lies in a row.
    for (std::size_t i = slab->pieces; i > 0; --i) {
      slab->free.push_back(static_cast<std::uint16_t>(i - 1));
    }
    ++free_slabs_;
    return (slabs_[reinterpret_cast<std::uintptr_t>(base)] = std::move(slab)).get();
  }

  std::mutex mutex_;
  std::unordered_map<std::uintptr_t, std::unique_ptr<Slab>> slabs_;  // by address
  std::array<std::vector<Slab*>, kSizes> open_;                      // those with free pieces
  std::size_t free_slabs_ = 0;                                       // nothing of them is in use
};

// Never destroyed: threads that end late still free.
Slabs& slabs() {
  static auto* const instance = new Slabs;
  return *instance;
}

}  // namespace

std::byte* allocate_huge(std::size_t bytes) { return slabs().allocate(bytes); }

void free_huge(std::byte* memory, std::size_t bytes) noexcept { slabs().free(memory, bytes); }

std::size_t huge_bytes() noexcept { return slabs().bytes(); }

}  // namespace mariner
