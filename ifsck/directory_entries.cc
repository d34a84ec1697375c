#include "ifsck/directory_entries.h"

#include <vector>

#include "ifsck/directory_block.h"
#include "ifsck/map_writer.h"
#include "ifsck/mend_inode.h"
#include "proto/bytes.h"

namespace mariner::ifsck {
namespace {

constexpr std::size_t kTypeAt = 7;

// What libext2fs tells of a directory within its inode.
struct Telling {
  const ChangeEntry* visit = nullptr;
  int index = 0;
  bool changed = false;
};

int tell(ext2_ino_t /*inode*/, int /*kind*/, ext2_dir_entry* entry, int /*offset*/, int /*bytes*/,
         char* /*buffer*/, void* to) {
  auto& telling = *static_cast<Telling*>(to);
  const int dot = telling.index < 2 ? telling.index + 1 : 0;
  ++telling.index;
  if (entry->inode == 0) return 0;
  const auto change = (*telling.visit)(
      {.inode = entry->inode,
       .type = static_cast<std::uint8_t>(ext2fs_dirent_file_type(entry)),
       .name = {entry->name, static_cast<std::size_t>(ext2fs_dirent_name_len(entry))},
       .dot = dot});
  if (!change) return 0;
  entry->inode = change->inode;
  ext2fs_dirent_set_file_type(entry, change->type);
  telling.changed = true;
  return DIRENT_CHANGED;
}

// Of one block.
Result<bool> change_block(MendWork& work, InodeNumber directory, const BlockMap::Run& block,
                          const ChangeEntry& visit) {
  auto bytes = work.context().read_block(block.physical);
  if (!bytes) return bytes.error();
  bool changed = false;
  int index = 0;
  for_each_entry(*bytes, [&](const DirectoryEntry& entry) {
    const int dot = block.logical == 0 && index < 2 ? index + 1 : 0;
    ++index;
    if (entry.inode == 0) return;
    const auto change =
        visit({.inode = entry.inode, .type = entry.type, .name = entry.name, .dot = dot});
    if (!change) return;
    store_le(bytes->data() + entry.offset, change->inode);
    store_le(bytes->data() + entry.offset + kTypeAt, change->type);
    changed = true;
  });
  if (!changed) return false;
  if (const auto put = put_directory_block(work, directory, block.physical, *bytes); !put) {
    return put.error();
  }
  return true;
}

// A directory gets one more block, with one name.
Result<bool> extend(MendWork& work, InodeNumber directory, const CheckedInode& checked,
                    std::string_view name, const Named& named) {
  const auto block = work.allocate(FsBlock{1} << 32);
  if (!block) return block.error();
  if (!*block) return false;
  DirectoryMaker maker(work);
  maker.add(name, named);
  std::vector<std::byte> bytes = maker.finish();
  if (const auto put = put_directory_block(work, directory, **block, bytes); !put) {
    return put.error();
  }
  std::vector<BlockMap::Run> runs = checked.map.runs;
  const std::uint64_t end = runs.empty() ? 0 : runs.back().logical + runs.back().count;
  runs.push_back({end, **block, 1, false});
  auto inode = work.inode(directory);
  if (!inode) return inode.error();
  if (const auto put = write_map(work, directory, *inode, runs, checked.map.nodes); !put) {
    return put.error();
  }
  if (const auto put = settle_inode(work, directory, *inode); !put) return put.error();
  return true;
}

}  // namespace

Result<bool> change_entries(MendWork& work, InodeNumber directory, const ChangeEntry& visit) {
  const auto checked = work.checked(directory);
  if (!checked) return checked.error();
  if (!checked->directory) return false;
  if (checked->inlined) {
    Telling telling{.visit = &visit};
    const errcode_t error = ext2fs_dir_iterate2(work.context().fs, directory,
                                                DIRENT_FLAG_INCLUDE_EMPTY, nullptr, tell, &telling);
    if (error == EIO) return Error{ErrorCode::kIo, "ext2/3/4: " + ext_error_text(error)};
    return telling.changed;
  }
  if (const auto done = work.prefetch(checked->map.runs); !done) return done.error();
  bool changed = false;
  for (const BlockMap::Run& run : checked->map.runs) {
    for (std::uint64_t i = 0; i < run.count; ++i) {
      const auto done = change_block(work, directory,
                                     {run.logical + i, run.physical + i, 1, run.unwritten}, visit);
      if (!done) return done;
      changed = changed || *done;
    }
  }
  return changed;
}

Result<bool> add_name(MendWork& work, InodeNumber directory, std::string_view name,
                      const Named& named) {
  const auto checked = work.checked(directory);
  if (!checked) return checked.error();
  if (checked->inlined || checked->map.runs.empty()) return false;
  for (const BlockMap::Run& run : checked->map.runs) {
    for (std::uint64_t i = 0; i < run.count; ++i) {
      auto bytes = work.context().read_block(run.physical + i);
      if (!bytes) return bytes.error();
      if (!fit_name(work, *bytes, name, named)) continue;
      const auto put = put_directory_block(work, directory, run.physical + i, *bytes);
      if (!put) return put.error();
      return true;
    }
  }
  return extend(work, directory, *checked, name, named);
}

Result<bool> set_parent(MendWork& work, InodeNumber directory, InodeNumber parent) {
  return change_entries(work, directory, [&](const PlacedEntry& entry) -> std::optional<Named> {
    if (entry.dot != 2 || entry.inode == parent) return std::nullopt;
    return Named{parent, entry.type};
  });
}

}  // namespace mariner::ifsck
