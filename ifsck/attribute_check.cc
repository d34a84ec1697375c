#include "ifsck/attribute_check.h"

#include <ext2fs/ext2fs.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "ifsck/ext_inode.h"
#include "proto/bytes.h"

namespace mariner::ifsck {
namespace {

constexpr std::size_t kHeadBytes = sizeof(ext2_ext_attr_header);
constexpr std::size_t kEntryBytes = sizeof(ext2_ext_attr_entry);
constexpr std::size_t kEndBytes = 4;  // zeros in place of an entry
static_assert(kHeadBytes == 32 && kEntryBytes == 16);

constexpr std::size_t kBlocksAt = 8;  // in a head
constexpr std::size_t kIndexAt = 1;   // in an entry
constexpr std::size_t kValueAt = 2;
constexpr std::size_t kValueInodeAt = 4;
constexpr std::size_t kValueBytesAt = 8;
constexpr std::size_t kHashAt = 12;

std::size_t rounded(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

class Attributes {
 public:
  // `bytes`: a multiple of four. Places of values count from `values_at` on.
  Attributes(std::span<const std::byte> bytes, std::size_t values_at)
      : words_(bytes.size() / 4), values_at_(values_at) {
    std::memcpy(words_.data(), bytes.data(), 4 * words_.size());
  }

  // The first entries are behind a magic number; what they take is counted, too.
  bool are_right_in_inode() {
    take(0, values_at_);
    std::size_t at = values_at_;
    std::size_t left = size() - values_at_;
    while (left >= kEntryBytes && !is_end(at)) {
      const std::size_t bytes = entry_bytes(at);
      if (bytes > left) return false;
      left -= bytes;
      const auto value = field<std::uint32_t>(at, kValueBytesAt);
      if (value > left || !take_entry(at)) return false;
      left -= value;
      at += bytes;
    }
    take(at, kEndBytes);
    return are_apart() && have_right_hashes(true);
  }

  bool are_right_in_block() {
    take(0, kHeadBytes);
    std::size_t at = kHeadBytes;
    while (at < size() && !is_end(at)) {
      if (size() - at < kEntryBytes || entry_bytes(at) > size() - at) return false;
      const auto value = field<std::uint32_t>(at, kValueBytesAt);
      if (field<std::uint8_t>(at, kIndexAt) == 0 || value > size() ||
          field<std::uint16_t>(at, kValueAt) + value > size() || !take_entry(at)) {
        return false;
      }
      at += entry_bytes(at);
    }
    take(at, kEndBytes);
    return are_apart() && have_right_hashes(false);
  }

 private:
  [[nodiscard]] std::size_t size() const { return 4 * words_.size(); }
  template <typename T>
  [[nodiscard]] T field(std::size_t entry, std::size_t at) const {
    return load_le<T>(std::as_bytes(std::span(words_)).data() + entry + at);
  }
  [[nodiscard]] bool is_end(std::size_t at) const { return words_[at / 4] == 0; }
  // With its name.
  [[nodiscard]] std::size_t entry_bytes(std::size_t at) const {
    return kEntryBytes + rounded(field<std::uint8_t>(at, 0));
  }

  void take(std::size_t begin, std::size_t bytes) { taken_.emplace_back(begin, begin + bytes); }
  // False: its value is an inode.
  bool take_entry(std::size_t at) {
    if (field<std::uint32_t>(at, kValueInodeAt) != 0) return false;
    take(at, entry_bytes(at));
    const auto value = field<std::uint32_t>(at, kValueBytesAt);
    if (value != 0) take(values_at_of(at), rounded(value));
    entries_.push_back(at);
    return true;
  }
  [[nodiscard]] std::size_t values_at_of(std::size_t at) const {
    return values_at_ + field<std::uint16_t>(at, kValueAt);
  }

  // All that is taken is there, and nothing of it twice.
  bool are_apart() {
    std::ranges::sort(taken_);
    const auto overlap = [](const auto& one, const auto& other) {
      return one.second > other.first;
    };
    return taken_.back().second <= size() &&
           std::ranges::adjacent_find(taken_, overlap) == taken_.end();
  }

  // (Kernels have made them of characters with a sign, and older ones none within inodes.)
  bool have_right_hashes(bool may_be_none) {
    return std::ranges::all_of(entries_, [&](std::size_t at) {
      auto* const entry = reinterpret_cast<ext2_ext_attr_entry*>(words_.data() + at / 4);
      const bool empty = field<std::uint32_t>(at, kValueBytesAt) == 0;
      const std::size_t value_at = empty ? at : values_at_of(at);
      void* const value = std::as_writable_bytes(std::span(words_)).data() + value_at;
      const auto said = field<std::uint32_t>(at, kHashAt);
      return (said == 0 && may_be_none) || said == ext2fs_ext_attr_hash_entry(entry, value) ||
             said == ext2fs_ext_attr_hash_entry_signed(entry, value);
    });
  }

  std::vector<std::uint32_t> words_;
  const std::size_t values_at_;
  std::vector<std::pair<std::size_t, std::size_t>> taken_;  // from, to before
  std::vector<std::size_t> entries_;
};

}  // namespace

bool has_right_attributes(InodeBytes inode) {
  const std::size_t room = inode.size() - EXT2_GOOD_OLD_INODE_SIZE;
  const std::size_t extra = ExtInode(inode).extra_bytes();
  if (room <= kEndBytes || extra >= room - kEndBytes || extra % 4 != 0) return true;
  const auto bytes = inode.subspan(EXT2_GOOD_OLD_INODE_SIZE + extra);
  if (load_le<std::uint32_t>(bytes.data()) != EXT2_EXT_ATTR_MAGIC) return true;
  return Attributes(bytes, kEndBytes).are_right_in_inode();
}

bool is_right_attribute_block(std::span<const std::byte> block) {
  return load_le<std::uint32_t>(block.data()) == EXT2_EXT_ATTR_MAGIC &&
         load_le<std::uint32_t>(block.data() + kBlocksAt) == 1 &&
         Attributes(block, 0).are_right_in_block();
}

}  // namespace mariner::ifsck
