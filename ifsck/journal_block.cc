#include "ifsck/journal_block.h"

#include <array>

#include "ifsck/ext_checksum.h"
#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::ifsck {
namespace {

using Super = JournalSuperblock;

constexpr std::uint16_t kEscaped = 1;
constexpr std::uint16_t kSameUuid = 2;
constexpr std::uint16_t kLastTag = 8;  // (4: deleted; nobody writes it)
constexpr std::size_t kUuidBytes = 16;

constexpr std::size_t kRevokedBytesAt = 12;
constexpr std::size_t kRevokedAt = 16;

constexpr std::size_t kCommitKindAt = 12;
constexpr std::size_t kCommitBytesAt = 13;
constexpr std::size_t kCommitChecksumAt = 16;
constexpr std::size_t kCommitTimeAt = 48;
constexpr std::uint8_t kCrc32 = 1;

template <typename T>
T be_field(std::span<const std::byte> bytes, std::size_t at) {
  return load_be<T>(bytes.data() + at);
}

std::size_t tail_bytes(const Super& super) { return super.has_checksums() ? 4 : 0; }

// (Two bytes are left over with kChecksumV2: a mistake that has become the format.)
std::size_t tag_bytes(const Super& super) {
  if (super.has(Super::kChecksumV3)) return 16;
  return 8u + (super.has(Super::kChecksumV2) ? 2 : 0) + (super.has(Super::k64Bit) ? 4 : 0);
}

// With zeros in place of the four bytes at `at`.
std::uint32_t crc_without(std::uint32_t seed, std::span<const std::byte> block, std::size_t at) {
  constexpr std::array<std::byte, 4> kZeros{};
  const std::uint32_t crc = ext_crc(ext_crc(seed, block.first(at)), kZeros);
  return ext_crc(crc, block.subspan(at + kZeros.size()));
}

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t crc = i << 24;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc << 1) ^ ((crc & 0x80000000u) != 0 ? 0x04c11db7u : 0);
    }
    table[i] = crc;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kTable = make_table();

}  // namespace

JournalHead JournalHead::of(std::span<const std::byte> bytes) {
  CHECK(bytes.size() >= kBytes);
  return {be_field<std::uint32_t>(bytes, 0), static_cast<Kind>(be_field<std::uint32_t>(bytes, 4)),
          be_field<std::uint32_t>(bytes, 8)};
}

void for_each_tag(const Super& super, std::span<const std::byte> descriptor,
                  const std::function<void(const JournalTag&)>& visit) {
  const std::size_t bytes = tag_bytes(super);
  const bool third = super.has(Super::kChecksumV3);
  const std::size_t end = descriptor.size() - tail_bytes(super);
  for (std::size_t at = JournalHead::kBytes; at + bytes <= end;) {
    const auto tag = descriptor.subspan(at, bytes);
    const auto flags = be_field<std::uint16_t>(tag, 6);
    JournalTag out;
    out.block = be_field<std::uint32_t>(tag, 0);
    if (super.has(Super::k64Bit)) out.block |= FsBlock{be_field<std::uint32_t>(tag, 8)} << 32;
    out.checksum = third ? be_field<std::uint32_t>(tag, 12) : be_field<std::uint16_t>(tag, 4);
    out.escaped = (flags & kEscaped) != 0;
    visit(out);
    if ((flags & kLastTag) != 0) return;
    at += bytes + ((flags & kSameUuid) != 0 ? 0 : kUuidBytes);
  }
}

bool for_each_revoked(const Super& super, std::span<const std::byte> block,
                      const std::function<void(FsBlock)>& visit) {
  const std::size_t end = be_field<std::uint32_t>(block, kRevokedBytesAt);
  if (end > block.size() - tail_bytes(super)) return false;
  const std::size_t bytes = super.has(Super::k64Bit) ? 8 : 4;
  for (std::size_t at = kRevokedAt; at + bytes <= end; at += bytes) {
    visit(bytes == 8 ? be_field<std::uint64_t>(block, at) : be_field<std::uint32_t>(block, at));
  }
  return true;
}

JournalCommit JournalCommit::of(std::span<const std::byte> block) {
  return {static_cast<std::uint8_t>(block[kCommitKindAt]),
          static_cast<std::uint8_t>(block[kCommitBytesAt]),
          be_field<std::uint32_t>(block, kCommitChecksumAt),
          be_field<std::uint64_t>(block, kCommitTimeAt)};
}

bool tail_is_right(const Super& super, std::span<const std::byte> block) {
  if (!super.has_checksums()) return true;
  const std::size_t at = block.size() - tail_bytes(super);
  return be_field<std::uint32_t>(block, at) == crc_without(super.seed, block, at);
}

bool commit_is_right(const Super& super, std::span<const std::byte> block) {
  if (!super.has_checksums()) return true;
  return be_field<std::uint32_t>(block, kCommitChecksumAt) ==
         crc_without(super.seed, block, kCommitChecksumAt);
}

bool data_is_right(const Super& super, std::uint32_t sequence, std::uint32_t checksum,
                   std::span<const std::byte> data) {
  if (!super.has_checksums()) return true;
  std::array<std::byte, 4> number{};
  store_be(number.data(), sequence);
  const std::uint32_t crc = ext_crc(ext_crc(super.seed, number), data);
  return checksum == (super.has(Super::kChecksumV3) ? crc : crc & 0xffff);
}

std::uint32_t crc32_be(std::uint32_t crc, std::span<const std::byte> bytes) {
  for (const std::byte each : bytes) {
    crc = (crc << 8) ^ kTable[(crc >> 24) ^ static_cast<std::uint8_t>(each)];
  }
  return crc;
}

bool transaction_is_right(const JournalCommit& commit, std::uint32_t crc) {
  if (commit.checksum_kind == 0 && commit.checksum_bytes == 0 && commit.checksum == 0) return true;
  return commit.checksum_kind == kCrc32 && commit.checksum_bytes == 4 && commit.checksum == crc;
}

}  // namespace mariner::ifsck
