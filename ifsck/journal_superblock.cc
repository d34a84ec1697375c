#include "ifsck/journal_superblock.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ifsck/ext_checksum.h"
#include "ifsck/journal_block.h"
#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::ifsck {
namespace {

constexpr std::size_t kBlockBytesAt = 0x0c;
constexpr std::size_t kBlocksAt = 0x10;
constexpr std::size_t kFirstAt = 0x14;
constexpr std::size_t kSequenceAt = 0x18;
constexpr std::size_t kStartAt = 0x1c;
constexpr std::size_t kErrorAt = 0x20;
constexpr std::size_t kCompatibleAt = 0x24;
constexpr std::size_t kIncompatibleAt = 0x28;
constexpr std::size_t kReadOnlyAt = 0x2c;
constexpr std::size_t kUuidAt = 0x30;
constexpr std::size_t kUuidBytes = 16;
constexpr std::size_t kChecksumTypeAt = 0x50;
constexpr std::size_t kFastBlocksAt = 0x54;
constexpr std::size_t kChecksumAt = 0xfc;

constexpr std::uint8_t kCrc32c = 4;
constexpr JournalBlock kFastBlocksDefault = 256;
constexpr JournalBlock kLogBlocksMin = 1024;  // that fast commits leave
constexpr std::uint32_t kKnown = JournalSuperblock::kRevoke | JournalSuperblock::k64Bit |
                                 JournalSuperblock::kAsyncCommit | JournalSuperblock::kChecksumV2 |
                                 JournalSuperblock::kChecksumV3 | JournalSuperblock::kFastCommit;

Error corrupt(std::string what) {
  return {ErrorCode::kCorrupt, "the journal's superblock: " + std::move(what)};
}

std::uint32_t field(std::span<const std::byte> bytes, std::size_t at) {
  return load_be<std::uint32_t>(bytes.data() + at);
}

std::uint32_t checksum_of(std::span<const std::byte> bytes) {
  std::array<std::byte, JournalSuperblock::kBytes> copy{};
  std::ranges::copy(bytes, copy.begin());
  store_be<std::uint32_t>(copy.data() + kChecksumAt, 0);
  return ext_crc(~0u, copy);
}

// What the features say of each other, and of the checksum.
Result<void> check_features(const JournalSuperblock& super, std::span<const std::byte> bytes) {
  const std::uint32_t read_only = field(bytes, kReadOnlyAt);
  if ((super.incompatible & ~kKnown) != 0 || read_only != 0) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the journal has features that are not understood ({:#x}, {:#x}); "
                             "e2fsck may help",
                             super.incompatible & ~kKnown, read_only)};
  }
  if (!super.has_checksums()) return {};
  const bool old = (super.compatible & JournalSuperblock::kCompatChecksum) != 0;
  if (old ||
      (super.has(JournalSuperblock::kChecksumV2) && super.has(JournalSuperblock::kChecksumV3))) {
    return corrupt("it says that there are two kinds of checksums");
  }
  const auto type = static_cast<std::uint8_t>(bytes[kChecksumTypeAt]);
  if (type != kCrc32c) return corrupt(fmt::format("checksums of kind {}", type));
  const std::uint32_t stored = field(bytes, kChecksumAt);
  const std::uint32_t found = checksum_of(bytes);
  if (stored == found) return {};
  return corrupt(fmt::format("its checksum is {:#x}, and {:#x} of what is there", stored, found));
}

// The log, and fast commits behind it.
Result<void> take_areas(JournalSuperblock& super, std::span<const std::byte> bytes) {
  super.log_end = super.blocks;
  if (super.has(JournalSuperblock::kFastCommit)) {
    JournalBlock fast = field(bytes, kFastBlocksAt);
    if (fast == 0) fast = kFastBlocksDefault;
    if (fast > super.blocks || super.blocks - fast < kLogBlocksMin) {
      return corrupt(fmt::format("{} blocks for fast commits, of {}", fast, super.blocks));
    }
    super.log_end -= fast;
  }
  if (super.first == 0 || super.first >= super.log_end) {
    return corrupt(fmt::format("the log is blocks {} to {}", super.first, super.log_end));
  }
  if (super.start != 0 && (super.start < super.first || super.start >= super.log_end)) {
    return corrupt(fmt::format("the log begins at block {}, and is blocks {} to {}", super.start,
                               super.first, super.log_end));
  }
  return {};
}

// But for the areas.
Result<JournalSuperblock> parse_fields(std::span<const std::byte> bytes, std::uint32_t block_bytes,
                                       std::uint64_t file_blocks) {
  CHECK(bytes.size() == JournalSuperblock::kBytes);
  const JournalHead head = JournalHead::of(bytes);
  const bool second = head.kind == JournalHead::Kind::kSuperblockV2;
  if (!head.is_one() || (!second && head.kind != JournalHead::Kind::kSuperblockV1)) {
    return corrupt("it is none");
  }
  JournalSuperblock super;
  super.blocks = field(bytes, kBlocksAt);
  super.first = field(bytes, kFirstAt);
  super.sequence = field(bytes, kSequenceAt);
  super.start = field(bytes, kStartAt);
  super.error = static_cast<std::int32_t>(field(bytes, kErrorAt));
  if (const std::uint32_t found = field(bytes, kBlockBytesAt); found != block_bytes) {
    return corrupt(fmt::format("blocks of {} bytes, expected {}", found, block_bytes));
  }
  if (super.blocks > file_blocks) {
    return corrupt(fmt::format("{} blocks, in a file of {}", super.blocks, file_blocks));
  }
  if (second) {
    super.compatible = field(bytes, kCompatibleAt);
    super.incompatible = field(bytes, kIncompatibleAt);
    super.seed = ext_crc(~0u, bytes.subspan(kUuidAt, kUuidBytes));
    if (const Result<void> good = check_features(super, bytes); !good) return good.error();
  }
  return super;
}

}  // namespace

Result<JournalSuperblock> JournalSuperblock::parse(std::span<const std::byte> bytes,
                                                   std::uint32_t block_bytes,
                                                   std::uint64_t file_blocks) {
  auto super = parse_fields(bytes, block_bytes, file_blocks);
  if (!super) return super;
  if (const Result<void> good = take_areas(*super, bytes); !good) return good.error();
  return super;
}

Result<void> JournalSuperblock::check(std::span<const std::byte> bytes, std::uint32_t block_bytes,
                                      std::uint64_t file_blocks) {
  if (const auto super = parse_fields(bytes, block_bytes, file_blocks); !super) {
    return super.error();
  }
  return {};
}

void empty_log(std::span<std::byte> bytes, std::uint32_t sequence) {
  CHECK(bytes.size() == JournalSuperblock::kBytes);
  store_be<std::uint32_t>(bytes.data() + kSequenceAt, sequence);
  store_be<std::uint32_t>(bytes.data() + kStartAt, 0);
  store_be<std::uint32_t>(bytes.data() + kErrorAt, 0);
  const std::uint32_t checksums = JournalSuperblock::kChecksumV2 | JournalSuperblock::kChecksumV3;
  if (JournalHead::of(bytes).kind == JournalHead::Kind::kSuperblockV2 &&
      (field(bytes, kIncompatibleAt) & checksums) != 0) {
    store_be<std::uint32_t>(bytes.data() + kChecksumAt, checksum_of(bytes));
  }
}

}  // namespace mariner::ifsck
