#include "logging/log_writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "proto/check.h"
#include "proto/crc32c.h"

namespace mariner::logging {

// Every record fits into an empty track, behind the track's header.
static_assert(1 + header_blocks_for(kRecordHeaderBytes + 4 * kRecordPayloadBlocksMax) +
                  kRecordPayloadBlocksMax <=
              kTrackBytesMin / kBlockBytes);

LogWriter::LogWriter(Disk& disk, Executor& executor, const Superblock& superblock,
                     const TrackList& tracks, LogTail tail, Options options)
    : disk_(disk),
      executor_(executor),
      superblock_(superblock),
      tracks_(tracks),
      options_(options),
      tail_(std::move(tail)) {
  CHECK(tail_.allocation + 1 >= tracks_.oldest() && tail_.allocation < tracks_.end());
  if (tail_.next_block != 0) {
    track_end_block_ =
        superblock_.track_first_block(track_of(tail_.allocation)) + superblock_.track_blocks;
  }
}

LogWriter::~LogWriter() {
  *alive_ = false;
  CHECK_MSG(!in_flight_, "a log writer is destroyed with a batch in flight");
}

void LogWriter::append(const Record& record, PayloadSlice payload, Urgency urgency, Appended done) {
  CHECK(record_is_consistent(record));
  CHECK(payload.length == std::size_t{record.payload_blocks} * kBlockBytes);
  queue_.push_back({record, std::move(payload), urgency, std::move(done), {}});
  if (!in_flight_) dispatch_soon();
}

void LogWriter::dispatch_soon() {
  if (std::exchange(dispatch_pending_, true)) return;
  executor_.defer([this, alive = alive_] {
    if (!*alive) return;
    dispatch_pending_ = false;
    dispatch();
  });
}

// Takes the longest prefix of the queue that fits `room_blocks` and the limits of a batch. Returns
// the number of blocks of its header area, 0 if not even the first record fits.
std::uint32_t LogWriter::gather(std::uint64_t room_blocks, Batch& batch) {
  // A track of the reserve is the essential records' alone, whoever else would fit into it.
  const bool essential_only = free_tracks() < options_.reserve_tracks;
  std::uint64_t packed = 0;
  std::uint64_t payload_blocks = 0;
  std::size_t count = 0;
  std::uint32_t header_blocks = 0;
  for (const Pending& pending : queue_) {
    if (essential_only && pending.urgency == Urgency::kOrdinary) break;
    const std::uint64_t next_packed = packed + pending.record.packed_bytes();
    const std::uint32_t next_header = header_blocks_for(next_packed);
    const std::uint64_t next_total = next_header + payload_blocks + pending.record.payload_blocks;
    if (next_total > room_blocks || next_header > kBatchHeaderBlocksMax) break;
    if (count > 0 &&
        (count == kBatchRecordsMax || next_total * kBlockBytes > options_.batch_bytes_max)) {
      break;
    }
    packed = next_packed;
    payload_blocks += pending.record.payload_blocks;
    header_blocks = next_header;
    ++count;
  }
  if (count == 0) return 0;
  batch.records.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    batch.records.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return header_blocks;
}

// Of an allocation that the writer has taken: those are never holes.
std::uint64_t LogWriter::track_of(std::uint64_t allocation) const {
  const std::optional<std::uint64_t> track = tracks_.track(allocation);
  CHECK(track.has_value());
  return *track;
}

bool LogWriter::take_track() {
  const std::uint64_t reserve =
      queue_.front().urgency == Urgency::kEssential ? 0 : options_.reserve_tracks;
  if (free_tracks() <= reserve) return false;
  ++tail_.allocation;
  const std::uint64_t first = superblock_.track_first_block(track_of(tail_.allocation));
  tail_.next_block = first + 1;
  track_end_block_ = first + superblock_.track_blocks;
  track_is_new_ = true;
  return true;
}

bool LogWriter::before_images_first() {
  const auto others =
      std::stable_partition(queue_.begin(), queue_.end(), [](const Pending& pending) {
        return pending.record.type == RecordType::kBeforeImage ||
               pending.record.type == RecordType::kRebase;
      });
  return others != queue_.begin();
}

void LogWriter::fail_ordinary(const Error& error) {
  std::deque<Pending> failed;
  std::deque<Pending> kept;
  for (Pending& pending : queue_) {
    (pending.urgency == Urgency::kOrdinary || failed_ ? failed : kept)
        .push_back(std::move(pending));
  }
  queue_ = std::move(kept);
  for (Pending& pending : failed) pending.done(error);
}

void LogWriter::leave_track() {
  leaving_track_ = true;
  if (in_flight_) return;  // when that is done
  tail_.next_block = 0;
  track_end_block_ = 0;
  leaving_track_ = false;
}

void LogWriter::dispatch() {
  if (in_flight_ || queue_.empty()) return;
  if (failed_) {
    fail_ordinary(Error{ErrorCode::kIo, "the log disk has failed; see the daemon's log"});
    return;
  }
  auto batch = std::make_unique<Batch>();
  for (;;) {
    if (queue_.empty()) return;
    const std::uint64_t room = tail_.next_block == 0 ? 0 : track_end_block_ - tail_.next_block;
    const std::uint32_t header_blocks = gather(room, *batch);
    if (header_blocks > 0) {
      batch->header.header_blocks = static_cast<std::uint16_t>(header_blocks);
      break;
    }
    const bool essential = queue_.front().urgency == Urgency::kEssential;
    if (!take_track()) {
      if (full_gate_ && full_gate_()) {
        // A before-image may be what the release waits for, and it has no place in the order.
        if (!essential && before_images_first()) continue;
        return;
      }
      const Error full{ErrorCode::kNoSpace,
                       "the log is full: " + std::to_string(superblock_.track_count) +
                           " tracks are in use; raise [log] max_size or delete what pins history"};
      if (essential) {
        Pending pending = std::move(queue_.front());
        queue_.pop_front();
        pending.done(full);
      } else {
        fail_ordinary(full);
      }
    }
  }
  if (track_is_new_ && track_gate_ && !track_gate_(track_of(tail_.allocation))) {
    // Put the records back in order and wait for retry().
    for (auto it = batch->records.rbegin(); it != batch->records.rend(); ++it) {
      queue_.push_front(std::move(*it));
    }
    return;
  }
  build(*batch, std::exchange(track_is_new_, false));
  write(std::move(batch));
}

void LogWriter::build(Batch& batch, bool starts_track) {
  BatchHeader& header = batch.header;
  const std::uint64_t block = tail_.next_block;
  header.record_count = static_cast<std::uint16_t>(batch.records.size());
  header.batch_number = tail_.next_batch++;
  header.allocation = tail_.allocation;
  header.block = block;
  header.previous_block = tail_.previous_batch_block;
  batch.area = Payload::allocate(std::size_t{header.header_blocks} * kBlockBytes);

  std::byte* to = batch.area.data() + kBatchHeaderBytes;
  std::uint32_t payload_offset = header.header_blocks;
  std::vector<std::uint32_t> crcs;
  for (std::size_t slot = 0; slot < batch.records.size(); ++slot) {
    Pending& pending = batch.records[slot];
    Record& record = pending.record;
    record.payload_offset = payload_offset;
    LogTail::LastRecord& last = tail_.last_records[record.volume];
    record.previous_block = last.block;
    record.previous_slot = last.slot;
    last = {block, static_cast<std::uint16_t>(slot)};
    crcs.clear();
    const ConstBytes payload = pending.payload.bytes();
    for (std::uint32_t i = 0; i < record.payload_blocks; ++i) {
      crcs.push_back(crc32c(payload.subspan(std::size_t{i} * kBlockBytes, kBlockBytes)));
    }
    pack_record(record, crcs, to);
    to += record.packed_bytes();
    pending.location = {block, payload_offset, static_cast<std::uint16_t>(slot),
                        static_cast<std::uint8_t>(header.header_blocks), superblock_.disk};
    payload_offset += record.payload_blocks;
  }
  std::byte* end = batch.area.data() + batch.area.size();
  std::memset(to, 0, static_cast<std::size_t>(end - to));
  header.total_blocks = payload_offset;
  seal_batch(header, superblock_.log, batch.area.bytes());

  batch.allocation = tail_.allocation;
  batch.first_block = block;
  batch.next_block = block + header.total_blocks;
  if (starts_track) {
    batch.track_header = Payload::allocate(kBlockBytes);
    pack_track_header({track_of(tail_.allocation), tail_.allocation, header.batch_number},
                      superblock_.log,
                      std::span<std::byte, kBlockBytes>(batch.track_header.data(), kBlockBytes));
    batch.first_block = block - 1;
  }
  tail_.next_block = batch.next_block;
  tail_.previous_batch_block = block;
}

void LogWriter::write(std::unique_ptr<Batch> batch) {
  CHECK(!in_flight_);
  CHECK(batch->next_block <= track_end_block_);
  in_flight_ = true;
  std::vector<ConstBytes> parts;
  parts.reserve(batch->records.size() + 2);
  if (batch->track_header) parts.push_back(batch->track_header.bytes());
  parts.push_back(batch->area.bytes());
  for (const Pending& pending : batch->records) {
    if (pending.payload.length > 0) parts.push_back(pending.payload.bytes());
  }
  batch->dispatched = executor_.monotonic_time();
  const std::uint64_t offset = batch->first_block * kBlockBytes;
  disk_.async_write(offset, std::move(parts), Durability::kDurable,
                    [this, batch = std::move(batch)](Result<void> result) mutable {
                      completed(std::move(batch), std::move(result));
                    });
}

// Undoes build(): the records return to the front of the queue, in order.
void LogWriter::take_back(Batch& batch) {
  CHECK(tail_.next_batch == batch.header.batch_number + 1);
  tail_.next_batch = batch.header.batch_number;
  tail_.previous_batch_block = batch.header.previous_block;
  tail_.next_block = 0;
  track_end_block_ = 0;
  for (auto it = batch.records.rbegin(); it != batch.records.rend(); ++it) {
    tail_.last_records[it->record.volume] = {it->record.previous_block, it->record.previous_slot};
    queue_.push_front(std::move(*it));
  }
  batch.records.clear();
}

void LogWriter::completed(std::unique_ptr<Batch> batch, Result<void> result) {
  CHECK(in_flight_);
  in_flight_ = false;
  if (!result) {
    if (++failures_in_a_row_ >= kFailuresMax) {
      failed_ = true;
      for (Pending& pending : batch->records) pending.done(result.error());
      fail_ordinary(result.error());
      return;
    }
    // The place may be bad: once more, in the next track, under the same numbers.
    take_back(*batch);
    dispatch_soon();
    return;
  }
  failures_in_a_row_ = 0;
  if (leaving_track_) leave_track();
  // What completions append now gathers into the next batch, which leaves at the end of this turn.
  if (!queue_.empty()) dispatch_soon();
  if (observer_) {
    observer_({static_cast<std::uint32_t>(batch->records.size()),
               batch->header.total_blocks * kBlockBytes,
               executor_.monotonic_time() - batch->dispatched});
  }
  for (Pending& pending : batch->records) pending.done(pending.location);
}

std::uint64_t LogWriter::free_tracks() const { return tracks_.end() - 1 - tail_.allocation; }

std::uint64_t LogWriter::used_bytes() const {
  if (tail_.allocation < tracks_.oldest()) return 0;
  const std::uint64_t full = tail_.allocation - tracks_.oldest();
  const std::uint64_t first = superblock_.track_first_block(track_of(tail_.allocation));
  const std::uint64_t in_track =
      tail_.next_block == 0 ? superblock_.track_blocks : tail_.next_block - first;
  return (full * superblock_.track_blocks + in_track) * kBlockBytes;
}

std::uint64_t LogWriter::limit_bytes() const {
  return superblock_.track_count * superblock_.track_blocks * kBlockBytes;
}

}  // namespace mariner::logging
