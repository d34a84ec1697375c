#include "ifsck/directory_maker.h"

#include <algorithm>
#include <optional>

#include "ifsck/directory_block.h"
#include "proto/bytes.h"

namespace mariner::ifsck {
namespace {

constexpr std::size_t kHeadBytes = 8;
constexpr std::size_t kTailBytes = 12;
constexpr std::size_t kNewTypeAt = 7;

std::size_t need_of(std::string_view name) { return (kHeadBytes + name.size() + 3) / 4 * 4; }

// What a block has room for, before its checksum.
std::size_t usable(const MendWork& work) {
  return work.layout().block_bytes() - (work.context().checksums ? kTailBytes : 0);
}

void put_head(const MendWork& work, std::span<std::byte> at, std::size_t length, InodeNumber inode,
              std::uint8_t name_bytes, std::uint8_t type) {
  store_le(at.data(), inode);
  (void)ext2fs_set_rec_len(work.context().fs, static_cast<unsigned>(length),
                           reinterpret_cast<ext2_dir_entry*>(at.data()));
  store_le(at.data() + 6, name_bytes);
  store_le(at.data() + kNewTypeAt, type);
}

std::uint8_t type_if_any(const MendWork& work, std::uint8_t type) {
  return ext2fs_has_feature_filetype(work.context().fs->super) ? type : std::uint8_t{0};
}

// The place of the checksum, if there are any.
void put_tail(const MendWork& work, std::span<std::byte> bytes) {
  if (!work.context().checksums) return;
  ext2fs_initialize_dirent_tail(
      work.context().fs, reinterpret_cast<ext2_dir_entry_tail*>(bytes.data() + usable(work)));
}

}  // namespace

DirectoryMaker::DirectoryMaker(const MendWork& work)
    : work_(work), bytes_(work.layout().block_bytes()), end_(usable(work)) {}

bool DirectoryMaker::add(std::string_view name, const Named& named) {
  const std::size_t need = need_of(name);
  if (next_ + need > end_) return false;
  last_ = next_;
  const auto at = std::span(bytes_).subspan(next_);
  put_head(work_, at, need, named.inode, static_cast<std::uint8_t>(name.size()),
           type_if_any(work_, named.type));
  std::ranges::copy(std::as_bytes(std::span(name)), at.data() + kHeadBytes);
  next_ += need;
  return true;
}

std::vector<std::byte> DirectoryMaker::finish() {
  if (next_ == 0) {
    put_head(work_, bytes_, end_, 0, 0, 0);
  } else {
    (void)ext2fs_set_rec_len(work_.context().fs, static_cast<unsigned>(end_ - last_),
                             reinterpret_cast<ext2_dir_entry*>(bytes_.data() + last_));
  }
  put_tail(work_, bytes_);
  return bytes_;
}

void cut_directory_block(const MendWork& work, std::span<std::byte> bytes) {
  const std::size_t end = usable(work);
  std::size_t last = end;
  bool whole = false;
  for_each_entry(bytes, [&](const DirectoryEntry& entry) {
    if (entry.offset + need_of(entry.name) > end || whole) return;
    last = entry.offset;
    whole = entry.offset + entry.length >= end;
  });
  if (last == end) {
    std::ranges::fill(bytes, std::byte{});
    put_head(work, bytes, end, 0, 0, 0);
    last = 0;
  }
  put_tail(work, bytes);
  (void)ext2fs_set_rec_len(work.context().fs, static_cast<unsigned>(end - last),
                           reinterpret_cast<ext2_dir_entry*>(bytes.data() + last));
}

bool fit_name(const MendWork& work, std::span<std::byte> bytes, std::string_view name,
              const Named& named) {
  const std::size_t end = usable(work);
  const std::size_t need = need_of(name);
  std::optional<DirectoryEntry> room;
  for_each_entry(bytes, [&](const DirectoryEntry& entry) {
    const std::size_t taken = entry.inode == 0 ? 0 : need_of(entry.name);
    if (!room && entry.offset + entry.length <= end && entry.length >= taken + need) room = entry;
  });
  if (!room) return false;
  const std::size_t taken = room->inode == 0 ? 0 : need_of(room->name);
  const auto at = bytes.subspan(room->offset);
  if (taken > 0) {
    (void)ext2fs_set_rec_len(work.context().fs, static_cast<unsigned>(taken),
                             reinterpret_cast<ext2_dir_entry*>(at.data()));
  }
  const auto to = at.subspan(taken);
  put_head(work, to, room->length - taken, named.inode, static_cast<std::uint8_t>(name.size()),
           type_if_any(work, named.type));
  std::ranges::copy(std::as_bytes(std::span(name)), to.data() + kHeadBytes);
  return true;
}

std::vector<std::byte> make_first_block(const MendWork& work, InodeNumber directory,
                                        InodeNumber parent) {
  DirectoryMaker maker(work);
  maker.add(".", {directory, EXT2_FT_DIR});
  maker.add("..", {parent, EXT2_FT_DIR});
  return maker.finish();
}

Result<void> put_directory_block(MendWork& work, InodeNumber directory, FsBlock block,
                                 std::span<std::byte> bytes) {
  if (work.context().checksums) {
    // (Where there is no place for one, that is a finding.)
    (void)ext2fs_dir_block_csum_set(work.context().fs, directory,
                                    reinterpret_cast<ext2_dir_entry*>(bytes.data()));
  }
  return work.put_block(block, bytes);
}

}  // namespace mariner::ifsck
