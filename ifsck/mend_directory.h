// Directories: their blocks, holes, "." and "..", and entries; and names that come and go.
//
// A block that is none of a directory ends behind its last good entry, and is empty if it has none.
// An index goes where blocks are changed that it may describe: it is not needed, and names that go
// leave it as it is.
#pragma once

#include <functional>
#include <string_view>

#include "ifsck/directory_block.h"
#include "ifsck/mend_work.h"
#include "proto/error.h"

namespace mariner::ifsck {

// All findings about what is in directories. Errors: of the past alone.
[[nodiscard]] Result<void> mend_directories(MendWork& work);

// Of one directory: all entries for which `visit(entry)` is true are changed as it says in `inode`
// and `type`. "." and ".." of the first block are told, too. True: something was changed.
struct EntryChange {
  InodeNumber inode = 0;  // 0: no entry any more
  std::uint8_t type = 0;
};
struct PlacedEntry {
  InodeNumber inode = 0;
  std::uint8_t type = 0;
  std::string_view name;
  int dot = 0;  // 1: it is "."; 2: ".."; by its place
};
[[nodiscard]] Result<bool> change_entries(
    MendWork& work, InodeNumber directory,
    const std::function<std::optional<EntryChange>(const PlacedEntry&)>& visit);

// False: there is no room, and none to be had.
[[nodiscard]] Result<bool> add_name(MendWork& work, InodeNumber directory, std::string_view name,
                                    const EntryChange& entry);

// ".." is to be `parent`.
[[nodiscard]] Result<bool> set_parent(MendWork& work, InodeNumber directory, InodeNumber parent);

// The first block of an empty directory.
[[nodiscard]] std::vector<std::byte> make_first_block(const MendWork& work, InodeNumber directory,
                                                      InodeNumber parent);

// Writes a block of a directory with its checksum.
[[nodiscard]] Result<void> put_directory_block(MendWork& work, InodeNumber directory, FsBlock block,
                                               std::span<std::byte> bytes);

}  // namespace mariner::ifsck
