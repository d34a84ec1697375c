// Blocks of directories, made: entries one behind the other, with a place for the checksum where
// there are any.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "ifsck/mend_work.h"
#include "proto/error.h"

namespace mariner::ifsck {

// What an entry names.
struct Named {
  InodeNumber inode = 0;  // 0: no entry
  std::uint8_t type = 0;  // EXT2_FT_*; not stored where the file system has none
};

class DirectoryMaker {
 public:
  // `work` outlives it.
  explicit DirectoryMaker(const MendWork& work);

  // False: it does not fit.
  bool add(std::string_view name, const Named& named);
  [[nodiscard]] std::vector<std::byte> finish();

 private:
  const MendWork& work_;
  std::vector<std::byte> bytes_;
  const std::size_t end_;
  std::size_t next_ = 0;
  std::size_t last_ = 0;
};

// The first block of an empty directory.
[[nodiscard]] std::vector<std::byte> make_first_block(const MendWork& work, InodeNumber directory,
                                                      InodeNumber parent);

// A block stays as it is up to its last good entry; what follows is free.
void cut_directory_block(const MendWork& work, std::span<std::byte> bytes);

// Where a block has room behind the name of another one. False: nowhere.
[[nodiscard]] bool fit_name(const MendWork& work, std::span<std::byte> bytes, std::string_view name,
                            const Named& named);

// Writes a block of a directory with its checksum.
[[nodiscard]] Result<void> put_directory_block(MendWork& work, InodeNumber directory, FsBlock block,
                                               std::span<std::byte> bytes);

}  // namespace mariner::ifsck
