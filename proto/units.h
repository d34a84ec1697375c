// The numbers of Mariner as types of their own, so that mixing them does not compile.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "proto/check.h"

namespace mariner {

// The unit of versioning.
inline constexpr std::uint32_t kBlockBytes = 4096;
inline constexpr std::uint32_t kBlockShift = 12;
static_assert(kBlockBytes == 1u << kBlockShift);

// An identity or ordinal: comparable, not addable.
template <typename Tag>
struct Ordinal {
  std::uint64_t value = 0;
  friend constexpr auto operator<=>(const Ordinal&, const Ordinal&) = default;
  [[nodiscard]] constexpr Ordinal next() const { return Ordinal{value + 1}; }
};

// The total order of a volume's writes. 0 is "before the first write" (the base).
using SequenceNumber = Ordinal<struct SequenceTag>;
// Increases whenever the coordinator changes; a write of an older epoch is refused.
using Epoch = Ordinal<struct EpochTag>;

// A volume's identity in formats and messages. Never reused. 0 is no volume.
struct VolumeId {
  std::uint32_t value = 0;
  friend constexpr auto operator<=>(const VolumeId&, const VolumeId&) = default;
};

// Nanoseconds since the Unix epoch (UTC), strictly increasing along the sequence of a volume.
struct VersionTime {
  std::uint64_t ns = 0;
  friend constexpr auto operator<=>(const VersionTime&, const VersionTime&) = default;
};

// A number of 4 KiB blocks.
struct BlockCount {
  std::uint64_t value = 0;
  friend constexpr auto operator<=>(const BlockCount&, const BlockCount&) = default;
  [[nodiscard]] constexpr std::uint64_t bytes() const { return value << kBlockShift; }
  friend constexpr BlockCount operator+(BlockCount a, BlockCount b) { return {a.value + b.value}; }
  friend constexpr BlockCount operator-(BlockCount a, BlockCount b) { return {a.value - b.value}; }
};

// The number of a 4 KiB block of a volume.
struct Lbn {
  std::uint64_t value = 0;
  friend constexpr auto operator<=>(const Lbn&, const Lbn&) = default;
  [[nodiscard]] constexpr std::uint64_t byte_offset() const { return value << kBlockShift; }
  friend constexpr Lbn operator+(Lbn a, BlockCount n) { return {a.value + n.value}; }
  friend constexpr BlockCount operator-(Lbn a, Lbn b) { return {a.value - b.value}; }
};

// Blocks [first, end()). Empty when count is 0.
struct BlockRange {
  Lbn first;
  BlockCount count;

  friend constexpr auto operator<=>(const BlockRange&, const BlockRange&) = default;
  [[nodiscard]] static constexpr BlockRange between(Lbn first, Lbn end) {
    return {first, end > first ? end - first : BlockCount{0}};
  }
  [[nodiscard]] constexpr Lbn end() const { return first + count; }
  [[nodiscard]] constexpr bool empty() const { return count.value == 0; }
  [[nodiscard]] constexpr bool contains(Lbn lbn) const { return lbn >= first && lbn < end(); }
  [[nodiscard]] constexpr bool contains(const BlockRange& other) const {
    return other.first >= first && other.end() <= end();
  }
  [[nodiscard]] constexpr bool overlaps(const BlockRange& other) const {
    return first < other.end() && other.first < end();
  }
  [[nodiscard]] constexpr BlockRange intersect(const BlockRange& other) const {
    return between(std::max(first, other.first), std::min(end(), other.end()));
  }
};

// Bytes [offset, end()) of a volume, file or device.
struct ByteRange {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;

  friend constexpr auto operator<=>(const ByteRange&, const ByteRange&) = default;
  [[nodiscard]] constexpr std::uint64_t end() const { return offset + length; }
  [[nodiscard]] constexpr bool block_aligned() const {
    return ((offset | length) & (kBlockBytes - 1)) == 0;
  }
  // The smallest range of blocks that covers these bytes.
  [[nodiscard]] constexpr BlockRange covering_blocks() const {
    return BlockRange::between(Lbn{offset >> kBlockShift},
                               Lbn{(end() + kBlockBytes - 1) >> kBlockShift});
  }
  // The largest range of whole blocks inside these bytes.
  [[nodiscard]] constexpr BlockRange inner_blocks() const {
    return BlockRange::between(Lbn{(offset + kBlockBytes - 1) >> kBlockShift},
                               Lbn{end() >> kBlockShift});
  }
};

[[nodiscard]] constexpr ByteRange to_bytes(const BlockRange& range) {
  return {range.first.byte_offset(), range.count.bytes()};
}

}  // namespace mariner

template <>
struct std::hash<mariner::VolumeId> {
  std::size_t operator()(const mariner::VolumeId& id) const noexcept { return id.value; }
};
