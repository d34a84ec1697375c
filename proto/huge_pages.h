// Memory in huge pages, for buffers that disks read and write.
//
// What lies together in such memory lies together for the device, too: a write of 128 KiB is one
// segment instead of 32, and costs kernel, driver and device a fraction (measured on a virtio disk:
// 2 MiB 690 us instead of 960, 128 KiB 136 us instead of 151). Where the system has no huge pages
// the memory is as good as any other.
//
// Pieces of one size share a slab. A slab whose pieces are all free goes back to the system, but
// for as many as may be kept: to get one, and to touch it for the first time, costs from 0.3 ms (it
// is zeroed) to 5 ms (in a virtual machine whose host gives out memory when it is touched).
// Thread-safe: a lock is taken for each piece, so pieces should be worth it.
#pragma once

#include <cstddef>

namespace mariner {

inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

// Uninitialised memory, aligned to its size: a power of two from 4 KiB to kHugePageBytes. Null when
// the system has none.
[[nodiscard]] std::byte* allocate_huge(std::size_t bytes);
// With the size that it was allocated with.
void free_huge(std::byte* memory, std::size_t bytes) noexcept;

// So many bytes of free slabs, in all, are kept from now on: at first 128 MiB, never less than 16.
void keep_huge(std::size_t bytes);
// To be called each second by who keeps more than 128 MiB: gives back a little of what is over that
// and has not been needed since the last call.
void trim_huge();

// What the process holds in slabs, free pieces included.
[[nodiscard]] std::size_t huge_bytes() noexcept;

}  // namespace mariner
