#include "uvfs/parts/gpt_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proto/bytes.h"
#include "proto/field.h"
#include "uvfs/parts/crc32.h"

namespace mariner::uvfs {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint64_t kSignature = 0x5452415020494645;  // "EFI PART"
constexpr std::uint32_t kHeaderBytesMin = 92;
constexpr std::uint32_t kEntryBytesMin = 128;
constexpr std::uint64_t kEntriesBytesMax = 1 << 20;  // 128 entries have 16 KiB
constexpr std::size_t kGuidBytes = 16;
constexpr std::size_t kLabelUnits = 36;

constexpr std::pair<const char*, const char*> kTypes[] = {
    {"C12A7328-F81F-11D2-BA4B-00A0C93EC93B", "EFI system"},
    {"21686148-6449-6E6F-744E-656564454649", "BIOS boot"},
    {"E3C9E316-0B5C-4DB8-817D-F92DF00215AE", "Microsoft reserved"},
    {"EBD0A0A2-B9E5-4433-87C0-68B6B72699C7", "Microsoft basic data"},
    {"DE94BBA4-06D1-4D40-A16A-BFD50179D6AC", "Windows recovery"},
    {"5808C8AA-7E8F-42E0-85D2-E1E90434CFB3", "Windows LDM metadata"},
    {"AF9B60A0-1431-4F62-BC68-3311714A69AD", "Windows LDM data"},
    {"0FC63DAF-8483-4772-8E79-3D69D8477DE4", "Linux"},
    {"4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709", "Linux root (x86-64)"},
    {"B921B045-1DF0-41C3-AF44-4C6F280D3FAE", "Linux root (arm64)"},
    {"933AC7E1-2EB4-4F13-B844-0E14E2AEF915", "Linux home"},
    {"BC13C2FF-59E6-4262-A352-B275FD6F7172", "Linux extended boot"},
    {"0657FD6D-A4AB-43C4-84E5-0933C84B4F4F", "Linux swap"},
    {"E6D6D379-F507-44C2-A23C-238F2A3DF928", "Linux LVM"},
    {"A19D880F-05FC-4D3B-A006-743F0F84911E", "Linux RAID"},
    {"CA7D7CCB-63ED-4C53-861C-1742536059CC", "LUKS"},
};

// The first three of its numbers are little endian.
std::string guid_text(Bytes guid) {
  std::string text = fmt::format("{:08X}-{:04X}-{:04X}-", field<std::uint32_t>(guid, 0),
                                 field<std::uint16_t>(guid, 4), field<std::uint16_t>(guid, 6));
  for (std::size_t i = 8; i < kGuidBytes; ++i) {
    if (i == 10) text += '-';
    text += fmt::format("{:02X}", std::to_integer<unsigned>(guid[i]));
  }
  return text;
}

std::string type_text(Bytes guid) {
  std::string text = guid_text(guid);
  for (const auto& [type, name] : kTypes) {
    if (text == type) return name;
  }
  return text;
}

void append_utf8(std::uint32_t code, std::string& to) {
  constexpr std::uint32_t kReplacement = 0xfffd;
  if (code < 0x20 || code == 0x7f || (code >= 0xd800 && code < 0xe000)) code = kReplacement;
  const auto put = [&to](std::uint32_t byte) { to += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      put(0xe0 | code >> 12);
    } else {
      put(0xf0 | code >> 18);
      put(0x80 | (code >> 12 & 0x3f));
    }
    put(0x80 | (code >> 6 & 0x3f));
  }
  put(0x80 | (code & 0x3f));
}

// UTF-16; what is none, and what would move a terminal's cursor, is replaced.
std::string label_text(Bytes bytes) {
  std::array<std::uint16_t, kLabelUnits + 1> units{};
  for (std::size_t i = 0; i < kLabelUnits; ++i) units[i] = field<std::uint16_t>(bytes, 2 * i);
  std::string text;
  for (std::size_t i = 0; units[i] != 0; ++i) {
    std::uint32_t code = units[i];
    if (code >= 0xd800 && code < 0xdc00 && units[i + 1] >= 0xdc00 && units[i + 1] < 0xe000) {
      code = 0x10000 + ((code - 0xd800) << 10) + (units[++i] - 0xdc00u);
    }
    append_utf8(code, text);
  }
  return text;
}

// A table, primary or backup, whose header is in a certain sector.
class Table {
 public:
  Table(ifsck::View& view, std::uint32_t sector_bytes, std::uint64_t sector)
      : view_(view), sector_bytes_(sector_bytes), sector_(sector) {}

  // kCorrupt: it is damaged, or not there.
  Result<PartitionTable> read() {
    if (sector_ >= sectors()) return damage("is behind the volume's end");
    std::vector<std::byte> header(sector_bytes_);
    if (auto done = view_.read({sector_ * sector_bytes_, header.size()}, header); !done) {
      return done.error();
    }
    if (field<std::uint64_t>(header, 0) != kSignature) return damage("has no signature");
    const auto header_bytes = field<std::uint32_t>(header, 12);
    if (header_bytes < kHeaderBytesMin || header_bytes > sector_bytes_) {
      return damage(fmt::format("says that it has {} bytes", header_bytes));
    }
    const auto crc = field<std::uint32_t>(header, 16);
    store_le(header.data() + 16, std::uint32_t{0});
    if (crc32(std::span(header).first(header_bytes)) != crc) return damage("has another CRC");
    const auto own = field<std::uint64_t>(header, 24);
    if (own != sector_) return damage(fmt::format("says that it is in sector {}", own));
    return read_entries(header);
  }

 private:
  [[nodiscard]] std::uint64_t sectors() const { return view_.size_bytes() / sector_bytes_; }
  [[nodiscard]] Error damage(std::string_view what) const {
    return {ErrorCode::kCorrupt,
            fmt::format("the header in sector {} (of {} bytes) {}", sector_, sector_bytes_, what)};
  }

  Result<PartitionTable> read_entries(Bytes header) {
    const auto first = field<std::uint64_t>(header, 72);
    const auto count = field<std::uint32_t>(header, 80);
    const auto each = field<std::uint32_t>(header, 84);
    const std::uint64_t bytes = std::uint64_t{count} * each;
    if (each < kEntryBytesMin || each % 8 != 0 || bytes > kEntriesBytesMax) {
      return damage(fmt::format("says that there are {} entries of {} bytes", count, each));
    }
    const std::uint64_t needed = (bytes + sector_bytes_ - 1) / sector_bytes_;
    if (first > sectors() || needed > sectors() - first) {
      return damage(fmt::format("says that entries begin in sector {}", first));
    }
    std::vector<std::byte> entries(bytes);
    if (auto done = view_.read({first * sector_bytes_, bytes}, entries); !done) {
      return done.error();
    }
    if (crc32(entries) != field<std::uint32_t>(header, 88)) {
      return damage("is right, but its entries have another CRC");
    }
    PartitionTable table{.sector_bytes = sector_bytes_};
    for (std::uint32_t i = 0; i < count; ++i) {
      add(Bytes(entries).subspan(std::size_t{i} * each, each), i + 1, table);
    }
    return table;
  }

  static void add(Bytes entry, std::uint32_t number, PartitionTable& table) {
    if (all_zero(entry.first(kGuidBytes))) return;
    const auto first = field<std::uint64_t>(entry, 32);
    const auto last = field<std::uint64_t>(entry, 40);
    // (One that ends before it begins has none.)
    table.partitions.push_back({.number = number,
                                .type = type_text(entry.first(kGuidBytes)),
                                .label = label_text(entry.subspan(56, 2 * kLabelUnits)),
                                .first = first,
                                .sectors = last < first ? 0 : last - first + 1});
  }

  ifsck::View& view_;
  const std::uint32_t sector_bytes_;
  const std::uint64_t sector_;
};

struct Place {
  std::uint32_t sector_bytes;
  std::uint64_t sector;
};

// The first that is good; nothing: none is. What is wrong with those that are none is noted.
Result<std::optional<PartitionTable>> read_any(ifsck::View& view, std::span<const Place> places,
                                               std::vector<std::string>& notes) {
  for (const Place& each : places) {
    auto table = Table(view, each.sector_bytes, each.sector).read();
    if (table) return std::optional(std::move(*table));
    if (table.error().code != ErrorCode::kCorrupt) return table.error();
    notes.push_back("GPT: " + table.error().message);
  }
  return std::optional<PartitionTable>();
}

}  // namespace

Result<PartitionTable> read_gpt(ifsck::View& view, const GptQuestion& question) {
  std::vector<Place> primary;
  std::vector<Place> backup;
  for (const std::uint32_t bytes : question.sector_bytes) {
    primary.push_back({bytes, 1});
    const std::uint64_t sectors = view.size_bytes() / bytes;
    if (sectors > 0) backup.push_back({bytes, sectors - 1});
    if (question.former_last > 1 && question.former_last + 1 < sectors) {
      backup.push_back({bytes, question.former_last});
    }
  }
  std::vector<std::string> notes;
  auto table = read_any(view, primary, notes);
  if (!table) return table.error();
  if (*table) return std::move(**table);  // that sectors of another size have none is no damage
  const std::size_t of_primary = notes.size();
  table = read_any(view, backup, notes);
  if (!table) return table.error();
  if (!*table) return PartitionTable{.notes = std::move(notes)};
  PartitionTable& found = **table;
  found.from_backup = true;
  // What sectors of that size say is what counts.
  for (std::size_t i = 0; i < of_primary; ++i) {
    if (primary[i].sector_bytes == found.sector_bytes) found.notes.push_back(notes[i]);
  }
  found.notes.emplace_back("GPT: partitions are those of the backup");
  return std::move(found);
}

}  // namespace mariner::uvfs
