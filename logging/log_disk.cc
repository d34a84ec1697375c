#include "logging/log_disk.h"

#include <cstring>
#include <utility>
#include <vector>

#include "logging/append_placement.h"
#include "logging/batch_length.h"
#include "proto/check.h"
#include "proto/huge_pages.h"

namespace mariner::logging {
namespace {

// A payload up to this long is copied, which takes less time than its own segment costs the
// device; a longer one lies in a huge page.
constexpr std::size_t kCopiedBytesMax = std::size_t{32} << 10;
constexpr std::size_t kGatheredBytesMax = kHugePageBytes;

}  // namespace

// Every record fits into an empty track of a disk that does not rotate, behind the track's header.
static_assert(kBlockBytes + kBatchHeaderBytes + kRecordHeaderBytes + 4 * kRecordPayloadBlocksMax +
                  kRecordPayloadBlocksMax * kBlockBytes + kBlockBytes <=
              kTrackBytesMin);

LogDisk::LogDisk(Parts parts, DiskTail tail, std::unique_ptr<Placement> placement)
    : parts_(parts),
      format_(parts.superblock.batch_format()),
      tail_(std::move(tail)),
      placement_(std::move(placement)) {
  CHECK(tail_.allocation + 1 >= parts_.tracks.oldest() && tail_.allocation < parts_.tracks.end());
  CHECK(placement_ != nullptr || !parts_.superblock.rotates());
  if (!placement_) placement_ = std::make_unique<AppendPlacement>(AppendPlacement::Options{});
  if (tail_.next_sector == 0) return;
  CHECK(!parts_.superblock.rotates());
  has_track_ = true;
  const SectorRange room = room_of(tail_.allocation);
  CHECK(tail_.next_sector >= room.first && tail_.next_sector <= room.end());
  const SectorRange used{room.first, static_cast<std::uint32_t>(tail_.next_sector - room.first)};
  used_sectors_ = used.count + 1;
  placement_->start_track(room, {&used, 1}, Time{0});
}

// Of an allocation that the writer has taken or takes: those are never holes.
std::uint64_t LogDisk::track_of(std::uint64_t allocation) const {
  const std::optional<std::uint64_t> track = parts_.tracks.track(allocation);
  CHECK(track.has_value());
  return *track;
}

SectorRange LogDisk::room_of(std::uint64_t allocation) const {
  SectorRange room = parts_.superblock.track(track_of(allocation));
  if (parts_.superblock.rotates()) return room;
  return {room.first + 1, room.count - 1};
}

void LogDisk::take_track(Time now) {
  CHECK(free_tracks() > 0);
  ++tail_.allocation;
  tail_.track_first_batch = tail_.next_batch;
  has_track_ = true;
  track_is_new_ = true;
  used_sectors_ = parts_.superblock.rotates() ? 0 : 1;
  placement_->start_track(room_of(tail_.allocation), {}, now);
}

void LogDisk::leave_track(Time now) {
  // One that nothing was written to stays: recovery looks behind a few unused tracks only.
  if (!has_track_ || track_is_new_) return;
  has_track_ = false;
  placement_->start_track({}, {}, now);
}

std::uint64_t LogDisk::record_bytes_max() const {
  const std::uint64_t track_header = parts_.superblock.rotates() ? 0 : format_.sector_bytes;
  return parts_.superblock.track_bytes() - track_header - kBatchHeaderBytes;
}

std::size_t LogDisk::batch_length(const std::deque<PendingRecord>& queue, std::uint32_t bytes_max,
                                  Time now) const {
  std::vector<std::uint32_t> sectors;  // of a batch of so many
  std::uint64_t packed = 0;
  std::uint64_t payload = 0;
  for (const PendingRecord& pending : queue) {
    packed += pending.record.packed_bytes();
    payload += std::uint64_t{pending.record.payload_blocks} * kBlockBytes;
    const std::uint32_t header = header_sectors_for(packed, format_.sector_bytes);
    const std::uint64_t bytes = std::uint64_t{header} * format_.sector_bytes + payload;
    if (header > format_.header_sectors_max() || sectors.size() == kBatchRecordsMax ||
        (!sectors.empty() && bytes > bytes_max)) {
      break;
    }
    sectors.push_back(static_cast<std::uint32_t>(bytes / format_.sector_bytes));
  }
  if (parts_.superblock.rotates()) return logging::batch_length(*placement_, sectors, now);
  // Each place is as good as another.
  while (!sectors.empty() && sectors.back() > placement_->room()) sectors.pop_back();
  return sectors.size();
}

void LogDisk::build(LogBatch& batch, std::uint64_t ordinal_frontier, Time now) {
  CHECK(!batch.records.empty() && has_track_);
  BatchHeader& header = batch.header;
  std::uint64_t packed = 0;
  std::uint32_t payload_sectors = 0;
  for (const PendingRecord& pending : batch.records) {
    packed += pending.record.packed_bytes();
    payload_sectors += pending.record.payload_blocks * format_.sectors_per_block();
  }
  header.header_sectors =
      static_cast<std::uint16_t>(header_sectors_for(packed, format_.sector_bytes));
  header.total_sectors = header.header_sectors + payload_sectors;
  const auto place = placement_->place(header.total_sectors, now);
  CHECK(place.has_value());
  batch.sectors = {place->sector, header.total_sectors};
  placement_->dispatched(batch.sectors, now);
  used_sectors_ += header.total_sectors;

  header.record_count = static_cast<std::uint16_t>(batch.records.size());
  header.batch_number = tail_.next_batch++;
  header.allocation = tail_.allocation;
  header.sector = batch.sectors.first;
  header.previous_sector = std::exchange(tail_.previous_batch_sector, header.sector);
  header.ordinal_frontier = ordinal_frontier;
  header.track_first_batch = tail_.track_first_batch;
  const bool begins_track = std::exchange(track_is_new_, false) && !parts_.superblock.rotates();
  const Headers headers = lay_out(batch, begins_track);
  pack(batch, headers.area);
  batch.first_sector = batch.sectors.first;
  if (!begins_track) return;
  --batch.first_sector;
  pack_track_header({track_of(tail_.allocation), tail_.allocation, header.batch_number},
                    format_.log, headers.track);
}

LogDisk::Headers LogDisk::lay_out(LogBatch& batch, bool with_track_header) const {
  const std::size_t track_bytes = with_track_header ? format_.sector_bytes : 0;
  const std::size_t area_bytes = std::size_t{batch.header.header_sectors} * format_.sector_bytes;
  // Of a payload, and of all that is gathered.
  const auto is_copied = [](const PendingRecord& pending, std::size_t gathered) {
    return pending.payload.length <= kCopiedBytesMax &&
           gathered + pending.payload.length <= kGatheredBytesMax;
  };
  std::size_t gathered = track_bytes + area_bytes;
  for (const PendingRecord& pending : batch.records) {
    if (is_copied(pending, gathered)) gathered += pending.payload.length;
  }
  batch.gathered = Payload::allocate(gathered);
  std::byte* const begin = batch.gathered.data();
  batch.parts.clear();
  std::size_t from = 0;  // of the part that is being gathered
  std::size_t at = track_bytes + area_bytes;
  for (const PendingRecord& pending : batch.records) {
    const ConstBytes payload = pending.payload.bytes();
    if (payload.empty()) continue;
    if (is_copied(pending, at)) {
      std::memcpy(begin + at, payload.data(), payload.size());
      at += payload.size();
      continue;
    }
    if (at > from) batch.parts.emplace_back(begin + from, at - from);
    batch.parts.push_back(payload);
    from = at;
  }
  if (at > from) batch.parts.emplace_back(begin + from, at - from);
  return {{begin, track_bytes}, {begin + track_bytes, area_bytes}};
}

// The header area, and with it the records' places.
void LogDisk::pack(LogBatch& batch, std::span<std::byte> area) {
  const BatchHeader& header = batch.header;
  std::byte* to = area.data() + kBatchHeaderBytes;
  std::uint32_t payload_offset = header.header_sectors;
  std::uint16_t slot = 0;
  for (PendingRecord& pending : batch.records) {
    Record& record = pending.record;
    record.payload_offset = payload_offset;
    DiskTail::LastRecord& last = tail_.last_records[record.volume];
    record.previous_sector = last.sector;
    record.previous_slot = last.slot;
    last = {header.sector, slot};
    pack_record(record, pending.block_crcs, to);
    to += record.packed_bytes();
    pending.location = {header.sector, payload_offset, slot++,
                        static_cast<std::uint8_t>(header.header_sectors), number()};
    payload_offset += record.payload_blocks * format_.sectors_per_block();
  }
  std::memset(to, 0, static_cast<std::size_t>(area.data() + area.size() - to));
  seal_batch(header, format_, area);
}

void LogDisk::take_back(const LogBatch& batch, Time now) {
  CHECK(tail_.next_batch == batch.header.batch_number + 1);
  tail_.next_batch = batch.header.batch_number;
  tail_.previous_batch_sector = batch.header.previous_sector;
  for (auto it = batch.records.rbegin(); it != batch.records.rend(); ++it) {
    tail_.last_records[it->record.volume] = {it->record.previous_sector, it->record.previous_slot};
  }
  // The place may be bad.
  leave_track(now);
}

std::uint64_t LogDisk::history_bytes() const {
  if (tail_.allocation < parts_.tracks.oldest()) return 0;
  const std::uint64_t complete = tail_.allocation - parts_.tracks.oldest();
  const std::uint64_t in_track =
      has_track_ ? used_sectors_ * format_.sector_bytes : parts_.superblock.track_bytes();
  return complete * parts_.superblock.track_bytes() + in_track;
}

std::uint64_t LogDisk::used_bytes() const {
  if (parts_.room == nullptr) return history_bytes();
  const std::uint64_t track_bytes = parts_.superblock.track_bytes();
  const std::uint64_t free = parts_.room->free_tracks(tail_.allocation);
  const std::uint64_t not_yet = has_track_ ? track_bytes - used_sectors_ * format_.sector_bytes : 0;
  const std::uint64_t used = limit_bytes() - std::min(limit_bytes(), free * track_bytes);
  return used - std::min(used, not_yet);
}

}  // namespace mariner::logging
