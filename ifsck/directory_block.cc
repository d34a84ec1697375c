#include "ifsck/directory_block.h"

#include "proto/bytes.h"

namespace mariner::ifsck {
namespace {

constexpr std::size_t kEntryHeadBytes = 8;

// Lengths are multiples of four; blocks of 64 KiB need two bits more than there are.
std::uint32_t length_of(std::uint16_t stored, std::size_t block_bytes) {
  if (block_bytes < 65536) return stored;
  if (stored == 0 || stored == 65535) return static_cast<std::uint32_t>(block_bytes);
  return (stored & 65532u) | ((stored & 3u) << 16);
}

}  // namespace

bool for_each_entry(std::span<const std::byte> block,
                    const std::function<void(const DirectoryEntry&)>& visit) {
  for (std::size_t at = 0; at < block.size();) {
    const std::span<const std::byte> rest = block.subspan(at);
    if (rest.size() < kEntryHeadBytes) return false;
    const std::uint32_t length = length_of(load_le<std::uint16_t>(rest.data() + 4), block.size());
    const auto name_bytes = load_le<std::uint8_t>(rest.data() + 6);
    if (length < kEntryHeadBytes || length % 4 != 0 || length > rest.size() ||
        kEntryHeadBytes + name_bytes > length) {
      return false;
    }
    const auto* const name = reinterpret_cast<const char*>(rest.data() + kEntryHeadBytes);
    visit({.offset = static_cast<std::uint32_t>(at),
           .length = length,
           .inode = load_le<std::uint32_t>(rest.data()),
           .type = load_le<std::uint8_t>(rest.data() + 7),
           .name = {name, name_bytes}});
    at += length;
  }
  return true;
}

}  // namespace mariner::ifsck
