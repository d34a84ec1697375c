// The process's heap (glibc's).
#pragma once

#include <malloc.h>

#include <cstddef>

namespace mariner {

// From now on, freed memory is kept for what comes next, up to `most` bytes of it, and pieces below
// `single` bytes come from there: instead of being returned to the system, and faulted in again.
// Of the whole process; before its first thread begins.
inline void keep_freed_memory(std::size_t single, std::size_t most) {
  ::mallopt(M_MMAP_THRESHOLD, static_cast<int>(single));
  ::mallopt(M_TRIM_THRESHOLD, static_cast<int>(most));
}

}  // namespace mariner
