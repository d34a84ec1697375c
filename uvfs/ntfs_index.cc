#include "uvfs/ntfs_index.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "proto/field.h"
#include "uvfs/ntfs_record.h"
#include "uvfs/utf16_text.h"

namespace mariner::uvfs {
namespace {

// $INDEX_ROOT, and a block ("INDX"): where the header of their entries stands.
constexpr std::size_t kRootHeader = 16;
constexpr std::size_t kBlockHeader = 24;
constexpr std::size_t kHeaderBytes = 16;
constexpr std::size_t kSectorBytes = 512;
// An entry, and the $FILE_NAME that is its key.
constexpr std::size_t kEntryBytes = 16;
constexpr std::size_t kNameBytes = 66;
constexpr std::size_t kFlagsAt = 56;
constexpr std::size_t kLengthAt = 64;
constexpr std::size_t kNamespaceAt = 65;
constexpr std::uint16_t kEndFlag = 2;
constexpr std::uint8_t kDosNamespace = 2;
constexpr std::uint32_t kDirectoryFlag = 0x1000'0000;
// Records below are $MFT and the like.
constexpr ObjectNumber kFirstUserRecord = 16;

constexpr std::uint32_t kIndexBlockBytesMax = 64 * 1024;

// Entries behind a header that stands at `header`. False: they do not end as such do.
bool add_entries(std::span<const std::byte> bytes, std::size_t header, std::vector<NtfsName>& to) {
  if (bytes.size() < header + kHeaderBytes) return false;
  bytes = bytes.subspan(header);
  const std::size_t end = std::min<std::size_t>(field<std::uint32_t>(bytes, 4), bytes.size());
  for (std::size_t at = field<std::uint32_t>(bytes, 0); at < end && end - at >= kEntryBytes;) {
    const auto entry = bytes.subspan(at, end - at);
    const std::size_t length = field<std::uint16_t>(entry, 8);
    if (length < kEntryBytes || length > entry.size()) return false;
    if ((field<std::uint16_t>(entry, 12) & kEndFlag) != 0) return true;
    at += length;
    const auto key = entry.first(length).subspan(kEntryBytes);
    if (key.size() < kNameBytes) continue;
    const std::size_t name_bytes = 2 * std::to_integer<std::size_t>(key[kLengthAt]);
    if (key.size() < kNameBytes + name_bytes) continue;
    const auto reference = field<std::uint64_t>(entry, 0);
    if (std::to_integer<std::uint8_t>(key[kNamespaceAt]) == kDosNamespace) continue;
    if (shown_number(reference) < kFirstUserRecord) continue;
    to.push_back({.name = utf8_of_utf16(key.subspan(kNameBytes, name_bytes)),
                  .reference = reference,
                  .directory = (field<std::uint32_t>(key, kFlagsAt) & kDirectoryFlag) != 0});
  }
  return false;
}

}  // namespace

std::optional<std::uint32_t> ntfs_index_block_bytes(std::span<const std::byte> root) {
  if (root.size() < kRootHeader + kHeaderBytes) return {};
  const auto bytes = field<std::uint32_t>(root, 8);
  if (bytes < kSectorBytes || bytes > kIndexBlockBytesMax || !std::has_single_bit(bytes)) return {};
  return bytes;
}

bool add_names_of_index_root(std::span<const std::byte> root, std::vector<NtfsName>& to) {
  return add_entries(root, kRootHeader, to);
}

bool add_names_of_index_block(std::span<std::byte> block, std::vector<NtfsName>& to) {
  return block.size() >= kSectorBytes && std::memcmp(block.data(), "INDX", 4) == 0 &&
         put_back_ntfs_ends(block) && add_entries(block, kBlockHeader, to);
}

}  // namespace mariner::uvfs
