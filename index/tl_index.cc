#include "index/tl_index.h"

#include <array>
#include <memory>
#include <utility>

#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::index {
namespace {

// Offsets in the value.
constexpr std::size_t kAtType = 0;
constexpr std::size_t kAtFlags = 1;
constexpr std::size_t kAtPayloadBlocks = 2;
constexpr std::size_t kAtEpoch = 4;
constexpr std::size_t kAtFirst = 12;  // of a rollback: its target, 8 bytes
constexpr std::size_t kAtCount = 17;
constexpr std::size_t kAtBatchSector = 22;
constexpr std::size_t kAtPayloadOffset = 28;
constexpr std::size_t kAtSlot = 32;
constexpr std::size_t kAtHeaderSectors = 34;
constexpr std::size_t kAtDisk = 35;

// Numbers below 2^(8 * kBytes).
template <std::size_t kBytes>
void store_short(std::byte* to, std::uint64_t value) {
  CHECK(value >> (8 * kBytes) == 0);
  std::memcpy(to, &value, kBytes);
}
template <std::size_t kBytes>
std::uint64_t load_short(const std::byte* from) {
  std::uint64_t value = 0;
  std::memcpy(&value, from, kBytes);
  return value;
}

}  // namespace

void pack_indexed_write(const IndexedWrite& write, std::span<std::byte, kIndexedWriteBytes> bytes) {
  std::byte* const to = bytes.data();
  std::memset(to, 0, bytes.size());
  store_le(to + kAtType, static_cast<std::uint8_t>(write.type));
  store_short<1>(to + kAtFlags, write.flags);
  store_short<2>(to + kAtPayloadBlocks, write.payload_blocks);
  store_le<std::uint64_t>(to + kAtEpoch, write.epoch.value);
  if (write.type == logging::RecordType::kRollback) {
    store_le<std::uint64_t>(to + kAtFirst, write.target_sequence.value);
  } else {
    store_short<5>(to + kAtFirst, write.extent.first.value);
    store_short<5>(to + kAtCount, write.extent.count.value);
  }
  store_short<6>(to + kAtBatchSector, write.location.batch_sector);
  store_le<std::uint32_t>(to + kAtPayloadOffset, write.location.payload_offset);
  store_le<std::uint16_t>(to + kAtSlot, write.location.slot);
  store_le<std::uint8_t>(to + kAtHeaderSectors, write.location.header_sectors);
  store_le<std::uint8_t>(to + kAtDisk, write.location.disk);
}

IndexedWrite unpack_indexed_write(IndexKey key, std::span<const std::byte> bytes) {
  CHECK(bytes.size() == kIndexedWriteBytes);
  const std::byte* const from = bytes.data();
  IndexedWrite write;
  write.type = static_cast<logging::RecordType>(load_le<std::uint8_t>(from + kAtType));
  write.flags = load_le<std::uint8_t>(from + kAtFlags);
  write.payload_blocks = load_le<std::uint16_t>(from + kAtPayloadBlocks);
  write.sequence = {key.high};
  write.time = {key.low};
  write.epoch = {load_le<std::uint64_t>(from + kAtEpoch)};
  if (write.type == logging::RecordType::kRollback) {
    write.target_sequence = {load_le<std::uint64_t>(from + kAtFirst)};
  } else {
    write.extent = {{load_short<5>(from + kAtFirst)}, {load_short<5>(from + kAtCount)}};
  }
  write.location.batch_sector = load_short<6>(from + kAtBatchSector);
  write.location.payload_offset = load_le<std::uint32_t>(from + kAtPayloadOffset);
  write.location.slot = load_le<std::uint16_t>(from + kAtSlot);
  write.location.header_sectors = load_le<std::uint8_t>(from + kAtHeaderSectors);
  write.location.disk = load_le<std::uint8_t>(from + kAtDisk);
  return write;
}

IndexedWrite indexed_write_of(const logging::Record& record, const logging::LogLocation& location) {
  return {record.type,  record.flags,  record.payload_blocks,  record.sequence, record.time,
          record.epoch, record.extent, record.target_sequence, location};
}

void TlIndex::insert(const IndexedWrite& write, std::uint64_t number) {
  std::array<std::byte, kIndexedWriteBytes> value{};
  pack_indexed_write(write, value);
  tree_.insert({write.sequence.value, write.time.ns}, value, number);
}

void TlIndex::restore(const IndexedWrite& write, KeyRange range) {
  const IndexKey key{write.sequence.value, write.time.ns};
  if (!range.contains(key)) return;
  std::array<std::byte, kIndexedWriteBytes> value{};
  pack_indexed_write(write, value);
  tree_.restore(key, value);
}

void TlIndex::for_each(SequenceNumber after, SequenceNumber at,
                       UniqueFunction<bool(const IndexedWrite&)> visit,
                       UniqueFunction<void(Result<void>)> done) {
  if (at <= after) return done({});
  tree_.scan(
      {{after.value + 1, 0}, {at.value, UINT64_MAX}}, BTree::Direction::kAscending,
      [visit = std::move(visit)](IndexKey key, BTree::Value value) mutable {
        return visit(unpack_indexed_write(key, value));
      },
      std::move(done));
}

void TlIndex::find(SequenceNumber at, Found found) {
  tree_.find_last({{}, {at.value, UINT64_MAX}}, [found = std::move(found)](
                                                    Result<std::optional<IndexRecord>> r) mutable {
    if (!r) return found(r.error());
    if (!*r) return found(std::optional<IndexMoment>{});
    found(std::optional<IndexMoment>{IndexMoment{{(*r)->key.high}, {(*r)->key.low}}});
  });
}

// Times ascend with the numbers: the leaf that has the last one is known, and is walked.
void TlIndex::find(VersionTime at, Found found) {
  const IndexKey low = tree_.last_low([at](IndexKey key) { return key.low <= at.ns; });
  auto last = std::make_shared<std::optional<IndexMoment>>();
  tree_.scan(
      {low, IndexKey::max()}, BTree::Direction::kAscending,
      [last, at](IndexKey key, BTree::Value) {
        if (key.low > at.ns) return false;
        *last = IndexMoment{{key.high}, {key.low}};
        return true;
      },
      [last, found = std::move(found)](const Result<void>& r) mutable {
        if (!r) return found(r.error());
        found(*last);
      });
}

}  // namespace mariner::index
