#include "uvfs/parts/part_contents.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "proto/bytes.h"
#include "proto/field.h"
#include "uvfs/parts/lvm_label.h"

namespace mariner::uvfs {
namespace {

using Bytes = std::span<const std::byte>;

// What is looked at: superblocks, and swap of machines with pages of 4 KiB; superblocks of Btrfs,
// and swap where pages have 64 KiB.
constexpr ByteRange kWindows[] = {{0, 2 * kBlockBytes},
                                  {kContentsBytes - 2 * kBlockBytes, 2 * kBlockBytes}};

bool has(Bytes head, std::size_t at, std::string_view magic) {
  return head.size() >= at + magic.size() &&
         std::ranges::equal(head.subspan(at, magic.size()), as_byte_span(magic));
}

bool is_boot_sector(Bytes head) {
  return head.size() >= 512 && field<std::uint16_t>(head, 510) == 0xaa55;
}

bool is_ext(Bytes head) {
  constexpr std::size_t kSuper = 1024;
  constexpr std::uint32_t kLogBlockSizeMax = 6;
  return head.size() >= kSuper + 1024 && field<std::uint16_t>(head, kSuper + 56) == 0xef53 &&
         field<std::uint32_t>(head, kSuper + 24) <= kLogBlockSizeMax;
}

// It has no magic: what its boot sector says of it makes sense.
bool is_fat(Bytes head) {
  if (!is_boot_sector(head)) return false;
  const auto jump = field<std::uint8_t>(head, 0);
  const auto sector_bytes = field<std::uint16_t>(head, 11);
  const auto cluster_sectors = field<std::uint8_t>(head, 13);
  const auto reserved = field<std::uint16_t>(head, 14);
  const auto tables = field<std::uint8_t>(head, 16);
  const auto media = field<std::uint8_t>(head, 21);
  const bool has_tables =
      field<std::uint16_t>(head, 22) != 0 || field<std::uint32_t>(head, 36) != 0;
  const bool has_sectors =
      field<std::uint16_t>(head, 19) != 0 || field<std::uint32_t>(head, 32) != 0;
  return (jump == 0xeb || jump == 0xe9) && std::has_single_bit(sector_bytes) &&
         sector_bytes >= 512 && sector_bytes <= 4096 && std::has_single_bit(cluster_sectors) &&
         reserved != 0 && (tables == 1 || tables == 2) && (media == 0xf0 || media >= 0xf8) &&
         has_tables && has_sectors;
}

// At the end of the first page.
bool is_swap(Bytes head) {
  for (const std::size_t page : {4u << 10, 8u << 10, 64u << 10}) {
    for (const std::string_view magic : {"SWAPSPACE2", "SWAP-SPACE"}) {
      if (has(head, page - magic.size(), magic)) return true;
    }
  }
  return false;
}

}  // namespace

std::string_view contents_name(PartContents contents) {
  switch (contents) {
    case PartContents::kNothing: return "";
    case PartContents::kExt: return "ext";
    case PartContents::kNtfs: return "NTFS";
    case PartContents::kExfat: return "exFAT";
    case PartContents::kFat: return "FAT";
    case PartContents::kLvmMember: return "LVM2 member";
    case PartContents::kSwap: return "swap";
    case PartContents::kXfs: return "XFS";
    case PartContents::kBtrfs: return "Btrfs";
    case PartContents::kLuks: return "LUKS";
  }
  return "";
}

// What is made by overwriting the least comes first; FAT, which is told by the least, last.
PartContents guess_contents(Bytes head) {
  if (has(head, 0, "LUKS\xba\xbe")) return PartContents::kLuks;
  if (parse_lvm_label(head)) return PartContents::kLvmMember;
  if (has(head, 0, "XFSB")) return PartContents::kXfs;
  if (is_boot_sector(head) && has(head, 3, "NTFS    ")) return PartContents::kNtfs;
  if (is_boot_sector(head) && has(head, 3, "EXFAT   ")) return PartContents::kExfat;
  if (is_ext(head)) return PartContents::kExt;
  if (has(head, (64 << 10) + 64, "_BHRfS_M")) return PartContents::kBtrfs;
  if (is_swap(head)) return PartContents::kSwap;
  if (is_fat(head)) return PartContents::kFat;
  return PartContents::kNothing;
}

Result<PartContents> guess_contents(ifsck::View& view, const PartMap& part) {
  std::vector<std::byte> head(std::min<std::uint64_t>(kContentsBytes, part.bytes()));
  for (const ByteRange& window : kWindows) {
    if (window.offset >= head.size()) continue;
    std::byte* to = head.data() + window.offset;
    Result<void> read;
    const std::uint64_t length = std::min(window.length, head.size() - window.offset);
    part.for_each_piece({window.offset, length}, [&](ByteRange piece) {
      if (read) read = view.read(piece, {to, piece.length});
      to += piece.length;
    });
    if (!read) return read.error();
  }
  return guess_contents(head);
}

void add_contents_blocks(const PartMap& part, std::vector<Lbn>& to) {
  for (const ByteRange& window : kWindows) {
    if (window.offset >= part.bytes()) continue;
    const std::uint64_t length = std::min(window.length, part.bytes() - window.offset);
    part.for_each_piece({window.offset, length}, [&](const ByteRange& piece) {
      const BlockRange blocks = piece.covering_blocks();
      for (Lbn lbn = blocks.first; lbn < blocks.end(); lbn = lbn + BlockCount{1}) to.push_back(lbn);
    });
  }
}

}  // namespace mariner::uvfs
