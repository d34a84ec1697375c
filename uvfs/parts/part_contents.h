// What is in a part, by what stands at its beginning: a guess, to be shown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ifsck/view.h"
#include "proto/error.h"
#include "proto/units.h"
#include "uvfs/parts/part_map.h"

namespace mariner::uvfs {

enum class PartContents : std::uint8_t {
  kNothing,  // that is known here
  kExt,      // ext2, ext3, ext4
  kNtfs,
  kExfat,
  kFat,
  kLvmMember,  // a physical volume of LVM2
  kSwap,
  kXfs,
  kBtrfs,
  kLuks,
};

// "ext", "LVM2 member": as it is shown. Of kNothing: "".
[[nodiscard]] std::string_view contents_name(PartContents contents);

inline constexpr std::size_t kContentsBytes = (64 << 10) + kBlockBytes;  // that are looked at

// `head`: a part's first bytes, kContentsBytes or all that there are.
[[nodiscard]] PartContents guess_contents(std::span<const std::byte> head);
// A part may be empty. Errors: as the past says.
[[nodiscard]] Result<PartContents> guess_contents(ifsck::View& view, const PartMap& part);
// Blocks of the volume that this reads are added to those that are going to be read.
void add_contents_blocks(const PartMap& part, std::vector<Lbn>& to);

}  // namespace mariner::uvfs
