#include "uvfs/ntfs_record.h"

#include <sys/stat.h>

#include <cstring>

#include "proto/field.h"

namespace mariner::uvfs {
namespace {

constexpr std::size_t kRecordSectorBytes = 512;
constexpr std::size_t kHeadBytes = 48;
constexpr std::uint16_t kInUse = 1;
constexpr std::uint16_t kDirectory = 2;
// Attributes: what they are, and where their contents stand if they are within the record.
constexpr std::uint32_t kStandardInformation = 0x10;
constexpr std::uint32_t kData = 0x80;
constexpr std::uint32_t kEnd = 0xFFFF'FFFF;
constexpr std::size_t kAttributeHeadBytes = 24;
constexpr std::size_t kNonResidentHeadBytes = 64;
constexpr std::size_t kStandardBytes = 36;
constexpr std::uint32_t kReadOnly = 1;
constexpr std::uint32_t kHidden = 2;

constexpr std::int64_t kTicksInSecond = 10'000'000;
constexpr std::int64_t kSecondsTo1970 = 11'644'473'600;

// In ticks of 100 ns since 1601.
FileTime time_of(std::uint64_t ticks) {
  return {static_cast<std::int64_t>(ticks / kTicksInSecond) - kSecondsTo1970,
          static_cast<std::uint32_t>(ticks % kTicksInSecond) * 100};
}

void take_times(std::span<const std::byte> value, ObjectState& state) {
  if (value.size() < kStandardBytes) return;
  state.made = time_of(field<std::uint64_t>(value, 0));
  state.modified = time_of(field<std::uint64_t>(value, 8));
  state.changed = time_of(field<std::uint64_t>(value, 16));
  const auto flags = field<std::uint32_t>(value, 32);
  if ((flags & kReadOnly) != 0) state.mode &= static_cast<std::uint16_t>(~0222);
  if ((flags & kHidden) != 0) state.mode &= static_cast<std::uint16_t>(~0444);
}

void take_attribute(std::span<const std::byte> attribute, ObjectState& state) {
  const auto type = field<std::uint32_t>(attribute, 0);
  const bool elsewhere = field<std::uint8_t>(attribute, 8) != 0;
  const bool named = field<std::uint8_t>(attribute, 9) != 0;
  if (!elsewhere) {
    const std::size_t bytes = field<std::uint32_t>(attribute, 16);
    const std::size_t at = field<std::uint16_t>(attribute, 20);
    if (at > attribute.size() || bytes > attribute.size() - at) return;
    if (type == kStandardInformation) take_times(attribute.subspan(at, bytes), state);
    if (type == kData && !named) state.size = bytes;
  } else if (type == kData && !named && attribute.size() >= kNonResidentHeadBytes) {
    state.size = field<std::uint64_t>(attribute, 48);
  }
}

}  // namespace

bool put_back_ntfs_ends(std::span<std::byte> block) {
  if (block.size() < kRecordSectorBytes || block.size() % kRecordSectorBytes != 0) return false;
  const std::size_t array = field<std::uint16_t>(block, 4);
  const std::size_t count = field<std::uint16_t>(block, 6);
  if (count != block.size() / kRecordSectorBytes + 1 || array + 2 * count > block.size())
    return false;
  for (std::size_t i = 1; i < count; ++i) {
    std::byte* const end = block.data() + i * kRecordSectorBytes - 2;
    if (std::memcmp(end, block.data() + array, 2) != 0) return false;
    std::memcpy(end, block.data() + array + 2 * i, 2);
  }
  return true;
}

std::optional<NtfsRecord> parse_ntfs_record(std::span<std::byte> record) {
  if (record.size() < kRecordSectorBytes || std::memcmp(record.data(), "FILE", 4) != 0) return {};
  if (!put_back_ntfs_ends(record)) return {};
  const auto flags = field<std::uint16_t>(record, 22);
  const bool another = field<std::uint64_t>(record, 32) != 0;  // whose it is
  if ((flags & kInUse) == 0 || another) return {};
  NtfsRecord found{.sequence = field<std::uint16_t>(record, 16), .state = {}};
  ObjectState& state = found.state;
  state.exists = true;
  state.mode = ((flags & kDirectory) != 0 ? S_IFDIR : S_IFREG) | 0777;
  state.links = field<std::uint16_t>(record, 18);
  state.generation = found.sequence;
  for (std::size_t at = field<std::uint16_t>(record, 20);
       at >= kHeadBytes && at + kAttributeHeadBytes <= record.size();) {
    const auto length = field<std::uint32_t>(record, at + 4);
    if (field<std::uint32_t>(record, at) == kEnd || length < kAttributeHeadBytes ||
        length > record.size() - at) {
      break;
    }
    take_attribute(record.subspan(at, length), state);
    at += length;
  }
  return found;
}

}  // namespace mariner::uvfs
