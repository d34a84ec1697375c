#include "proto/huge_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "proto/check.h"

namespace mariner {
namespace {

constexpr std::size_t kSmallest = 4096;
constexpr std::size_t kSizes = 10;        // 4 KiB to 2 MiB
constexpr std::size_t kKeptAlways = 8;    // free slabs
constexpr std::size_t kKeptAtFirst = 64;  // and by trim()
constexpr std::size_t kTrimShare = 16;    // a sixteenth of those that were not needed, each time
constexpr std::size_t kTrimMax = 16;      // slabs: who trims has other things to do

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
      Slab* const slab = free_.empty() ? new_slab() : take_free();
      if (slab == nullptr) return nullptr;
      cut(*slab, bytes);
      open.push_back(slab);
    }
    Slab& slab = *open.back();
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
    std::erase(open, &slab);
    free_.push_back(&slab);
    if (free_.size() > kept_max_) give_back();
  }

  void keep(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    kept_max_ = std::max(kKeptAlways, bytes / kHugePageBytes);
    while (free_.size() > kept_max_) give_back();
  }

  void trim() {
    const std::lock_guard lock(mutex_);
    const std::size_t unused = std::exchange(fewest_free_, free_.size());
    if (unused <= kKeptAtFirst) return;
    const std::size_t share = (unused - kKeptAtFirst + kTrimShare - 1) / kTrimShare;
    for (std::size_t i = std::min(share, kTrimMax); i > 0; --i) give_back();
    fewest_free_ = free_.size();
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

  Slab* new_slab() {
    std::byte* const base = map_slab();
    if (base == nullptr) return nullptr;
    auto slab = std::make_unique<Slab>();
    slab->base = base;
    return (slabs_[reinterpret_cast<std::uintptr_t>(base)] = std::move(slab)).get();
  }

  // The one that was used last.
  Slab* take_free() {
    Slab* const slab = free_.back();
    free_.pop_back();
    fewest_free_ = std::min(fewest_free_, free_.size());
    return slab;
  }

  // In the order of addresses: what is allocated in a row lies in a row.
  static void cut(Slab& slab, std::size_t bytes) {
    slab.pieces = kHugePageBytes / bytes;
    slab.free.clear();
    for (std::size_t i = slab.pieces; i > 0; --i) {
      slab.free.push_back(static_cast<std::uint16_t>(i - 1));
    }
  }

  // To the system: the one that has not been used for longest.
  void give_back() {
    std::byte* const base = free_.front()->base;
    free_.pop_front();
    fewest_free_ = std::min(fewest_free_, free_.size());
    ::munmap(base, kHugePageBytes);
    slabs_.erase(reinterpret_cast<std::uintptr_t>(base));
  }

  std::mutex mutex_;
  std::unordered_map<std::uintptr_t, std::unique_ptr<Slab>> slabs_;  // by address
  std::array<std::vector<Slab*>, kSizes> open_;  // partly used, by the size of their pieces
  std::deque<Slab*> free_;                       // nothing of them is in use
  std::size_t kept_max_ = kKeptAtFirst;
  std::size_t fewest_free_ = 0;  // since the last trim()
};

// Never destroyed: threads that end late still free.
Slabs& slabs() {
  static auto* const instance = new Slabs;
  return *instance;
}

}  // namespace

std::byte* allocate_huge(std::size_t bytes) { return slabs().allocate(bytes); }

void free_huge(std::byte* memory, std::size_t bytes) noexcept { slabs().free(memory, bytes); }

void keep_huge(std::size_t bytes) { slabs().keep(bytes); }

void trim_huge() { slabs().trim(); }

std::size_t huge_bytes() noexcept { return slabs().bytes(); }

}  // namespace mariner
