#include "logging/track_verifier.h"

#include <algorithm>
#include <utility>

#include "proto/bytes.h"
#include "proto/check.h"
#include "proto/crc32c.h"

namespace mariner::logging {
namespace {

// Whose time is that of a moment; before-images and voids carry others.
bool makes_moment(const Record& record) {
  return record.type == RecordType::kWrite || record.type == RecordType::kZero ||
         record.type == RecordType::kRollback;
}

// The blocks of the volume that one block of the payload is of. None of a mark.
BlockRange extent_of(const Record& record, std::uint32_t payload_block) {
  for (const RecordPiece& piece : pieces_of(record)) {
    if (piece.kind == RecordPiece::Kind::kZero || payload_block < piece.payload_block) continue;
    const BlockCount into{payload_block - piece.payload_block};
    if (piece.kind == RecordPiece::Kind::kRepeated) {
      if (into.value == 0) return piece.range;
    } else if (into < piece.range.count) {
      return {piece.range.first + into, {1}};
    }
  }
  return {};
}

}  // namespace

TrackVerifier::TrackVerifier(const Superblock& superblock, const Request& request)
    : superblock_(superblock),
      request_(request),
      first_block_(superblock.track_first_sector(request.track)),
      end_block_(first_block_ + superblock.track_sectors),
      at_(first_block_),
      // Track headers that contradict each other are damage too; nothing is known then.
      expected_(request.expected_batch <= request.end_batch ? request.expected_batch : 0),
      last_time_(request.last_time) {
  CHECK(can_verify(superblock));
}

TrackVerifier::Piece TrackVerifier::next() const {
  if (state_ == State::kDone) return {};
  return {at_,
          static_cast<std::uint32_t>(std::min<std::uint64_t>(piece_blocks_, end_block_ - at_))};
}

void TrackVerifier::take(std::span<const std::byte> bytes) {
  const Piece piece = next();
  CHECK(bytes.size() == std::size_t{piece.count} * kBlockBytes && piece.count > 0);
  for (std::uint32_t i = 0; i < piece.count; ++i) {
    consume(piece.block + i, bytes.subspan(std::size_t{i} * kBlockBytes, kBlockBytes));
  }
  at_ += piece.count;
  piece_blocks_ = std::min(kPieceBlocks, 2 * piece_blocks_);
  if (at_ == end_block_) end_of_track();
}

void TrackVerifier::unreadable() {
  const Piece piece = next();
  CHECK(piece.count > 0);
  if (piece.count > 1) {
    piece_blocks_ = piece.count / 2;
    return;
  }
  consume(at_++, {});
  if (at_ == end_block_) end_of_track();
}

void TrackVerifier::consume(std::uint64_t block, std::span<const std::byte> bytes) {
  switch (state_) {
    case State::kTrackHeader: return take_track_header(bytes);
    case State::kBatch:
    case State::kSearch: return begin_batch(block, bytes);
    case State::kArea: return take_area(block, bytes);
    case State::kPayload: return take_payload(block, bytes);
    case State::kDone: return;
  }
}

void TrackVerifier::take_track_header(std::span<const std::byte> bytes) {
  std::optional<TrackHeader> header;
  if (!bytes.empty()) {
    header = unpack_track_header(bytes.first<kBlockBytes>(), superblock_.log, request_.track);
  }
  if (header && header->allocation == request_.allocation) {
    if (expected_ != 0 && header->first_batch > expected_) {
      lost_from_ = first_block_;
      add_lost(header->first_batch - 1, first_block_, {});
    }
    expected_ = header->first_batch;
    state_ = expected_ < request_.end_batch ? State::kBatch : State::kDone;
    return;
  }
  // A write that failed may have left the track unused. Only a batch in it, or one that is missing,
  // shows that it was not.
  header_missing_ = true;
  header_unreadable_ = bytes.empty();
  lost_from_ = first_block_ + 1;
  search_min_ = expected_;
  state_ = expected_ == request_.end_batch ? State::kDone : State::kSearch;
}

// A batch should begin at `block`, or may.
void TrackVerifier::begin_batch(std::uint64_t block, std::span<const std::byte> bytes) {
  const bool searching = state_ == State::kSearch;
  std::optional<BatchHeader> peeked;
  if (!bytes.empty()) peeked = peek_batch(bytes, superblock_.batch_format());
  const auto is_wanted = [&](std::uint64_t number) {
    return searching ? number >= search_min_ && number < request_.end_batch : number == expected_;
  };
  if (!peeked || peeked->sector != block || peeked->allocation != request_.allocation ||
      peeked->total_sectors > end_block_ - block || !is_wanted(peeked->batch_number)) {
    if (!searching) lose(block);
    lost_unreadable_ = lost_unreadable_ || bytes.empty();
    return;
  }
  area_block_ = block;
  area_bytes_ = std::size_t{peeked->header_sectors} * kBlockBytes;
  area_was_searched_ = searching;
  area_.assign(bytes.begin(), bytes.end());
  state_ = State::kArea;
  if (area_.size() == area_bytes_) finish_area();
}

void TrackVerifier::take_area(std::uint64_t block, std::span<const std::byte> bytes) {
  if (bytes.empty()) {
    area_failed();
    return consume(block, bytes);
  }
  area_.insert(area_.end(), bytes.begin(), bytes.end());
  if (area_.size() == area_bytes_) finish_area();
}

void TrackVerifier::finish_area() {
  const std::optional<ParsedBatch> batch =
      parse_batch(area_, superblock_.batch_format(), area_block_);
  if (!batch) return area_failed();
  found(*batch);
}

// What looked like a batch is none: what was gathered of it may hold the next one.
void TrackVerifier::area_failed() {
  const std::vector<std::byte> blocks = std::move(area_);
  const std::uint64_t first = area_block_;
  area_.clear();
  state_ = State::kSearch;
  if (!area_was_searched_) lose(first);
  for (std::size_t at = kBlockBytes; at < blocks.size(); at += kBlockBytes) {
    consume(first + at / kBlockBytes, std::span(blocks).subspan(at, kBlockBytes));
  }
}

void TrackVerifier::found(const ParsedBatch& batch) {
  const std::uint64_t number = batch.header.batch_number;
  const auto first =
      std::find_if(batch.records.begin(), batch.records.end(),
                   [](const UnpackedRecord& unpacked) { return makes_moment(unpacked.record); });
  if (std::exchange(header_missing_, false)) {
    TrackDamage damage = here(TrackDamage::Kind::kTrackHeader, first_block_);
    damage.unreadable = header_unreadable_;
    add(damage);
    // A header and its first batch are one write: what stands there instead is lost, one at least.
    if (expected_ == 0) expected_ = number - (area_block_ == first_block_ + 1 ? 0 : 1);
  }
  if (area_was_searched_ && number > expected_) {
    add_lost(number - 1, area_block_,
             first == batch.records.end() ? VersionTime{} : first->record.time);
  }
  expected_ = number;
  records_.clear();
  crcs_.clear();
  for (const UnpackedRecord& unpacked : batch.records) {
    if (makes_moment(unpacked.record)) last_time_ = std::max(last_time_, unpacked.record.time);
    if (unpacked.record.payload_blocks == 0) continue;
    records_.push_back({unpacked.record, crcs_.size()});
    for (std::size_t i = 0; i < unpacked.record.payload_blocks; ++i) {
      crcs_.push_back(load_le<std::uint32_t>(unpacked.block_crcs.data() + 4 * i));
    }
  }
  record_ = 0;
  payload_block_ = 0;
  state_ = State::kPayload;
  if (records_.empty()) next_record();
}

void TrackVerifier::take_payload(std::uint64_t block, std::span<const std::byte> bytes) {
  const Stored& stored = records_[record_];
  if (bytes.empty() || crc32c(bytes) != crcs_[stored.first_crc + payload_block_]) {
    add_payload(block, payload_block_, bytes.empty());
  }
  if (++payload_block_ < stored.record.payload_blocks) return;
  payload_block_ = 0;
  ++record_;
  next_record();
}

void TrackVerifier::next_record() {
  if (record_ < records_.size()) return;
  ++expected_;
  state_ = expected_ < request_.end_batch ? State::kBatch : State::kDone;
}

// The batch that should stand at `block` does not.
void TrackVerifier::lose(std::uint64_t block) {
  lost_from_ = block;
  lost_unreadable_ = false;
  search_min_ = expected_ + 1;
  state_ = State::kSearch;
}

void TrackVerifier::end_of_track() {
  if (state_ == State::kDone) return;
  CHECK(state_ == State::kBatch || state_ == State::kSearch);
  if (state_ == State::kBatch) lose(end_block_);
  state_ = State::kDone;
  if (header_missing_ && expected_ == 0) {
    TrackDamage damage = here(TrackDamage::Kind::kTrackHeader, first_block_);
    damage.unreadable = header_unreadable_;
    damage.last_batch = request_.end_batch - 1;
    add(damage);
    expected_ = request_.end_batch;
  } else if (request_.ends_here) {
    add_lost(request_.end_batch - 1, end_block_, {});
    expected_ = request_.end_batch;
  }
}

TrackDamage TrackVerifier::here(TrackDamage::Kind kind, std::uint64_t block) const {
  return {.kind = kind,
          .track = request_.track,
          .allocation = request_.allocation,
          .first_block = block,
          .block_count = 1};
}

void TrackVerifier::add_lost(std::uint64_t last_batch, std::uint64_t end_block,
                             VersionTime before) {
  TrackDamage damage = here(TrackDamage::Kind::kBatches, lost_from_);
  damage.unreadable = lost_unreadable_;
  damage.block_count = end_block - lost_from_;
  damage.first_batch = expected_;
  damage.last_batch = last_batch;
  damage.after = last_time_;
  damage.before = before;
  add(damage);
}

void TrackVerifier::add_payload(std::uint64_t block, std::uint32_t payload_block, bool unreadable) {
  const Record& record = records_[record_].record;
  TrackDamage damage = here(TrackDamage::Kind::kPayload, block);
  damage.unreadable = unreadable;
  damage.type = record.type;
  damage.volume = record.volume;
  damage.sequence = record.sequence;
  damage.time = record.time;
  damage.extent = extent_of(record, payload_block);
  if (!damage_.empty() && payload_block > 0) {
    TrackDamage& last = damage_.back();
    TrackDamage joined = last;
    joined.block_count = 1;
    joined.first_block = block;
    joined.extent = damage.extent;
    if (joined == damage && last.first_block + last.block_count == block &&
        last.extent.end() == damage.extent.first) {
      ++damaged_blocks_;
      ++last.block_count;
      last.extent.count = last.extent.count + damage.extent.count;
      return;
    }
  }
  add(damage);
}

void TrackVerifier::add(const TrackDamage& damage) {
  damaged_blocks_ += damage.block_count;
  if (damage_.size() < kDamageMax) {
    damage_.push_back(damage);
    return;
  }
  TrackDamage& last = damage_.back();
  TrackDamage more = here(TrackDamage::Kind::kMore, last.first_block);
  more.block_count = damage.first_block + damage.block_count - last.first_block;
  last = more;
}

}  // namespace mariner::logging
