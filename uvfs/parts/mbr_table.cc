#include "uvfs/parts/mbr_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "proto/bytes.h"
#include "proto/check.h"
#include "uvfs/parts/part_contents.h"

namespace mariner::uvfs {
namespace {

constexpr std::uint32_t kFirstLogical = 5;
constexpr std::uint32_t kSmallSectorBytes = 512;
constexpr std::uint32_t kLargeSectorBytes = 4096;
constexpr std::size_t kTablesMax = 1024;  // of chains: some have no partition in them

constexpr std::pair<std::uint8_t, const char*> kTypes[] = {
    {0x01, "FAT12"},          {0x04, "FAT16"},        {0x06, "FAT16"},
    {0x07, "NTFS or exFAT"},  {0x0b, "FAT32"},        {0x0c, "FAT32"},
    {0x0e, "FAT16"},          {0x11, "hidden FAT12"}, {0x14, "hidden FAT16"},
    {0x16, "hidden FAT16"},   {0x17, "hidden NTFS"},  {0x1b, "hidden FAT32"},
    {0x1c, "hidden FAT32"},   {0x1e, "hidden FAT16"}, {0x27, "recovery"},
    {0x42, "dynamic disk"},   {0x82, "Linux swap"},   {0x83, "Linux"},
    {0x8e, "Linux LVM"},      {0xa5, "FreeBSD"},      {0xa6, "OpenBSD"},
    {0xa9, "NetBSD"},         {0xaf, "HFS"},          {0xbf, "Solaris"},
    {0xee, "protects a GPT"}, {0xef, "EFI system"},   {0xfb, "VMFS"},
    {0xfd, "Linux RAID"},
};

std::string type_text(std::uint8_t type) {
  const auto* const known =
      std::ranges::find(kTypes, type, &std::pair<std::uint8_t, const char*>::first);
  if (known == std::end(kTypes)) return fmt::format("{:02x}", type);
  return fmt::format("{:02x} {}", type, known->second);
}

// Follows the chains; each table of one has a partition, and where the next table is.
class LogicalPartitions {
 public:
  LogicalPartitions(ifsck::View& view, PartitionTable& table) : view_(view), table_(table) {}

  Result<void> add(const Mbr::Entry& extended) {
    for (std::uint64_t sector = extended.first;;) {
      const auto mbr = read(sector);
      if (!mbr) return mbr.error();
      if (!*mbr) return {};
      for (std::size_t i = 0; i < 4; ++i) add_partition((*mbr)->entries[i], i, sector, extended);
      const auto next = std::ranges::find_if((*mbr)->entries, [](const Mbr::Entry& each) {
        return each.is_used() && each.is_extended();
      });
      if (next == (*mbr)->entries.end()) return {};
      sector = std::uint64_t{extended.first} + next->first;
    }
  }

 private:
  // Nothing: the chain ends there.
  Result<std::optional<Mbr>> read(std::uint64_t sector) {
    if (sector >= view_.size_bytes() / table_.sector_bytes) {
      return end("{} is behind the volume's end", sector);
    }
    if (!seen_.insert(sector).second) return end("{} is part of a loop", sector);
    if (seen_.size() > kTablesMax) return end("{} is one too many", sector);
    std::array<std::byte, Mbr::kBytes> bytes;
    const auto read = view_.read({sector * table_.sector_bytes, bytes.size()}, bytes);
    if (!read) return read.error();
    auto mbr = Mbr::parse(bytes);
    if (!mbr) return end("{} has no signature", sector);
    return mbr;
  }
  std::optional<Mbr> end(fmt::format_string<std::uint64_t&> why, std::uint64_t sector) {
    table_.notes.push_back("a chain of logical partitions ends early: the table in sector " +
                           fmt::format(why, sector));
    return {};
  }
  void add_partition(const Mbr::Entry& entry, std::size_t slot, std::uint64_t sector,
                     const Mbr::Entry& extended) {
    if (!entry.is_used() || entry.is_extended()) return;
    const std::uint64_t first = sector + entry.first;
    // The last two are not for this: what stands there nevertheless is believed if it may be so.
    if (slot >= 2 && first + entry.sectors > std::uint64_t{extended.first} + extended.sectors) {
      return;
    }
    table_.partitions.push_back({.number = number_++,
                                 .type = type_text(entry.type),
                                 .first = first,
                                 .sectors = entry.sectors});
  }

  ifsck::View& view_;
  PartitionTable& table_;
  std::set<std::uint64_t> seen_;
  std::uint32_t number_ = kFirstLogical;
};

}  // namespace

std::optional<Mbr> Mbr::parse(std::span<const std::byte> bytes) {
  constexpr std::size_t kEntriesAt = 446;
  constexpr std::size_t kEntryBytes = 16;
  CHECK(bytes.size() >= kBytes);
  if (load_le<std::uint16_t>(bytes.data() + 510) != 0xaa55) return {};
  Mbr mbr;
  for (std::size_t i = 0; i < mbr.entries.size(); ++i) {
    const std::byte* const entry = bytes.data() + kEntriesAt + i * kEntryBytes;
    mbr.entries[i] = {load_le<std::uint8_t>(entry), load_le<std::uint8_t>(entry + 4),
                      load_le<std::uint32_t>(entry + 8), load_le<std::uint32_t>(entry + 12)};
  }
  return mbr;
}

bool Mbr::is_table() const {
  const auto may_be = [](const Entry& each) { return each.active == 0 || each.active == 0x80; };
  const auto is_one = [](const Entry& each) { return each.is_used() && each.type != 0; };
  return std::ranges::all_of(entries, may_be) && std::ranges::any_of(entries, is_one);
}

const Mbr::Entry* Mbr::protective() const {
  const auto found = std::ranges::find_if(entries, &Entry::protects_gpt);
  return found == entries.end() ? nullptr : &*found;
}

Result<PartitionTable> read_mbr(ifsck::View& view, const Mbr& mbr, std::uint32_t sector_bytes) {
  PartitionTable table{.sector_bytes = sector_bytes};
  LogicalPartitions logical(view, table);
  for (std::uint32_t i = 0; i < mbr.entries.size(); ++i) {
    const Mbr::Entry& each = mbr.entries[i];
    if (!each.is_used()) continue;
    if (each.is_extended()) {
      if (const auto added = logical.add(each); !added) return added.error();
    } else {
      table.partitions.push_back({.number = i + 1,
                                  .type = type_text(each.type),
                                  .first = each.first,
                                  .sectors = each.sectors});
    }
  }
  std::ranges::sort(table.partitions, {}, &TablePartition::number);
  return table;
}

Result<std::uint32_t> guess_sector_bytes(ifsck::View& view, const Mbr& mbr) {
  struct Place {
    std::uint32_t sector_bytes;
    bool extended;
    std::uint64_t begin;
    PartMap map;
  };
  std::vector<Place> places;
  std::vector<Lbn> blocks;
  for (const std::uint32_t sector_bytes : {kSmallSectorBytes, kLargeSectorBytes}) {
    for (const Mbr::Entry& each : mbr.entries) {
      const std::uint64_t begin = std::uint64_t{each.first} * sector_bytes;
      if (!each.is_used() || begin >= view.size_bytes()) continue;
      const ByteRange range{
          begin, std::min(std::uint64_t{each.sectors} * sector_bytes, view.size_bytes() - begin)};
      auto map = PartMap::of({&range, 1}, view.size_bytes());
      CHECK(map.has_value());
      add_contents_blocks(*map, blocks);
      places.push_back({sector_bytes, each.is_extended(), begin, std::move(*map)});
    }
  }
  if (const auto done = view.prefetch(blocks); !done) return done.error();
  std::size_t known_small = 0;
  std::size_t known_large = 0;
  for (const Place& each : places) {
    const auto contents = guess_contents(view, each.map);
    if (!contents) return contents.error();
    std::array<std::byte, Mbr::kBytes> bytes;
    if (const auto read = view.read({each.begin, bytes.size()}, bytes); !read) return read.error();
    if (*contents == PartContents::kNothing && !(each.extended && Mbr::parse(bytes))) continue;
    ++(each.sector_bytes == kSmallSectorBytes ? known_small : known_large);
  }
  return known_large > known_small ? kLargeSectorBytes : kSmallSectorBytes;
}

}  // namespace mariner::uvfs
