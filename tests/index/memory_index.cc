#include "tests/index/memory_index.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "proto/check.h"

namespace mariner::index {

using logging::Record;
using logging::RecordPiece;
using logging::RecordType;

namespace {

// The piece structure of a write, from what the index remembers of its record.
logging::RecordPieces pieces_of_write(const IndexedWrite& write) {
  Record record;
  record.type = write.type;
  record.flags = write.flags;
  record.extent = write.extent;
  record.payload_blocks = write.payload_blocks;
  return logging::pieces_of(record);
}

}  // namespace

void MemoryIndex::insert(const Record& record, const logging::LogLocation& location) {
  payload_bytes_ += std::uint64_t{record.payload_blocks} * kBlockBytes;
  switch (record.type) {
    case RecordType::kBeforeImage: insert_before_image(record, location); return;
    case RecordType::kRebase: drop_before_images(record.extent); return;
    case RecordType::kMark:
    case RecordType::kVoid:
    case RecordType::kGap:
    case RecordType::kWithdrawal: return;  // no version
    case RecordType::kRelocated:
    case RecordType::kEncoded: return;  // not produced by this format version
    case RecordType::kWrite:
    case RecordType::kZero:
    case RecordType::kRollback: break;
  }
  CHECK(writes_.empty() ||
        (record.sequence > writes_.back().sequence && record.time > writes_.back().time));
  CHECK(writes_.size() < kNone / 2);
  CHECK(record.extent.end().value <= kBlocksMax);
  const WriteNumber number = first_number_ + static_cast<WriteNumber>(writes_.size());
  forgotten_.push_back(false);
  writes_.push_back({record.type, record.flags, record.payload_blocks, record.sequence, record.time,
                     record.epoch, record.extent, record.target_sequence, location});
  if (record.type == RecordType::kRollback) {
    rollbacks_.push_back({record.sequence, record.target_sequence});
  } else {
    cut_extent(record.extent,
               [&](unsigned level, std::uint64_t run) { insert_run(level, run, number); });
  }
}

template <typename Use>
void MemoryIndex::cut_extent(BlockRange extent, Use use) {
  std::uint64_t at = extent.first.value;
  const std::uint64_t end = extent.end().value;
  while (at < end) {
    // The largest aligned run that starts here and fits.
    const unsigned aligned = at == 0 ? 63u : static_cast<unsigned>(std::countr_zero(at));
    const auto fits = static_cast<unsigned>(std::bit_width(end - at) - 1);
    const unsigned level = std::min({aligned, fits, (kLevels - 1) * kFanoutBits}) / kFanoutBits;
    use(level, at >> (level * kFanoutBits));
    at += std::uint64_t{1} << (level * kFanoutBits);
  }
}

void MemoryIndex::insert_run(unsigned level, std::uint64_t run, WriteNumber number) {
  const auto [it, created] = nodes_.try_emplace(key(level, run));
  it->second.writes.push_back(number);
  if (!created) return;
  // Make the node reachable: set its bit in its parent, and so on up to one that was there.
  while (level + 1 < kLevels) {
    const auto bit = static_cast<std::uint8_t>(1u << (run & ((1u << kFanoutBits) - 1)));
    run >>= kFanoutBits;
    ++level;
    const auto [parent, fresh] = nodes_.try_emplace(key(level, run));
    parent->second.children = static_cast<std::uint8_t>(parent->second.children | bit);
    if (!fresh) return;
  }
}

void MemoryIndex::forget(const Record& record, const logging::LogLocation& location) {
  payload_bytes_ -= std::uint64_t{record.payload_blocks} * kBlockBytes;
  if (record.type == RecordType::kBeforeImage) return forget_before_image(record, location);
  if (record.type != RecordType::kWrite && record.type != RecordType::kZero &&
      record.type != RecordType::kRollback) {
    return;  // no version
  }
  const auto found = std::lower_bound(
      writes_.begin(), writes_.end(), record.sequence,
      [](const IndexedWrite& write, SequenceNumber s) { return write.sequence < s; });
  if (found == writes_.end() || found->sequence != record.sequence) return;
  const auto place = static_cast<Place>(found - writes_.begin());
  if (std::exchange(forgotten_[place], true)) return;
  if (record.type == RecordType::kRollback) {
    std::erase_if(rollbacks_, [&](const Rollback& r) { return r.sequence == record.sequence; });
  } else {
    const WriteNumber number = first_number_ + place;
    cut_extent(found->extent,
               [&](unsigned level, std::uint64_t run) { forget_run(level, run, number); });
  }
  while (!writes_.empty() && forgotten_.front()) {
    if (writes_.front().sequence > floor_.sequence) {
      floor_ = {writes_.front().sequence, writes_.front().time};
    }
    writes_.pop_front();
    forgotten_.pop_front();
    ++first_number_;
  }
}

void MemoryIndex::forget_run(unsigned level, std::uint64_t run, WriteNumber number) {
  auto found = nodes_.find(key(level, run));
  CHECK(found != nodes_.end());
  auto& writes = found->second.writes;
  const auto here = std::find(writes.begin(), writes.end(), number);
  CHECK(here != writes.end());
  writes.erase(here);
  // Nodes that hold nothing go, and with them the way to them.
  while (found->second.writes.empty() && found->second.children == 0) {
    nodes_.erase(found);
    if (++level == kLevels) return;
    const auto bit = static_cast<std::uint8_t>(1u << (run & ((1u << kFanoutBits) - 1)));
    run >>= kFanoutBits;
    found = nodes_.find(key(level, run));
    CHECK(found != nodes_.end());
    found->second.children = static_cast<std::uint8_t>(found->second.children & ~bit);
  }
}

void MemoryIndex::forget_before_image(const Record& record, const logging::LogLocation& location) {
  auto at = before_images_.lower_bound(record.extent.first);
  while (at != before_images_.end() && at->first < record.extent.end()) {
    at = at->second.location == location ? before_images_.erase(at) : std::next(at);
  }
}

void MemoryIndex::set_horizon(IndexMoment horizon) {
  if (horizon.sequence >= horizon_.sequence) horizon_ = horizon;
  if (horizon.sequence > floor_.sequence) floor_ = horizon;
}

std::vector<SequenceNumber> MemoryIndex::rollback_targets(SequenceNumber after) const {
  std::vector<SequenceNumber> targets;
  for (const Rollback& rollback : rollbacks_) {
    if (rollback.sequence > after) targets.push_back(rollback.target);
  }
  return targets;
}

SequenceNumber MemoryIndex::last_rollback() const {
  return rollbacks_.empty() ? SequenceNumber{} : rollbacks_.back().sequence;
}

void MemoryIndex::insert_before_image(const Record& record, const logging::LogLocation& location) {
  if ((record.flags & logging::kReplaces) != 0) drop_before_images(record.extent);
  // A crash may have logged the same base blocks twice: the first stays.
  Lbn at = record.extent.first;
  while (at < record.extent.end()) {
    auto next = before_images_.upper_bound(at);
    if (next != before_images_.begin()) {
      const auto& [first, image] = *std::prev(next);
      if (first + image.count > at) {
        at = first + image.count;
        continue;
      }
    }
    const Lbn end = next == before_images_.end() ? record.extent.end()
                                                 : std::min(record.extent.end(), next->first);
    before_images_[at] = {end - at, location,
                          static_cast<std::uint32_t>((at - record.extent.first).value)};
    at = end;
  }
}

// Those that reach beyond the range keep what is outside.
void MemoryIndex::drop_before_images(BlockRange range) {
  auto at = before_images_.upper_bound(range.first);
  if (at != before_images_.begin()) --at;
  while (at != before_images_.end() && at->first < range.end()) {
    const BlockRange image{at->first, at->second.count};
    if (!image.overlaps(range)) {
      ++at;
      continue;
    }
    const BeforeImage whole = at->second;
    at = before_images_.erase(at);
    if (image.first < range.first) {
      before_images_[image.first] = {range.first - image.first, whole.location,
                                     whole.payload_block};
    }
    if (range.end() < image.end()) {
      const BlockCount skipped = range.end() - image.first;
      before_images_[range.end()] = {
          image.end() - range.end(), whole.location,
          whole.payload_block + static_cast<std::uint32_t>(skipped.value)};
      break;
    }
  }
}

MemoryIndex::Place MemoryIndex::first_after(SequenceNumber at) const {
  if (!writes_.empty() && writes_.back().sequence <= at) {
    return static_cast<Place>(writes_.size());
  }
  const auto it = std::upper_bound(
      writes_.begin(), writes_.end(), at,
      [](SequenceNumber s, const IndexedWrite& write) { return s < write.sequence; });
  return static_cast<Place>(it - writes_.begin());
}

std::vector<LocatedRun> MemoryIndex::locate(BlockRange range, SequenceNumber at) const {
  std::vector<LocatedRun> out;
  if (!range.empty()) resolve(range, at, out);
  return out;
}

// Parts of the range that a rollback sends back to its target are looked up there, again and again
// where rollbacks follow one another; a list of what is left to do, because their number is not
// bounded and a thread's stack is.
void MemoryIndex::resolve(BlockRange range, SequenceNumber at, std::vector<LocatedRun>& out) const {
  struct Task {
    LocatedRun run;     // a result if it is found, else only its range counts
    SequenceNumber at;  // the moment to look it up at
    bool found = false;
  };
  std::vector<Task> left;  // the last one comes first in the range
  LocatedRun whole;
  whole.range = range;
  left.push_back({whole, at, false});
  std::vector<LocatedRun> raw;
  while (!left.empty()) {
    const Task task = left.back();
    left.pop_back();
    if (task.found) {
      append_run(task.run, out);
      continue;
    }
    const auto newer = std::upper_bound(
        rollbacks_.begin(), rollbacks_.end(), task.at,
        [](SequenceNumber s, const Rollback& rollback) { return s < rollback.sequence; });
    const Place limit = first_after(task.at);
    if (newer == rollbacks_.begin()) {
      walk(kLevels - 1, 0, limit, kNone, task.run.range, out);
      continue;
    }
    const Rollback& rollback = *std::prev(newer);
    raw.clear();
    walk(kLevels - 1, 0, limit, kNone, task.run.range, raw);
    for (auto run = raw.rbegin(); run != raw.rend(); ++run) {
      left.push_back({*run, rollback.target, run->sequence > rollback.sequence});
    }
  }
}

// Visits the part of `run` at `level` that lies in `range`; `newest` is the newest write found
// above. Only writes placed before `limit` count.
void MemoryIndex::walk(unsigned level, std::uint64_t run, Place limit, Place newest,
                       BlockRange range, std::vector<LocatedRun>& out) const {
  const auto found = nodes_.find(key(level, run));
  if (found == nodes_.end()) return emit(range, newest, out);
  const Node& node = found->second;
  const auto it = std::lower_bound(
      node.writes.begin(), node.writes.end(), limit,
      [this](WriteNumber number, Place before) { return place_of(number) < before; });
  if (it != node.writes.begin()) {
    const Place here = place_of(*std::prev(it));
    if (newest == kNone || here > newest) newest = here;
  }
  if (node.children == 0) return emit(range, newest, out);
  const unsigned shift = (level - 1) * kFanoutBits;
  const std::uint64_t child_blocks = std::uint64_t{1} << shift;
  std::uint64_t child = range.first.value >> shift;
  while (child << shift < range.end().value) {
    const BlockRange part = range.intersect({Lbn{child << shift}, BlockCount{child_blocks}});
    if ((node.children & (1u << (child & ((1u << kFanoutBits) - 1)))) != 0) {
      walk(level - 1, child, limit, newest, part, out);
    } else {
      emit(part, newest, out);
    }
    ++child;
  }
}

void MemoryIndex::emit(BlockRange range, Place place, std::vector<LocatedRun>& out) const {
  if (place == kNone) return emit_base(range, out);
  const IndexedWrite& write = writes_[place];
  for (const RecordPiece& piece : pieces_of_write(write)) {
    const BlockRange part = piece.range.intersect(range);
    if (part.empty()) continue;
    LocatedRun run;
    run.range = part;
    run.sequence = write.sequence;
    if (piece.kind == RecordPiece::Kind::kZero) {
      run.source = LocatedRun::Source::kZero;
    } else {
      run.source = LocatedRun::Source::kLog;
      run.location = write.location;
      run.repeated = piece.kind == RecordPiece::Kind::kRepeated;
      run.payload_block = piece.payload_block;
      if (!run.repeated) {
        run.payload_block += static_cast<std::uint32_t>((part.first - piece.range.first).value);
      }
    }
    append_run(run, out);
  }
}

void MemoryIndex::emit_base(BlockRange range, std::vector<LocatedRun>& out) const {
  Lbn at = range.first;
  while (at < range.end()) {
    const auto next = before_images_.upper_bound(at);
    LocatedRun run;
    Lbn end = next == before_images_.end() ? range.end() : std::min(range.end(), next->first);
    if (next != before_images_.begin()) {
      const auto& [first, image] = *std::prev(next);
      if (first + image.count > at) {
        run.source = LocatedRun::Source::kLog;
        run.location = image.location;
        run.payload_block = image.payload_block + static_cast<std::uint32_t>((at - first).value);
        end = std::min(range.end(), first + image.count);
      }
    }
    run.range = BlockRange::between(at, end);
    append_run(run, out);
    at = end;
  }
}

std::vector<BlockRange> MemoryIndex::changed(SequenceNumber from, SequenceNumber to) const {
  std::vector<BlockRange> extents;
  // A rollback moves what was written after its target, which may reach back before `from`.
  SequenceNumber start = from;
  for (const Rollback& rollback : rollbacks_) {
    if (rollback.sequence > from && rollback.sequence <= to) {
      start = std::min(start, rollback.target);
    }
  }
  // ... and a rollback inside that longer stretch reaches back further still.
  for (bool again = true; again;) {
    again = false;
    for (const Rollback& rollback : rollbacks_) {
      if (rollback.sequence > start && rollback.sequence <= to && rollback.target < start) {
        start = rollback.target;
        again = true;
      }
    }
  }
  for (Place i = first_after(start); i < writes_.size() && writes_[i].sequence <= to; ++i) {
    if (writes_[i].type != RecordType::kRollback && !forgotten_[i])
      extents.push_back(writes_[i].extent);
  }
  return merge_extents(std::move(extents));
}

std::vector<SequenceNumber> MemoryIndex::versions(Lbn block, SequenceNumber from,
                                                  SequenceNumber to) const {
  const Place begin = first_after(from);
  const Place end = first_after(to);
  std::vector<SequenceNumber> out;
  for (unsigned level = 0; level < kLevels; ++level) {
    const auto found = nodes_.find(key(level, block.value >> (level * kFanoutBits)));
    if (found == nodes_.end()) continue;
    for (const WriteNumber number : found->second.writes) {
      const Place place = place_of(number);
      if (place >= begin && place < end) out.push_back(writes_[place].sequence);
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

IndexMoment MemoryIndex::moment_at(VersionTime time) const {
  const auto it =
      std::upper_bound(writes_.begin(), writes_.end(), time,
                       [](VersionTime t, const IndexedWrite& write) { return t < write.time; });
  if (it == writes_.begin()) return floor_.time <= time ? floor_ : IndexMoment{};
  const IndexMoment found{std::prev(it)->sequence, std::prev(it)->time};
  return floor_.time <= time && floor_.sequence > found.sequence ? floor_ : found;
}

IndexMoment MemoryIndex::moment_of(SequenceNumber sequence) const {
  const Place after = first_after(sequence);
  if (after == 0) return floor_.sequence <= sequence ? floor_ : IndexMoment{};
  const IndexMoment found{writes_[after - 1].sequence, writes_[after - 1].time};
  return floor_.sequence <= sequence && floor_.sequence > found.sequence ? floor_ : found;
}

IndexMoment MemoryIndex::oldest() const { return horizon_; }

IndexMoment MemoryIndex::newest() const {
  if (writes_.empty() || writes_.back().sequence < floor_.sequence) return floor_;
  return {writes_.back().sequence, writes_.back().time};
}

void MemoryIndex::for_each(SequenceNumber from, SequenceNumber to,
                           const std::function<bool(const IndexedWrite&)>& visit) const {
  for (Place i = first_after(from); i < writes_.size() && writes_[i].sequence <= to; ++i) {
    if (!forgotten_[i] && !visit(writes_[i])) return;
  }
}

IndexStatistics MemoryIndex::statistics() const {
  return {writes_.size(), payload_bytes_,
          writes_.size() * sizeof(IndexedWrite) +
              nodes_.size() * (sizeof(Node) + sizeof(std::uint64_t)) * 2};
}

}  // namespace mariner::index
