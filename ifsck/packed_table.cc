#include "ifsck/packed_table.h"

#include <algorithm>
#include <utility>

#include "proto/bytes.h"

namespace mariner::ifsck {
namespace {

constexpr std::size_t kSizeBytes = 8;
constexpr std::size_t kHeadBytes = 16;

// A number is in pieces of 7 bits, the lowest first; all but its last have the 8th bit.
void put_number(std::vector<std::byte>& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) to.push_back(static_cast<std::byte>(value | 0x80));
  to.push_back(static_cast<std::byte>(value));
}

// From `at` to before `end`; behind it afterwards. False: it does not end, or has more than 64
// bits.
inline bool take_number(const std::byte*& at, const std::byte* end, std::uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && at != end; shift += 7) {
    const auto piece = std::to_integer<std::uint64_t>(*at++);
    value |= (piece & 0x7f) << shift;
    if (piece < 0x80) return true;
  }
  return false;
}

}  // namespace

std::vector<std::byte> PackedTable::pack(std::span<const Entry> entries) {
  if (entries.empty()) return {};
  const std::size_t pieces = (entries.size() + kPieceEntries - 1) / kPieceEntries;
  std::vector<std::byte> bytes(kSizeBytes + pieces * kHeadBytes);
  store_le(bytes.data(), std::uint64_t{entries.size()});
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    const auto some = entries.subspan(piece * kPieceEntries)
                          .first(std::min(kPieceEntries, entries.size() - piece * kPieceEntries));
    const std::size_t begin = bytes.size();
    for (std::size_t i = 1; i < some.size(); ++i) {
      put_number(bytes, some[i].first - some[i - 1].first);
      // What is a bit less is as short as what is a bit more.
      const auto step = static_cast<std::int32_t>(some[i].second - some[i - 1].second);
      put_number(bytes, static_cast<std::uint32_t>(step << 1 ^ step >> 31));
    }
    std::byte* const head = bytes.data() + kSizeBytes + piece * kHeadBytes;
    store_le(head, some[0].first);
    store_le(head + 8, some[0].second);
    store_le(head + 12, static_cast<std::uint32_t>(bytes.size() - begin));
  }
  return bytes;
}

std::optional<PackedTable> PackedTable::parse(std::vector<std::byte> bytes) {
  PackedTable table;
  table.bytes_ = std::move(bytes);
  const std::vector<std::byte>& all = table.bytes_;
  if (all.empty()) return table;
  if (all.size() < kSizeBytes) return {};
  const auto size = load_le<std::uint64_t>(all.data());
  // (An entry takes two bytes, at least, but in a head.)
  if (size == 0 || size > all.size()) return {};
  const std::size_t pieces = (size + kPieceEntries - 1) / kPieceEntries;
  if ((all.size() - kSizeBytes) / kHeadBytes < pieces) return {};
  std::size_t offset = kSizeBytes + pieces * kHeadBytes;
  table.pieces_.reserve(pieces);
  for (std::size_t i = 0; i < pieces; ++i) {
    const std::byte* const head = all.data() + kSizeBytes + i * kHeadBytes;
    const Piece piece{{load_le<std::uint64_t>(head), load_le<std::uint32_t>(head + 8)},
                      offset,
                      load_le<std::uint32_t>(head + 12)};
    const std::size_t entries = std::min<std::size_t>(kPieceEntries, size - i * kPieceEntries);
    if (piece.bytes > all.size() - offset || piece.bytes < 2 * (entries - 1)) return {};
    if (i > 0 && piece.head.first <= table.pieces_.back().head.first) return {};
    offset += piece.bytes;
    table.pieces_.push_back(piece);
  }
  if (offset != all.size()) return {};
  table.size_ = size;
  table.entries_ = std::make_unique_for_overwrite<Entry[]>(size);
  return table;
}

void PackedTable::unpack(std::size_t index) {
  Piece& piece = pieces_[index];
  if (std::exchange(piece.unpacked, true)) return;
  Entry* to = entries_.get() + index * kPieceEntries;
  const Entry* const end = entries_.get() + std::min(size_, (index + 1) * kPieceEntries);
  const std::byte* at = bytes_.data() + piece.offset;
  const std::byte* const behind = at + piece.bytes;
  const FsBlock last = index + 1 < pieces_.size() ? pieces_[index + 1].head.first - 1 : ~FsBlock{0};
  Entry entry = piece.head;
  *to++ = entry;
  for (; to != end; *to++ = entry) {
    std::uint64_t blocks = 0;
    std::uint64_t step = 0;
    if (!take_number(at, behind, blocks) || !take_number(at, behind, step)) break;
    if (step > UINT32_MAX || blocks == 0 || blocks > last - entry.first) break;
    const auto folded = static_cast<std::uint32_t>(step);
    entry.first += blocks;
    entry.second += folded >> 1 ^ (0 - (folded & 1));
  }
  std::fill(to, entries_.get() + (end - entries_.get()), entry);
}

std::span<const PackedTable::Entry> PackedTable::unpack(std::size_t first, std::size_t end) {
  for (std::size_t i = first; i < end; ++i) unpack(i);
  const std::size_t begin = first * kPieceEntries;
  return {entries_.get() + begin, std::min(size_, end * kPieceEntries) - begin};
}

std::size_t PackedTable::piece_of(FsBlock block) const {
  const auto behind = std::ranges::upper_bound(pieces_, block, {},
                                               [](const Piece& piece) { return piece.head.first; });
  return static_cast<std::size_t>(std::max(behind - pieces_.begin(), std::ptrdiff_t{1}) - 1);
}

const std::uint32_t* PackedTable::find(FsBlock block) {
  if (size_ == 0) return nullptr;
  const std::size_t piece = piece_of(block);
  const auto some = unpack(piece, piece + 1);
  const auto found = std::ranges::lower_bound(some, block, {}, &Entry::first);
  return found == some.end() || found->first != block ? nullptr : &found->second;
}

std::span<const PackedTable::Entry> PackedTable::within(FsBlock first, FsBlock end) {
  if (size_ == 0 || first >= end) return {};
  const auto some = unpack(piece_of(first), piece_of(end - 1) + 1);
  const auto begin = std::ranges::lower_bound(some, first, {}, &Entry::first);
  return {begin, std::ranges::lower_bound(begin, some.end(), end, {}, &Entry::first)};
}

std::span<const PackedTable::Entry> PackedTable::all() { return unpack(0, pieces_.size()); }

}  // namespace mariner::ifsck
