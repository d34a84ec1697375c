// What libtsk has open, and what is asked of it: for the sources that read file systems with it.
#pragma once

#include <sys/stat.h>
#include <tsk/libtsk.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "uvfs/object_number.h"
#include "uvfs/tsk_file_system.h"

namespace mariner::uvfs::tsk {

using Kind = TskFileSystem::Kind;
using FilePtr = std::shared_ptr<TSK_FS_FILE>;

// 0: none that is shown.
inline std::uint16_t kind_bits(TSK_FS_META_TYPE_ENUM type) {
  switch (type) {
    case TSK_FS_META_TYPE_REG: return S_IFREG;
    case TSK_FS_META_TYPE_DIR: return S_IFDIR;
    case TSK_FS_META_TYPE_LNK: return S_IFLNK;
    case TSK_FS_META_TYPE_FIFO: return S_IFIFO;
    case TSK_FS_META_TYPE_CHR: return S_IFCHR;
    case TSK_FS_META_TYPE_BLK: return S_IFBLK;
    case TSK_FS_META_TYPE_SOCK: return S_IFSOCK;
    default: return 0;
  }
}

inline std::string_view name_of(const TSK_FS_ATTR& attribute) {
  return attribute.name == nullptr ? std::string_view() : attribute.name;
}
inline bool has(const TSK_FS_ATTR& attribute, TSK_FS_ATTR_FLAG_ENUM flag) {
  return (attribute.flags & flag) != 0;
}
inline std::uint64_t size_of(const TSK_FS_ATTR& attribute) {
  return static_cast<std::uint64_t>(std::max<TSK_OFF_T>(attribute.size, 0));
}

// Of an attribute, as far as libtsk can read it. False: not all of `to`.
inline bool read(const TSK_FS_ATTR& attribute, std::uint64_t offset, std::span<std::byte> to) {
  return to.empty() ||
         tsk_fs_attr_read(&attribute, static_cast<TSK_OFF_T>(offset),
                          reinterpret_cast<char*>(to.data()), to.size(),
                          TSK_FS_FILE_READ_FLAG_NONE) == static_cast<ssize_t>(to.size());
}

inline FilePtr open_file(TSK_FS_INFO* fs, ObjectNumber number) {
  return {tsk_fs_file_open_meta(fs, nullptr, shown_number(number)), [](TSK_FS_FILE* file) {
            if (file != nullptr) tsk_fs_file_close(file);
          }};
}

// Whether it is one of the file system's own, and the one that is meant.
inline bool is_there(const TSK_FS_FILE* file, ObjectNumber number, Kind kind) {
  if (file == nullptr || file->meta == nullptr) return false;
  const TSK_FS_META& meta = *file->meta;
  if ((meta.flags & TSK_FS_META_FLAG_ALLOC) == 0 || kind_bits(meta.type) == 0) return false;
  const ObjectNumber sequence = number >> kSequenceShift;
  return kind != Kind::kNtfs || sequence == 0 || sequence == meta.seq;
}

// Where its contents are: null, if there are none.
inline const TSK_FS_ATTR* contents_of(TSK_FS_FILE* file, Kind kind) {
  if (kind != Kind::kNtfs) return tsk_fs_file_attr_get(file);
  if (tsk_fs_file_attr_getsize(file) < 0 || file->meta->attr == nullptr) return nullptr;
  for (const TSK_FS_ATTR* each = file->meta->attr->head; each != nullptr; each = each->next) {
    if (has(*each, TSK_FS_ATTR_INUSE) && each->type == TSK_FS_ATTR_TYPE_NTFS_DATA &&
        name_of(*each).empty()) {
      return each;
    }
  }
  return nullptr;
}

// Of NTFS: a filter of the host's has to do with it.
inline bool has_reparse_point(TSK_FS_FILE* file, Kind kind) {
  if (kind != Kind::kNtfs || tsk_fs_file_attr_getsize(file) < 0) return false;
  if (file->meta->attr == nullptr) return false;
  for (const TSK_FS_ATTR* each = file->meta->attr->head; each != nullptr; each = each->next) {
    if (has(*each, TSK_FS_ATTR_INUSE) && each->type == TSK_FS_ATTR_TYPE_NTFS_REPARSE) return true;
  }
  return false;
}

// Contents that have names of their own, of NTFS: `visit(attribute)`.
template <typename Visit>
void for_each_stream(TSK_FS_FILE* file, Kind kind, Visit visit) {
  if (kind != Kind::kNtfs || tsk_fs_file_attr_getsize(file) < 0) return;
  if (file->meta->attr == nullptr) return;
  std::size_t streams = 0;
  for (const TSK_FS_ATTR* each = file->meta->attr->head; each != nullptr; each = each->next) {
    if (!has(*each, TSK_FS_ATTR_INUSE) || each->type != TSK_FS_ATTR_TYPE_NTFS_DATA) continue;
    if (name_of(*each).empty() || ++streams > TskFileSystem::kStreamsMax) continue;
    visit(*each);
  }
}

}  // namespace mariner::uvfs::tsk
