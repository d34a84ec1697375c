// The label of a physical volume of LVM2, and the areas with its metadata: binary, with CRCs.
//
// The label is in one of the first four sectors (of 512 bytes, whatever the disk's have) and says
// where metadata areas are: a header, and behind it a ring into which texts are written, each
// behind the one before. The header says where the newest is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ifsck/view.h"
#include "proto/error.h"
#include "proto/units.h"
#include "uvfs/parts/part_map.h"

namespace mariner::uvfs {

inline constexpr std::uint64_t kLvmSectorBytes = 512;
inline constexpr std::size_t kLvmLabelBytes = 4 * kLvmSectorBytes;  // where it is searched
inline constexpr std::size_t kLvmAreaHeaderBytes = 512;
inline constexpr std::uint64_t kLvmTextBytesMax = 4 << 20;  // LVM2 makes areas of 1 MiB

struct LvmLabel {
  std::string id;                         // of the physical volume: 32 characters
  std::vector<ByteRange> metadata_areas;  // of the physical volume; whatever it says
};

// `head`: the first kLvmLabelBytes, or all that there are. kNotFound; kCorrupt: there is one, and
// it is damaged.
[[nodiscard]] Result<LvmLabel> parse_lvm_label(std::span<const std::byte> head);

// Where an area's header says that the newest text is.
struct LvmTextPlace {
  std::vector<ByteRange> pieces;  // of the physical volume, in order: it may go round the ring
  std::uint32_t crc = 0;
};
// `bytes`: kLvmAreaHeaderBytes from `area`'s beginning on. Nothing: it has no text, or is not to be
// used. kCorrupt.
[[nodiscard]] Result<std::optional<LvmTextPlace>> parse_lvm_area(std::span<const std::byte> bytes,
                                                                 ByteRange area);

// The newest text in an area of `member`, a physical volume. Nothing: there is none. kCorrupt;
// others: as the past says.
[[nodiscard]] Result<std::optional<std::string>> read_lvm_text(ifsck::View& view,
                                                               const PartMap& member,
                                                               ByteRange area);

}  // namespace mariner::uvfs
