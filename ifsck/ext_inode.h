// An inode's fields, as they stand in the inode table.
#pragma once

#include <ext2fs/ext2_fs.h>

#include <cstdint>
#include <span>
#include <string_view>

#include "ifsck/block_map.h"
#include "ifsck/ext_layout.h"
#include "proto/bytes.h"

namespace mariner::ifsck {

// Where they stand.
struct InodeAt {
  static constexpr std::size_t kMode = 0;
  static constexpr std::size_t kUser = 2;
  static constexpr std::size_t kSize = 4;
  static constexpr std::size_t kChanged = 12;
  static constexpr std::size_t kDeleted = 20;
  static constexpr std::size_t kGroup = 24;
  static constexpr std::size_t kLinks = 26;
  static constexpr std::size_t kSectors = 28;  // i_blocks
  static constexpr std::size_t kFlags = 32;
  static constexpr std::size_t kMap = 40;  // i_block: 15 numbers, or the root of an extent tree
  static constexpr std::size_t kMapBytes = 60;
  static constexpr std::size_t kGeneration = 100;
  static constexpr std::size_t kAttributes = 104;
  static constexpr std::size_t kSizeHigh = 108;
  static constexpr std::size_t kFragment = 112;
  static constexpr std::size_t kSectorsHigh = 116;
  static constexpr std::size_t kAttributesHigh = 118;
  static constexpr std::size_t kUserHigh = 120;
  static constexpr std::size_t kGroupHigh = 122;
  // Behind the first 128 bytes.
  static constexpr std::size_t kExtra = 128;
  static constexpr std::size_t kChangedExtra = 132;
  static constexpr std::size_t kProject = 156;
  static constexpr std::uint16_t kExtraUsual = 32;  // what kExtra has
};

// Behind what a number of a block can say, where blocks are not in extents.
inline constexpr FsBlock kNumbersEnd = FsBlock{1} << 32;

template <typename T>
void put_field(std::span<std::byte> inode, std::size_t at, T value) {
  store_le<T>(inode.data() + at, value);
}
inline void put_size(std::span<std::byte> inode, std::uint64_t size) {
  put_field(inode, InodeAt::kSize, static_cast<std::uint32_t>(size));
  put_field(inode, InodeAt::kSizeHigh, static_cast<std::uint32_t>(size >> 32));
}

class ExtInode {
 public:
  // At least 128 bytes, that stay.
  explicit ExtInode(InodeBytes bytes) : bytes_(bytes) {}

  [[nodiscard]] std::uint16_t mode() const { return field<std::uint16_t>(InodeAt::kMode); }
  // Of times when there were fragments.
  [[nodiscard]] bool has_fragment() const { return field<std::uint32_t>(InodeAt::kFragment) != 0; }
  // How far its fields go beyond the first 128 bytes; 0 where there are no more.
  [[nodiscard]] std::uint16_t extra_bytes() const {
    return bytes_.size() < 160 ? 0 : field<std::uint16_t>(InodeAt::kExtra);
  }
  // Seconds in the lower half, and what goes with them in the upper one.
  [[nodiscard]] std::uint64_t changed_at() const {
    const std::uint64_t seconds = field<std::uint32_t>(InodeAt::kChanged);
    if (extra_bytes() < InodeAt::kChangedExtra + 4 - InodeAt::kExtra) return seconds;
    return seconds | (std::uint64_t{field<std::uint32_t>(InodeAt::kChangedExtra)} << 32);
  }
  [[nodiscard]] bool has_index() const { return (flags() & EXT2_INDEX_FL) != 0; }
  [[nodiscard]] bool has_extents() const { return (flags() & EXT4_EXTENTS_FL) != 0; }
  [[nodiscard]] std::uint16_t links() const { return field<std::uint16_t>(InodeAt::kLinks); }
  [[nodiscard]] std::uint32_t deleted_at() const { return field<std::uint32_t>(InodeAt::kDeleted); }
  [[nodiscard]] std::uint32_t flags() const { return field<std::uint32_t>(InodeAt::kFlags); }
  [[nodiscard]] std::uint64_t size() const {
    const std::uint64_t low = field<std::uint32_t>(InodeAt::kSize);
    // (Of a directory the upper half means something else where files are small.)
    return low | (std::uint64_t{field<std::uint32_t>(InodeAt::kSizeHigh)} << 32);
  }
  // In blocks of 512 bytes, or of the file system's if in_large_blocks().
  [[nodiscard]] std::uint64_t blocks() const {
    return field<std::uint32_t>(InodeAt::kSectors) |
           (std::uint64_t{field<std::uint16_t>(InodeAt::kSectorsHigh)} << 32);
  }
  [[nodiscard]] bool in_large_blocks() const { return (flags() & EXT4_HUGE_FILE_FL) != 0; }
  // The block of its extended attributes; 0: it has none there.
  [[nodiscard]] FsBlock attributes() const {
    return field<std::uint32_t>(InodeAt::kAttributes) |
           (FsBlock{field<std::uint16_t>(InodeAt::kAttributesHigh)} << 32);
  }
  [[nodiscard]] bool has_inline_data() const { return (flags() & EXT4_INLINE_DATA_FL) != 0; }
  // What goes with it: the attribute "system.data", within the inode.
  [[nodiscard]] bool has_inline_attribute() const {
    constexpr std::uint32_t kMagic = 0xEA020000;
    constexpr std::size_t kHeadBytes = 16;  // of an entry
    constexpr std::uint8_t kSystem = 7;
    constexpr std::string_view kName = "data";
    std::size_t at = std::size_t{128} + extra_bytes();
    if (extra_bytes() == 0 || at + 4 > bytes_.size() || field<std::uint32_t>(at) != kMagic) {
      return false;
    }
    at += 4;
    while (at + kHeadBytes <= bytes_.size() && field<std::uint32_t>(at) != 0) {
      const auto name_bytes = field<std::uint8_t>(at);
      if (at + kHeadBytes + name_bytes > bytes_.size()) return false;
      const auto* const name = reinterpret_cast<const char*>(bytes_.data() + at + kHeadBytes);
      if (field<std::uint8_t>(at + 1) == kSystem && std::string_view(name, name_bytes) == kName) {
        return true;
      }
      at += (kHeadBytes + name_bytes + 3) / 4 * 4;
    }
    return false;
  }
  [[nodiscard]] bool is_directory() const { return LINUX_S_ISDIR(mode()); }
  // EXT2_FT_*; 0: of no kind that there is.
  [[nodiscard]] std::uint8_t type() const {
    switch (mode() & LINUX_S_IFMT) {
      case LINUX_S_IFREG: return EXT2_FT_REG_FILE;
      case LINUX_S_IFDIR: return EXT2_FT_DIR;
      case LINUX_S_IFCHR: return EXT2_FT_CHRDEV;
      case LINUX_S_IFBLK: return EXT2_FT_BLKDEV;
      case LINUX_S_IFIFO: return EXT2_FT_FIFO;
      case LINUX_S_IFSOCK: return EXT2_FT_SOCK;
      case LINUX_S_IFLNK: return EXT2_FT_SYMLINK;
      default: return EXT2_FT_UNKNOWN;
    }
  }
  [[nodiscard]] InodeBytes bytes() const { return bytes_; }

 private:
  template <typename T>
  [[nodiscard]] T field(std::size_t at) const {
    return load_le<T>(bytes_.data() + at);
  }
  InodeBytes bytes_;
};

}  // namespace mariner::ifsck
