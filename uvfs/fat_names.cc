#include "uvfs/fat_names.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "proto/bytes.h"
#include "uvfs/utf16_text.h"

namespace mariner::uvfs {
namespace {

// FAT: an entry's name, its attributes, and which of its letters are small.
constexpr std::size_t kShortBytes = 11;
constexpr std::size_t kBaseBytes = 8;
constexpr std::size_t kAttributesAt = 11;
constexpr std::size_t kCaseAt = 12;
constexpr std::size_t kChecksumAt = 13;
constexpr std::uint8_t kLongName = 0x0F;
constexpr std::uint8_t kVolumeName = 0x08;
constexpr std::uint8_t kDirectory = 0x10;
constexpr std::uint8_t kSmallBase = 0x08;
constexpr std::uint8_t kSmallExtension = 0x10;
constexpr std::uint8_t kDeleted = 0xE5;
constexpr std::uint8_t kIsDeletedMark = 0x05;  // stands for that character
constexpr std::uint8_t kLastPiece = 0x40;
constexpr unsigned kPiecesMax = 20;
constexpr std::size_t kPieceBytes = 26;

// exFAT: what an entry is.
constexpr std::uint8_t kFile = 0x85;
constexpr std::uint8_t kStream = 0xC0;
constexpr std::uint8_t kName = 0xC1;
constexpr std::size_t kNamePieceBytes = 30;
constexpr unsigned kSetMin = 2;  // entries behind the first
constexpr unsigned kSetMax = 18;

// What bytes of a short name are, from 0x80 on: code page 437, as Linux takes them by default.
constexpr std::u16string_view kCodePage =
    u"ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄"
    u"▌▐▀"
    u"αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u00A0";
static_assert(kCodePage.size() == 128);

std::uint8_t at(std::span<const std::byte> entry, std::size_t i) {
  return std::to_integer<std::uint8_t>(entry[i]);
}

void append_short(std::span<const std::byte> part, bool small, std::string& to) {
  while (!part.empty() && part.back() == std::byte{' '}) part = part.first(part.size() - 1);
  for (const std::byte each : part) {
    const auto byte = std::to_integer<std::uint8_t>(each);
    if (byte >= 0x80) {
      append_utf8(kCodePage[byte - 0x80], to);
    } else {
      to += static_cast<char>(small && byte >= 'A' && byte <= 'Z' ? byte + 32 : byte);
    }
  }
}

std::string short_name(std::span<const std::byte> entry) {
  std::array<std::byte, kShortBytes> stored{};
  std::ranges::copy(entry.first(kShortBytes), stored.begin());
  if (stored[0] == std::byte{kIsDeletedMark}) stored[0] = std::byte{kDeleted};
  std::string name;
  const auto all = std::span<const std::byte>(stored);
  append_short(all.first(kBaseBytes), (at(entry, kCaseAt) & kSmallBase) != 0, name);
  std::string extension;
  append_short(all.subspan(kBaseBytes), (at(entry, kCaseAt) & kSmallExtension) != 0, extension);
  return extension.empty() ? name : name + "." + extension;
}

std::uint8_t checksum_of(std::span<const std::byte> short_name) {
  std::uint8_t sum = 0;
  for (const std::byte each : short_name) {
    sum = static_cast<std::uint8_t>((sum >> 1 | sum << 7) + std::to_integer<std::uint8_t>(each));
  }
  return sum;
}

std::uint16_t checksum_of_set(std::span<const std::byte> set) {
  std::uint16_t sum = 0;
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (i == 2 || i == 3) continue;
    sum =
        static_cast<std::uint16_t>((sum >> 1 | sum << 15) + std::to_integer<std::uint8_t>(set[i]));
  }
  return sum;
}

}  // namespace

bool FatNames::add(std::span<const std::byte> entry, std::uint64_t number) {
  if (at(entry, 0) == 0) return false;
  exfat_ ? add_exfat(entry, number) : add_fat(entry, number);
  return true;
}

void FatNames::add_fat(std::span<const std::byte> entry, std::uint64_t number) {
  const std::uint8_t attributes = at(entry, kAttributesAt);
  const bool deleted = at(entry, 0) == kDeleted;
  if (!deleted && (attributes & 0x3F) == kLongName) return add_piece(entry);
  if (!deleted && (attributes & kVolumeName) == 0) {
    std::string name = long_name(entry);
    if (name.empty()) name = short_name(entry);
    if (!name.empty() && name != "." && name != "..") {
      names_.push_back({std::move(name), number, (attributes & kDirectory) != 0});
    }
  }
  long_name_.next = long_name_.pieces = 0;
}

void FatNames::add_piece(std::span<const std::byte> entry) {
  const unsigned number = at(entry, 0) & ~unsigned{kLastPiece};
  if ((at(entry, 0) & kLastPiece) != 0) {
    if (number == 0 || number > kPiecesMax) return void(long_name_.pieces = 0);
    long_name_.pieces = number;
    long_name_.checksum = at(entry, kChecksumAt);
  } else if (long_name_.pieces == 0 || number != long_name_.next || number == 0 ||
             at(entry, kChecksumAt) != long_name_.checksum) {
    return void(long_name_.pieces = 0);
  }
  long_name_.next = number - 1;
  std::byte* const to = long_name_.units.data() + (number - 1) * kPieceBytes;
  std::ranges::copy(entry.subspan(1, 10), to);
  std::ranges::copy(entry.subspan(14, 12), to + 10);
  std::ranges::copy(entry.subspan(28, 4), to + 22);
}

// Empty: the entry has none of its own.
std::string FatNames::long_name(std::span<const std::byte> entry) const {
  if (long_name_.pieces == 0 || long_name_.next != 0 ||
      long_name_.checksum != checksum_of(entry.first(kShortBytes))) {
    return {};
  }
  auto units = std::span(long_name_.units).first(long_name_.pieces * kPieceBytes);
  for (std::size_t i = 0; i < units.size(); i += 2) {
    if (load_le<std::uint16_t>(units.data() + i) == 0) units = units.first(i);
  }
  return utf8_of_utf16(units);
}

void FatNames::add_exfat(std::span<const std::byte> entry, std::uint64_t number) {
  const std::uint8_t what = at(entry, 0);
  if (what == kFile) {
    set_.clear();
    set_number_ = number;
  } else if (set_.empty() || what < kStream) {
    // (Of a set all are in use, and secondary.)
    return set_.clear();
  }
  set_.insert(set_.end(), entry.begin(), entry.end());
  if (set_.size() == (1 + std::size_t{at(set_, 1)}) * kFatEntryBytes) finish_set();
}

void FatNames::finish_set() {
  const auto set = std::exchange(set_, {});
  const unsigned behind = at(set, 1);
  if (behind < kSetMin || behind > kSetMax || at(set, kFatEntryBytes) != kStream) return;
  if (load_le<std::uint16_t>(set.data() + 2) != checksum_of_set(set)) return;
  const std::size_t name_bytes = 2 * std::size_t{at(set, kFatEntryBytes + 3)};
  std::vector<std::byte> units;
  for (std::size_t i = 2; i <= behind && units.size() < name_bytes; ++i) {
    const auto entry = std::span(set).subspan(i * kFatEntryBytes, kFatEntryBytes);
    if (at(entry, 0) != kName) return;
    units.insert(units.end(), entry.begin() + 2, entry.begin() + 2 + kNamePieceBytes);
  }
  if (name_bytes == 0 || units.size() < name_bytes) return;
  names_.push_back({utf8_of_utf16(std::span(units).first(name_bytes)), set_number_,
                    (load_le<std::uint16_t>(set.data() + 4) & kDirectory) != 0});
}

}  // namespace mariner::uvfs
