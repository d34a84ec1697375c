// The parsers of a log disk's structures. What they accept they pack again, and its CRCs are made
// to fit first, so that the bytes get past them to the rules behind.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "logging/batch.h"
#include "logging/record.h"
#include "logging/slot_map.h"
#include "logging/track.h"
#include "proto/bytes.h"
#include "proto/check.h"
#include "proto/crc32c.h"

namespace {

using namespace mariner;           // NOLINT: the fuzzer's only subject
using namespace mariner::logging;  // NOLINT

void check_record(const UnpackedRecord& unpacked) {
  const Record& record = unpacked.record;
  CHECK(record_is_consistent(record));
  CHECK(unpacked.packed_bytes == record.packed_bytes());
  std::vector<std::uint32_t> crcs(record.payload_blocks);
  for (std::size_t i = 0; i < crcs.size(); ++i) {
    crcs[i] = load_le<std::uint32_t>(unpacked.block_crcs.data() + 4 * i);
  }
  std::vector<std::byte> packed(record.packed_bytes());
  pack_record(record, crcs, packed.data());
  const auto again = unpack_record(packed);
  CHECK(again.has_value() && again->record == record);
  // The pieces cover the extent in order, from payload that exists.
  Lbn at = record.extent.first;
  for (const RecordPiece& piece : pieces_of(record)) {
    CHECK(piece.range.first == at && !piece.range.empty() && piece.range.end() > at);
    at = piece.range.end();
    const std::uint64_t blocks = piece.kind == RecordPiece::Kind::kPayload ? piece.range.count.value
                                 : piece.kind == RecordPiece::Kind::kRepeated ? 1
                                                                              : 0;
    CHECK(piece.payload_block + blocks <= record.payload_blocks);
  }
  const bool has_contents = !record.extent.empty() && record.type != RecordType::kRebase;
  CHECK(!has_contents || at == record.extent.end());
}

void fuzz_batch(std::span<const std::byte> bytes) {
  const LogId log{};
  std::vector<std::byte> area(bytes.begin(), bytes.end());
  const std::size_t blocks = std::clamp<std::size_t>((area.size() + kBlockBytes - 1) / kBlockBytes,
                                                     1, BatchFormat(log).header_sectors_max());
  area.resize(blocks * kBlockBytes);
  const std::uint64_t block = load_le<std::uint64_t>(area.data() + 40);
  static_cast<void>(parse_batch(area, log, block));
  store_le(area.data(), std::uint32_t{0x4854424d});
  store_le(area.data() + 8, std::uint16_t{2});
  store_le(area.data() + 12, static_cast<std::uint16_t>(blocks));
  store_le(area.data() + 20, std::uint32_t{0});
  store_le(area.data() + 4, std::uint32_t{0});
  store_le(area.data() + 4, crc32c(area, crc32c(log)));
  const auto batch = parse_batch(area, log, block);
  if (!batch) return;
  CHECK(batch->records.size() == batch->header.record_count);
  std::uint64_t end = batch->header.header_sectors;
  for (const UnpackedRecord& record : batch->records) {
    check_record(record);
    CHECK(record.record.payload_offset == end);
    end += record.record.payload_blocks;
  }
  CHECK(end == batch->header.total_sectors);
}

void fuzz_block(std::span<const std::byte> bytes) {
  std::array<std::byte, kBlockBytes> block{};
  std::ranges::copy(bytes.first(std::min<std::size_t>(bytes.size(), kBlockBytes)), block.begin());
  static_cast<void>(unpack_superblock(block));
  static_cast<void>(unpack_track_header(block, LogId{}, 0));
  constexpr std::uint64_t kSuperblockMagic = 0x474f4c4e4952414d;
  constexpr std::uint64_t kTrackMagic = 0x4b4152544e52414d;
  constexpr std::pair<std::uint64_t, std::uint32_t> kKinds[] = {
      {kSuperblockMagic, 3}, {kSuperblockMagic, 4}, {kTrackMagic, 1}};
  for (const auto& [magic, version] : kKinds) {
    store_le(block.data(), magic);
    store_le(block.data() + 8, version);
    store_le(block.data() + 12, std::uint32_t{0});
    store_le(block.data() + 12, crc32c(block));
    if (const auto superblock = unpack_superblock(block)) {
      CHECK(superblock->end_sector() > kReservedBlocks);
      CHECK(superblock->has_slots() == (version == 4));
      std::array<std::byte, kBlockBytes> packed;
      pack_superblock(*superblock, packed);
      CHECK(unpack_superblock(packed) == superblock);
    }
    LogId log;
    std::ranges::copy(std::span(block).subspan(16, log.size()), log.begin());
    const auto track = load_le<std::uint64_t>(block.data() + 32);
    if (const auto header = unpack_track_header(block, log, track)) {
      std::array<std::byte, kBlockBytes> packed;
      pack_track_header(*header, log, packed);
      CHECK(unpack_track_header(packed, log, track) == header);
    }
  }
}

void fuzz_slot_map(std::span<const std::byte> bytes) {
  Superblock superblock{.track_sectors = kTrackBytesMin / kBlockBytes, .track_count = 128};
  superblock.slot_count = 16;
  std::array<std::byte, kBlockBytes> block{};
  std::ranges::copy(bytes.first(std::min<std::size_t>(bytes.size(), kBlockBytes)), block.begin());
  static_cast<void>(SlotMap::from_bytes(superblock, block).has_value());
  store_le(block.data(), std::uint64_t{0x544f4c534e52414d});
  store_le(block.data() + 8, std::uint32_t{1});
  std::ranges::fill(std::span(block).subspan(16, 16), std::byte{0});  // of the log
  store_le(block.data() + 68, std::uint32_t{0});
  store_le(block.data() + 12, std::uint32_t{0});
  store_le(block.data() + 12, crc32c(block));
  const auto found = SlotMap::from_bytes(superblock, block);
  if (!found) return;
  const auto again = SlotMap::from_bytes(superblock, found->map.to_bytes(found->generation));
  CHECK(again.has_value() && again->map == found->map && again->generation == found->generation);
  // Whatever it says, each slot is free or used, and can be given back.
  SlotMap map = found->map;
  for (std::uint64_t track = 0; track < superblock.track_count; ++track) map.release(track);
  for (const auto& [id, pack] : map.packs()) {
    CHECK(std::ranges::all_of(pack.tracks, [](auto t) { return t == PackPlace::kFreed; }));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data + 1, size - 1));
  switch (data[0] % 4) {
    case 0:
      if (const auto record = unpack_record(bytes)) check_record(*record);
      break;
    case 1: fuzz_batch(bytes); break;
    case 2: fuzz_slot_map(bytes); break;
    default: fuzz_block(bytes); break;
  }
  return 0;
}
