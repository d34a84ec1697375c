// One look at an object of a file system that libtsk has open: TskFileSystem::look().
#pragma once

#include <cstdint>
#include <memory>

#include "proto/error.h"
#include "uvfs/tsk_file_system.h"

namespace mariner::uvfs::tsk {

// As it was opened.
struct Opened {
  TSK_FS_INFO* fs = nullptr;
  TskFileSystem::Kind kind{};
  std::uint64_t size_bytes = 0;  // of the volume
  // Of FAT and exFAT: where the numbers of entries begin, and clusters.
  std::uint64_t data = 0;  // byte of the volume
  std::uint64_t cluster_bytes = 0;
  [[nodiscard]] bool is_exfat() const;
};

// kLimit: it has more than one can have.
[[nodiscard]] Result<TskFileSystem::Look> look(const Opened& opened, ObjectNumber number);

}  // namespace mariner::uvfs::tsk
