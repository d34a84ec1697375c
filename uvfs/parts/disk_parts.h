// What stands in front of file systems on a volume: tables of partitions (MBR, GPT) and volume
// groups of LVM2, as of one moment. Each part that is found is a volume of its own by PartPast.
//
// Volumes come from anybody: nothing that a table says is believed unless it is within the volume.
// What cannot be used is not there, and said with the reason. A table is read as Linux reads it:
// - GPT where the MBR protects one: the primary table, or the backup where that one's CRCs are
//   wrong; MBR with its logical partitions; neither: LVM2 on the volume as a whole, or a file
//   system.
// - LVM2 in partitions of any type. Logical volumes of linear segments whose physical volumes are
//   all here; of metadata that differ, the newest that is whole.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ifsck/past.h"
#include "proto/error.h"
#include "proto/units.h"
#include "uvfs/parts/part_contents.h"

namespace mariner::uvfs {

struct DiskPart {
  // Unique on the volume and fit for a path: "p1", "p5", numbered as Linux numbers them; "vg-lv",
  // written as in /dev/mapper; "whole" where there is no table.
  std::string name;
  std::string type;   // what the table says of it: "83 Linux", "EFI system", a GUID; "linear"
  std::string label;  // GPT's, in UTF-8, to be shown: it can be anything
  std::vector<ByteRange> extents;  // of the volume, in order; what PartPast::open() takes
  std::uint64_t bytes = 0;         // of all of them
  PartContents contents = PartContents::kNothing;
};

struct DiskParts {
  enum class Table : std::uint8_t { kNone, kMbr, kGpt, kLvm };
  // What a table has and `parts` has not.
  struct LeftOut {
    std::string name;
    std::string why;
  };
  static constexpr std::size_t kPartsMax = 2048;  // and as many left out

  Table table = Table::kNone;      // of the volume as a whole
  std::uint32_t sector_bytes = 0;  // of a table of partitions
  bool from_backup = false;        // a GPT whose primary table is damaged
  std::vector<DiskPart> parts;     // partitions by number, then logical volumes
  std::vector<LeftOut> left_out;
  std::vector<std::string> notes;  // what is wrong with tables

  // Null: there is none of that name.
  [[nodiscard]] const DiskPart* find(std::string_view name) const;
};

struct DiskPartsOptions {
  // Of the LUN, 512 or 4096, where that is known; 0: as the table looks.
  std::uint32_t sector_bytes = 0;
};

// Asks for some hundred blocks, and for LVM2's metadata. Errors are the past's; damage of what
// stands on the volume is none, and a table that the past cannot read whole (kCorrupt) is damaged
// where there is another copy of it.
[[nodiscard]] Result<DiskParts> read_parts(ifsck::Past& past, SequenceNumber at,
                                           const DiskPartsOptions& options);
[[nodiscard]] inline Result<DiskParts> read_parts(ifsck::Past& past, SequenceNumber at) {
  return read_parts(past, at, DiskPartsOptions{});
}

// "none", "MBR", "GPT", "LVM2".
[[nodiscard]] std::string_view table_name(DiskParts::Table table);

}  // namespace mariner::uvfs
