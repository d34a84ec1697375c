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

// The first byte has 6 bits of how many blocks it is to this one, and whether the other number is
// another one, in its lowest bit.
constexpr unsigned kFirstBits = 6;
constexpr std::uint64_t kFirst = (1u << kFirstBits) - 1;

void put_entry(std::vector<std::byte>& to, const PackedTable::Entry& before,
               const PackedTable::Entry& entry) {
  const std::uint64_t blocks = entry.first - before.first;
  // What is a bit less is as short as what is a bit more.
  const auto step = static_cast<std::int32_t>(entry.second - before.second);
  const std::uint64_t rest = blocks >> kFirstBits;
  to.push_back(static_cast<std::byte>((rest != 0 ? 0x80 : 0) | (blocks & kFirst) << 1 |
                                      (step != 0 ? 1 : 0)));
  if (rest != 0) put_number(to, rest);
  if (step != 0) put_number(to, static_cast<std::uint32_t>(step << 1 ^ step >> 31));
}

// What follows `entry`, up to block `last`. False: nothing that makes sense does.
inline bool take_entry(const std::byte*& at, const std::byte* end, FsBlock last,
                       PackedTable::Entry& entry) {
  if (at == end) return false;
  const auto first = std::to_integer<std::uint64_t>(*at++);
  std::uint64_t rest = 0;
  std::uint64_t step = 0;
  if ((first & 0x80) != 0 && !take_number(at, end, rest)) return false;
  if ((first & 1) != 0 && !take_number(at, end, step)) return false;
  const std::uint64_t blocks = rest << kFirstBits | (first >> 1 & kFirst);
  if (rest > ~std::uint64_t{0} >> kFirstBits || step > UINT32_MAX || blocks == 0 ||
      blocks > last - entry.first) {
    return false;
  }
  const auto folded = static_cast<std::uint32_t>(step);
  entry.first += blocks;
  entry.second += folded >> 1 ^ (0 - (folded & 1));
  return true;
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
    for (std::size_t i = 1; i < some.size(); ++i) put_entry(bytes, some[i - 1], some[i]);
    std::byte* const head = bytes.data() + kSizeBytes + piece * kHeadBytes;
    store_le(head, some[0].first);
    store_le(head + 8, some[0].second);
    store_le(head + 12, static_cast<std::uint32_t>(bytes.size() - begin));
  }
  return bytes;
}

std::optional<PackedTable> PackedTable::parse(std::vector<std::byte> bytes) {
  const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return parse(*owner, owner);
}

std::optional<PackedTable> PackedTable::parse(std::span<const std::byte> all,
                                              std::shared_ptr<const void> owner) {
  PackedTable table;
  table.owner_ = std::move(owner);
  table.bytes_ = all;
  if (all.empty()) return table;
  if (all.size() < kSizeBytes) return {};
  const auto size = load_le<std::uint64_t>(all.data());
  // (An entry takes a byte, at least.)
  if (size == 0 || size > all.size()) return {};
  const std::size_t pieces = (size + kPieceEntries - 1) / kPieceEntries;
  if ((all.size() - kSizeBytes) / kHeadBytes < pieces) return {};
  std::size_t offset = kSizeBytes + pieces * kHeadBytes;
  table.offsets_.reserve(pieces + 1);
  table.offsets_.push_back(offset);
  FsBlock before = 0;
  for (std::size_t i = 0; i < pieces; ++i) {
    const std::byte* const head = all.data() + kSizeBytes + i * kHeadBytes;
    const auto first = load_le<std::uint64_t>(head);
    const auto bytes = load_le<std::uint32_t>(head + 12);
    const std::size_t entries = std::min<std::size_t>(kPieceEntries, size - i * kPieceEntries);
    if (bytes > all.size() - offset || bytes < entries - 1) return {};
    if (i > 0 && first <= before) return {};
    before = first;
    offset += bytes;
    table.offsets_.push_back(offset);
  }
  if (offset != all.size()) return {};
  table.unpacked_.resize(pieces);
  table.size_ = size;
  table.entries_ = std::make_unique_for_overwrite<Entry[]>(size);
  return table;
}

PackedTable::Entry PackedTable::head_of(std::size_t piece) const {
  const std::byte* const head = bytes_.data() + kSizeBytes + piece * kHeadBytes;
  return {load_le<std::uint64_t>(head), load_le<std::uint32_t>(head + 8)};
}

void PackedTable::unpack(std::size_t index) {
  if (unpacked_[index]) return;
  unpacked_[index] = true;
  Entry* to = entries_.get() + index * kPieceEntries;
  const Entry* const end = entries_.get() + std::min(size_, (index + 1) * kPieceEntries);
  const std::byte* at = bytes_.data() + offsets_[index];
  const std::byte* const behind = bytes_.data() + offsets_[index + 1];
  const bool is_last = index + 1 == unpacked_.size();
  const FsBlock last = is_last ? ~FsBlock{0} : head_of(index + 1).first - 1;
  Entry entry = head_of(index);
  *to++ = entry;
  for (; to != end && take_entry(at, behind, last, entry); *to++ = entry) {
  }
  std::fill(to, entries_.get() + (end - entries_.get()), entry);
}

std::span<const PackedTable::Entry> PackedTable::unpack(std::size_t first, std::size_t end) {
  for (std::size_t i = first; i < end; ++i) unpack(i);
  const std::size_t begin = first * kPieceEntries;
  return {entries_.get() + begin, std::min(size_, end * kPieceEntries) - begin};
}

std::size_t PackedTable::piece_of(FsBlock block) const {
  const std::size_t pieces = unpacked_.size();
  if (head_of(looked_at_).first <= block &&
      (looked_at_ + 1 == pieces || block < head_of(looked_at_ + 1).first)) {
    return looked_at_;
  }
  std::size_t begin = 0;
  for (std::size_t count = pieces; count > 1;) {
    const std::size_t half = count / 2;
    if (head_of(begin + half).first <= block) begin += half;
    count -= half;
  }
  looked_at_ = begin;
  return begin;
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

std::span<const PackedTable::Entry> PackedTable::all() { return unpack(0, unpacked_.size()); }

}  // namespace mariner::ifsck
