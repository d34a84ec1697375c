#include "uvfs/parts/disk_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "ifsck/overlay.h"
#include "ifsck/view.h"
#include "proto/check.h"
#include "uvfs/parts/gpt_table.h"
#include "uvfs/parts/lvm_label.h"
#include "uvfs/parts/lvm_parts.h"
#include "uvfs/parts/mbr_table.h"
#include "uvfs/parts/partition_table.h"

namespace mariner::uvfs {
namespace {

constexpr std::uint32_t kSectorBytes[] = {512, 4096};
constexpr std::uint64_t kGptBytes = 128 * 128 + 2 * 4096;  // that most have at both ends
constexpr std::size_t kCachedBlocksMax = 16 * 1024;        // 64 MiB

class Reader {
 public:
  Reader(ifsck::View& view, const DiskPartsOptions& options) : view_(view), options_(options) {}

  Result<DiskParts> run() {
    if (auto done = prefetch_tables(); !done) return done.error();
    auto table = read_table();
    if (!table) return table.error();
    if (*table) {
      add_partitions(**table);
    } else {
      add_whole();
    }
    if (auto done = add_volumes(); !done) return done.error();
    return std::move(out_);
  }

 private:
  Result<void> prefetch_tables() {
    const std::uint64_t bytes = std::min(view_.size_bytes(), kGptBytes);
    std::vector<Lbn> blocks;
    for (const std::uint64_t begin : {std::uint64_t{0}, view_.size_bytes() - bytes}) {
      const BlockRange range = ByteRange{begin, bytes}.covering_blocks();
      for (Lbn lbn = range.first; lbn < range.end(); lbn = lbn + BlockCount{1}) {
        blocks.push_back(lbn);
      }
    }
    return view_.prefetch(blocks);
  }

  // Nothing: the volume has none.
  Result<std::optional<PartitionTable>> read_table() {
    std::array<std::byte, Mbr::kBytes> sector{};
    if (view_.size_bytes() < sector.size()) return std::optional<PartitionTable>();
    if (auto read = view_.read({0, sector.size()}, sector); !read) return read.error();
    const auto mbr = Mbr::parse(sector);
    if (!mbr || !mbr->is_table() || is_boot_sector(sector, *mbr)) {
      return std::optional<PartitionTable>();
    }
    auto table = mbr->protective() != nullptr ? read_guid_table(*mbr) : read_pc_table(*mbr);
    if (!table) return table.error();
    out_.notes = std::move(table->notes);
    out_.sector_bytes = table->sector_bytes;
    out_.from_backup = table->from_backup;
    return std::optional(std::move(*table));
  }
  // Those of file systems have the signature of a table, too, and anything in its place. That of
  // FAT may have a table which says that the whole is a partition (mkfs.fat makes it for Windows);
  // in one with another table it is what was there before.
  static bool is_boot_sector(std::span<const std::byte> sector, const Mbr& mbr) {
    const PartContents contents = guess_contents(sector);
    if (contents != PartContents::kFat) return contents != PartContents::kNothing;
    return std::ranges::any_of(
        mbr.entries, [](const Mbr::Entry& each) { return each.is_used() && each.first == 0; });
  }
  Result<PartitionTable> read_guid_table(const Mbr& mbr) {
    out_.table = DiskParts::Table::kGpt;
    const Mbr::Entry& protective = *mbr.protective();
    const std::span<const std::uint32_t> sizes =
        options_.sector_bytes == 0 ? std::span(kSectorBytes) : std::span(&options_.sector_bytes, 1);
    return read_gpt(view_,
                    {.sector_bytes = sizes,
                     .former_last = std::uint64_t{protective.first} + protective.sectors - 1});
  }
  Result<PartitionTable> read_pc_table(const Mbr& mbr) {
    out_.table = DiskParts::Table::kMbr;
    if (options_.sector_bytes != 0) return read_mbr(view_, mbr, options_.sector_bytes);
    const auto sector_bytes = guess_sector_bytes(view_, mbr);
    if (!sector_bytes) return sector_bytes.error();
    return read_mbr(view_, mbr, *sector_bytes);
  }

  void add_partitions(const PartitionTable& table) {
    for (const TablePartition& each : table.partitions) {
      if (out_.parts.size() + out_.left_out.size() == PartitionTable::kPartitionsMax) {
        out_.notes.push_back(fmt::format("the table has {} partitions: more than {} are not read",
                                         table.partitions.size(), PartitionTable::kPartitionsMax));
        return;
      }
      DiskPart part{
          .name = fmt::format("p{}", each.number), .type = each.type, .label = each.label};
      std::string why = find_range(each, table.sector_bytes, part);
      if (why.empty()) {
        out_.parts.push_back(std::move(part));
      } else {
        out_.left_out.push_back({std::move(part.name), std::move(why)});
      }
    }
  }
  // Why it is not to be had.
  [[nodiscard]] std::string find_range(const TablePartition& from, std::uint32_t sector_bytes,
                                       DiskPart& to) const {
    const std::uint64_t sectors = view_.size_bytes() / sector_bytes;
    if (from.sectors == 0) return "it ends before it begins";
    if (from.first < (out_.table == DiskParts::Table::kGpt ? 2 : 1)) {
      return fmt::format("it begins in sector {}, where the table is", from.first);
    }
    if (from.first > sectors || from.sectors > sectors - from.first) {
      return fmt::format("it has {} sectors from {} on, and the volume has {} (of {} bytes)",
                         from.sectors, from.first, sectors, sector_bytes);
    }
    const ByteRange range{from.first * sector_bytes, from.sectors * sector_bytes};
    for (const DiskPart& other : out_.parts) {
      const ByteRange& its = other.extents.front();
      if (range.offset < its.end() && its.offset < range.end()) {
        return fmt::format("it overlaps {}", other.name);
      }
    }
    to.extents = {range};
    to.bytes = range.length;
    return {};
  }

  void add_whole() {
    DiskPart whole{.name = "whole", .bytes = view_.size_bytes()};
    if (whole.bytes > 0) whole.extents = {{0, whole.bytes}};
    out_.parts.push_back(std::move(whole));
  }

  // Logical volumes of parts that are there.
  Result<void> add_volumes() {
    if (auto done = look_into_parts(0); !done) return done;
    std::vector<LvmPlace> places;
    for (const DiskPart& each : out_.parts) {
      // (Of a label that is damaged nothing is known, and it is said.)
      const bool may_be =
          each.contents == PartContents::kLvmMember || each.contents == PartContents::kNothing;
      if (may_be && !each.extents.empty()) places.push_back({each.name, each.extents.front()});
    }
    const std::size_t partitions = out_.parts.size();
    if (auto added = add_lvm_parts(view_, places, out_); !added) return added;
    if (out_.table == DiskParts::Table::kNone &&
        out_.parts.front().contents == PartContents::kLvmMember) {
      out_.table = DiskParts::Table::kLvm;
      out_.parts.erase(out_.parts.begin());
      return look_into_parts(0);
    }
    return look_into_parts(partitions);
  }

  // From the part `first` on.
  Result<void> look_into_parts(std::size_t first) {
    std::vector<PartMap> maps;
    std::vector<Lbn> blocks;
    for (std::size_t i = first; i < out_.parts.size(); ++i) {
      auto map = PartMap::of(out_.parts[i].extents, view_.size_bytes());
      CHECK(map.has_value());
      add_contents_blocks(*map, blocks);
      maps.push_back(std::move(*map));
    }
    if (auto done = view_.prefetch(blocks); !done) return done;
    for (std::size_t i = 0; i < maps.size(); ++i) {
      const auto contents = guess_contents(view_, maps[i]);
      if (!contents) return contents.error();
      out_.parts[first + i].contents = *contents;
    }
    return {};
  }

  ifsck::View& view_;
  const DiskPartsOptions options_;
  DiskParts out_;
};

}  // namespace

const DiskPart* DiskParts::find(std::string_view name) const {
  const auto found = std::ranges::find(parts, name, &DiskPart::name);
  return found == parts.end() ? nullptr : &*found;
}

Result<DiskParts> read_parts(ifsck::Past& past, SequenceNumber at,
                             const DiskPartsOptions& options) {
  if (options.sector_bytes != 0 && options.sector_bytes != 512 && options.sector_bytes != 4096) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("sectors have 512 or 4096 bytes, not {}", options.sector_bytes)};
  }
  ifsck::Overlay none;
  ifsck::View view(past, at, none, {.cached_blocks_max = kCachedBlocksMax});
  return Reader(view, options).run();
}

std::string_view table_name(DiskParts::Table table) {
  switch (table) {
    case DiskParts::Table::kNone: return "none";
    case DiskParts::Table::kMbr: return "MBR";
    case DiskParts::Table::kGpt: return "GPT";
    case DiskParts::Table::kLvm: return "LVM2";
  }
  return "";
}

}  // namespace mariner::uvfs
