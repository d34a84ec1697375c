// Memory for payloads of 64 KiB and more comes from huge pages, whose free pieces all threads
// share: one that is filled on one thread and let go on another would only pile up in a cache of
// the other. That for smaller ones comes from the C library's aligned allocator, through a cache of
// recently freed buffers per thread and size class, because 4 KiB payloads come and go with every
// command. So do the controls, which count who keeps them: thousands that are freed at once are
// thousands of small pieces for the allocator to join and to divide again. The caches are bounded
// (kCachedBytesMax and kCachedControlsMax per thread); sizes that are not used any more make room
// for those that are.
#include "proto/payload.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "proto/huge_pages.h"

namespace mariner {
namespace {

constexpr std::size_t kClassCount = 4;  // 4 KiB << 0 ... 4 KiB << 3 (32 KiB): those of the cache
constexpr std::size_t kHugeFrom = 64u << 10;  // smaller ones, long-lived, would pin slabs
static_assert((std::size_t{kBlockBytes} << kClassCount) == kHugeFrom);
constexpr std::size_t kCachedBytesMax = 128u << 20;
constexpr std::size_t kCachedControlsMax = kCachedBytesMax / kBlockBytes;

std::atomic<std::uint64_t> g_total_bytes{0};

std::size_t class_of(std::size_t capacity) {
  const std::size_t blocks = capacity >> kBlockShift;
  return std::has_single_bit(blocks) ? static_cast<std::size_t>(std::countr_zero(blocks))
                                     : kClassCount;
}

struct Cache {
  std::array<std::vector<std::byte*>, kClassCount> free;
  std::size_t cached_bytes = 0;
  bool alive = true;
  ~Cache() {
    alive = false;
    for (std::size_t i = 0; i < kClassCount; ++i) {
      for (std::byte* p : free[i]) std::free(p);
    }
  }
};

thread_local Cache t_cache;

// Sizes that slabs are cut into; larger ones are the C library's.
bool is_huge(std::size_t capacity) { return capacity >= kHugeFrom && capacity <= kHugePageBytes; }

std::byte* allocate_bytes(std::size_t capacity) {
  if (is_huge(capacity)) return allocate_huge(capacity);
  const std::size_t size_class = class_of(capacity);
  if (size_class < kClassCount && t_cache.alive && !t_cache.free[size_class].empty()) {
    std::byte* p = t_cache.free[size_class].back();
    t_cache.free[size_class].pop_back();
    t_cache.cached_bytes -= capacity;
    return p;
  }
  return static_cast<std::byte*>(std::aligned_alloc(kBlockBytes, capacity));
}

// As long as another class has more than this one.
void make_room(std::size_t size_class, std::size_t capacity) noexcept {
  while (t_cache.cached_bytes + capacity > kCachedBytesMax) {
    const auto bytes_of = [](std::size_t i) {
      return t_cache.free[i].size() * (std::size_t{kBlockBytes} << i);
    };
    std::size_t most = size_class;
    for (std::size_t i = 0; i < kClassCount; ++i) {
      if (bytes_of(i) > bytes_of(most)) most = i;
    }
    if (most == size_class) return;
    const std::size_t freed = std::size_t{kBlockBytes} << most;
    std::free(t_cache.free[most].back());
    t_cache.free[most].pop_back();
    t_cache.cached_bytes -= freed;
  }
}

void free_bytes(std::byte* p, std::size_t capacity) noexcept {
  if (is_huge(capacity)) return free_huge(p, capacity);
  const std::size_t size_class = class_of(capacity);
  if (size_class < kClassCount && t_cache.alive) make_room(size_class, capacity);
  if (size_class < kClassCount && t_cache.alive &&
      t_cache.cached_bytes + capacity <= kCachedBytesMax) {
    t_cache.free[size_class].push_back(p);
    t_cache.cached_bytes += capacity;
    return;
  }
  std::free(p);
}

}  // namespace

struct Payload::ControlCache {
  std::vector<Control*> free;
  bool alive = true;
  ~ControlCache() {
    alive = false;
    for (Control* control : free) delete control;
  }
};

thread_local Payload::ControlCache Payload::t_controls;

Payload::Control* Payload::new_control() {
  std::vector<Control*>& free = t_controls.free;
  if (!t_controls.alive || free.empty()) return new Control;
  Control* const control = free.back();
  free.pop_back();
  control->references.store(1, std::memory_order_relaxed);
  return control;
}

void Payload::free_control(Control* control) noexcept {
  if (!t_controls.alive || t_controls.free.size() == kCachedControlsMax) {
    delete control;
    return;
  }
  control->first_crc.reset();
  control->other_crcs = std::vector<std::optional<std::uint32_t>>();  // with its memory
  t_controls.free.push_back(control);
}

Payload Payload::allocate(std::size_t bytes) {
  const std::size_t blocks = (bytes + kBlockBytes - 1) >> kBlockShift;
  // Sizes up to 2 MiB are rounded up to a power of two: caches and slabs serve them again.
  const std::size_t rounded =
      blocks <= kHugePageBytes / kBlockBytes ? std::bit_ceil(blocks == 0 ? 1 : blocks) : blocks;
  Control* const control = new_control();
  control->size = bytes;
  control->capacity = rounded << kBlockShift;
  control->data = allocate_bytes(control->capacity);
  CHECK_MSG(control->data != nullptr, "out of memory for a payload");
  g_total_bytes.fetch_add(control->capacity, std::memory_order_relaxed);
  Payload payload;
  payload.control_ = control;
  return payload;
}

Payload Payload::zeroed(std::size_t bytes) {
  Payload payload = allocate(bytes);
  std::memset(payload.data(), 0, bytes);
  return payload;
}

Payload Payload::copy_of(std::span<const std::byte> bytes) {
  Payload payload = allocate(bytes.size());
  if (!bytes.empty()) std::memcpy(payload.data(), bytes.data(), bytes.size());
  return payload;
}

void Payload::set_block_crc(std::size_t index, std::uint32_t crc) {
  CHECK(index < size() / kBlockBytes);
  if (index == 0) {
    control_->first_crc = crc;
    return;
  }
  auto& crcs = control_->other_crcs;
  if (crcs.empty()) crcs.resize(size() / kBlockBytes - 1);
  crcs[index - 1] = crc;
}

void Payload::forget_block_crcs(std::size_t first, std::size_t last) {
  if (control_ == nullptr) return;
  if (first == 0 && last > 0) control_->first_crc.reset();
  auto& crcs = control_->other_crcs;
  for (std::size_t i = std::max<std::size_t>(first, 1); i < std::min(last, crcs.size() + 1); ++i) {
    crcs[i - 1].reset();
  }
}

std::uint64_t Payload::total_bytes() noexcept {
  return g_total_bytes.load(std::memory_order_relaxed);
}

void Payload::destroy(Control* control) noexcept {
  g_total_bytes.fetch_sub(control->capacity, std::memory_order_relaxed);
  free_bytes(control->data, control->capacity);
  free_control(control);
}

}  // namespace mariner
