#include "uvfs/parts/lvm_label.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "proto/bytes.h"
#include "proto/check.h"
#include "proto/field.h"
#include "uvfs/parts/crc32.h"

namespace mariner::uvfs {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::string_view kLabelMagic = "LABELONE";
constexpr std::string_view kLabelType = "LVM2 001";
constexpr std::string_view kAreaMagic = " LVM2 x[5A%r0N*>";
constexpr std::size_t kIdBytes = 32;
constexpr std::uint32_t kAreaIgnored = 1;

bool has(Bytes bytes, std::size_t at, std::string_view magic) {
  return std::ranges::equal(bytes.subspan(at, magic.size()), as_byte_span(magic));
}

Error corrupt_label(std::string what) { return {ErrorCode::kCorrupt, std::move(what)}; }

// A list of places ends with an empty one.
Result<std::vector<ByteRange>> parse_places(Bytes sector, std::size_t& at) {
  constexpr std::size_t kPlaceBytes = 16;
  std::vector<ByteRange> places;
  while (true) {
    if (at + kPlaceBytes > sector.size()) return corrupt_label("the label's lists do not end");
    const ByteRange place{field<std::uint64_t>(sector, at), field<std::uint64_t>(sector, at + 8)};
    at += kPlaceBytes;
    if (place.offset == 0) return places;
    places.push_back(place);
  }
}

Result<LvmLabel> parse_sector(Bytes sector, std::uint64_t number) {
  constexpr std::size_t kCheckedAt = 20;
  constexpr std::size_t kHeaderBytes = 32;
  if (lvm_crc(sector.subspan(kCheckedAt)) != field<std::uint32_t>(sector, 16)) {
    return corrupt_label(fmt::format("the label in sector {} has another CRC", number));
  }
  if (field<std::uint64_t>(sector, 8) != number) {
    return corrupt_label(fmt::format("the label in sector {} says that it is in sector {}", number,
                                     field<std::uint64_t>(sector, 8)));
  }
  std::size_t at = field<std::uint32_t>(sector, 20);
  if (at < kHeaderBytes || at > sector.size() - kIdBytes - 8) {
    return corrupt_label(
        fmt::format("the label in sector {} says that it goes on at byte {}", number, at));
  }
  LvmLabel label;
  const Bytes id = sector.subspan(at, kIdBytes);
  std::ranges::transform(id, std::back_inserter(label.id),
                         [](std::byte each) { return static_cast<char>(each); });
  at += kIdBytes + 8;  // and the size of the device
  if (const auto data = parse_places(sector, at); !data) return data.error();
  auto areas = parse_places(sector, at);
  if (!areas) return areas.error();
  label.metadata_areas = std::move(*areas);
  return label;
}

}  // namespace

Result<LvmLabel> parse_lvm_label(Bytes head) {
  Error error{ErrorCode::kNotFound, "no label of LVM2"};
  for (std::uint64_t i = 0; i < kLvmLabelBytes / kLvmSectorBytes; ++i) {
    if (head.size() < (i + 1) * kLvmSectorBytes) break;
    const Bytes sector = head.subspan(i * kLvmSectorBytes, kLvmSectorBytes);
    if (!has(sector, 0, kLabelMagic) || !has(sector, 24, kLabelType)) continue;
    auto label = parse_sector(sector, i);
    if (label) return label;
    error = label.error();
  }
  return error;
}

Result<std::optional<LvmTextPlace>> parse_lvm_area(Bytes bytes, ByteRange area) {
  constexpr std::size_t kNewestAt = 40;
  CHECK(bytes.size() == kLvmAreaHeaderBytes);
  const auto damage = [&](std::string what) {
    return corrupt_label(fmt::format("the metadata area at byte {} {}", area.offset, what));
  };
  if (!has(bytes, 4, kAreaMagic)) return damage("has no signature");
  if (lvm_crc(bytes.subspan(4)) != field<std::uint32_t>(bytes, 0)) return damage("has another CRC");
  const auto version = field<std::uint32_t>(bytes, 20);
  const auto begin = field<std::uint64_t>(bytes, 24);
  const auto size = field<std::uint64_t>(bytes, 32);
  if (version != 1) return damage(fmt::format("has version {}, not 1", version));
  if (begin != area.offset || size <= kLvmAreaHeaderBytes || size > area.length) {
    return damage(fmt::format("says that it has {} bytes from {} on", size, begin));
  }
  const auto offset = field<std::uint64_t>(bytes, kNewestAt);
  const auto length = field<std::uint64_t>(bytes, kNewestAt + 8);
  const auto flags = field<std::uint32_t>(bytes, kNewestAt + 20);
  if (offset == 0 || length == 0 || (flags & kAreaIgnored) != 0) {
    return std::optional<LvmTextPlace>();
  }
  if (offset < kLvmAreaHeaderBytes || offset >= size || length > size - kLvmAreaHeaderBytes ||
      length > kLvmTextBytesMax) {
    return damage(fmt::format("says that its text has {} bytes from {} on", length, offset));
  }
  LvmTextPlace place{.crc = field<std::uint32_t>(bytes, kNewestAt + 16)};
  const std::uint64_t before_end = std::min(length, size - offset);
  place.pieces.push_back({begin + offset, before_end});
  if (before_end < length) {
    place.pieces.push_back({begin + kLvmAreaHeaderBytes, length - before_end});
  }
  return std::optional(std::move(place));
}

namespace {

Result<void> read_part(ifsck::View& view, const PartMap& part, ByteRange range,
                       std::span<std::byte> to) {
  Result<void> done;
  part.for_each_piece(range, [&](ByteRange piece) {
    if (done) done = view.read(piece, to.first(piece.length));
    to = to.subspan(piece.length);
  });
  return done;
}

}  // namespace

Result<std::optional<std::string>> read_lvm_text(ifsck::View& view, const PartMap& member,
                                                 ByteRange area) {
  if (area.offset > member.bytes() || area.length > member.bytes() - area.offset ||
      area.length < kLvmAreaHeaderBytes) {
    return corrupt_label(fmt::format("a metadata area is said to have {} bytes from {} on of {}",
                                     area.length, area.offset, member.bytes()));
  }
  std::array<std::byte, kLvmAreaHeaderBytes> header;
  const auto read = read_part(view, member, {area.offset, header.size()}, header);
  if (!read) return read.error();
  const auto place = parse_lvm_area(header, area);
  if (!place) return place.error();
  if (!*place) return std::optional<std::string>();
  std::string text;
  for (const ByteRange& each : (*place)->pieces) {
    const std::size_t before = text.size();
    text.resize(before + each.length);
    const auto to = std::as_writable_bytes(std::span(text)).subspan(before);
    if (const auto done = read_part(view, member, each, to); !done) return done.error();
  }
  if (lvm_crc(std::as_bytes(std::span(text))) != (*place)->crc) {
    return corrupt_label(
        fmt::format("the text in the metadata area at byte {} has another CRC", area.offset));
  }
  text.resize(std::min(text.size(), text.find('\0')));  // it ends with one
  return std::optional(std::move(text));
}

}  // namespace mariner::uvfs
