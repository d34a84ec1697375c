#include "tests/logging/campaign_model.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "proto/check.h"

namespace mariner::logging::test {
namespace {

std::string place_of(const LogLocation& at) {
  return " (disk " + std::to_string(at.disk) + ", sector " + std::to_string(at.batch_sector) + ")";
}

// Whether anything in the track that holds the byte was damaged.
bool is_damaged_track(const CampaignRig::Slot& slot, std::uint64_t place) {
  const std::uint64_t first = slot.shape.first_sector * slot.shape.sector_bytes;
  const std::uint64_t track = (place - first) / slot.shape.track_bytes();
  return slot.is_damaged({first + track * slot.shape.track_bytes(), slot.shape.track_bytes()});
}

}  // namespace

void CampaignModel::appended(const Record& record, std::uint64_t content) {
  entries_[record.sequence.value] = {record, content, State::kUnknown, {}, {}, false};
}

void CampaignModel::answered(std::uint64_t sequence, State state) {
  entries_[sequence].state = state;
}

void CampaignModel::place(CampaignRig& rig, Entry& entry, const LogLocation& at) {
  entry.at = at;
  CampaignRig::Slot* slot = rig.find(at.disk);
  CHECK(slot != nullptr);
  const auto batch = slot->spy->holding(entry.record.sequence.value, at.batch_sector);
  CHECK(batch.has_value());
  entry.batch = *batch;
}

void CampaignModel::acknowledged(CampaignRig& rig, std::uint64_t sequence, const LogLocation& at) {
  Entry& entry = entries_[sequence];
  entry.state = State::kAcknowledged;
  place(rig, entry, at);
  ++counts_.acknowledged;
}

void CampaignModel::given_up(const OldestRecords& oldest) {
  for (const auto& [record, location] : oldest.records) {
    const auto entry = entries_.find(record.sequence.value);
    if (entry == entries_.end() || !is_same(record, entry->second.record)) {
      wrong_ = name_of(record) + " is given up and was never appended";
      return;
    }
    entry->second.state = State::kGivenUp;
    ++counts_.given_up;
  }
}

void CampaignModel::freeing(const CampaignRig::Slot& slot, ByteRange track) {
  for (auto& [sequence, entry] : entries_) {
    if (entry.state != State::kAcknowledged || entry.at.disk != slot.number ||
        entry.batch.range.offset < track.offset || entry.batch.range.offset >= track.end()) {
      continue;
    }
    if (!slot.is_damaged()) {
      wrong_ = name_of(entry.record) + place_of(entry.at) +
               " is in a track that is freed, and was not given up";
    }
    entry.state = State::kLost;
  }
}

std::string CampaignModel::verify(CampaignRig& rig, const Entry& entry, const LogLocation& at) {
  const Record& record = entry.record;
  if (record.payload_blocks == 0) return {};
  Payload to = Payload::allocate(std::size_t{record.payload_blocks} * kBlockBytes);
  const Result<void> read =
      read_log_blocking(rig.array->disks(), {at, record.volume, record.sequence, 0, to.bytes()});
  if (read) {
    const Payload expected = payload_of(entry.content, record.payload_blocks);
    if (std::memcmp(to.data(), expected.data(), to.size()) == 0) return {};
    return name_of(record) + place_of(at) + ": a verified read gave wrong bytes";
  }
  const CampaignRig::Slot* own_slot = rig.find(entry.at.disk);
  const CampaignRig::Slot& slot = *rig.find(at.disk);
  const auto batch = slot.spy->holding(record.sequence.value, at.batch_sector);
  // Of a copy that a failed write has left nothing is expected, as long as nobody needs it. It may
  // pass for the batch of its number where that one is damaged: FORMAT.md section 5.
  const bool own = own_slot != nullptr && own_slot->is_damaged(entry.batch.range);
  const bool here = batch && slot.is_damaged(batch->range);
  const bool instead =
      batch && std::ranges::any_of(slot.spy->namesakes(*batch), [&](const BatchSpy::Batch& other) {
        return other.begun > batch->begun && slot.is_damaged(other.range);
      });
  if (read.error().code != ErrorCode::kCorrupt ||
      !(own || here || instead || doubtful_.contains(record.sequence.value))) {
    return name_of(record) + place_of(at) + ", acknowledged" + place_of(entry.at) + ": " +
           to_string(read.error());
  }
  if (!own && entry.at != at) ++counts_.other_copies;
  doubtful_.insert(record.sequence.value);
  ++counts_.reads_refused;
  return {};
}

std::string CampaignModel::judge_visited(CampaignRig& rig, const Visited& v) {
  const auto found = entries_.find(v.record.sequence.value);
  const std::string name = name_of(v.record) + place_of(v.location);
  if (found == entries_.end() || !is_same(v.record, found->second.record)) {
    return name + " was never appended";
  }
  Entry& entry = found->second;
  if (std::exchange(entry.seen, true)) return name + " is visited twice";
  switch (entry.state) {
    case State::kRefused: return name + " was refused";
    case State::kGivenUp: return name + " was given up";
    case State::kWithdrawn:
      // A damaged disk may have lost what withdraws it.
      if (std::ranges::none_of(rig.slots, [](const auto& slot) { return slot->is_damaged(); })) {
        return name + " had failed";
      }
      doubtful_.insert(v.record.sequence.value);
      ++counts_.reappeared;
      break;
    case State::kForgotten: {
      // What was put back, or not overwritten, cannot be told from what belongs there; nor what a
      // failed write has left, if what was written for it elsewhere is damaged.
      if (!rig.find(v.location.disk)->is_damaged()) {
        return name + " was not found by a recovery before";
      }
      doubtful_.insert(v.record.sequence.value);
      ++counts_.reappeared;
      break;
    }
    default: break;
  }
  // Where it was acknowledged first, of two copies. What nobody was told of may be the rest of a
  // failed write, if what was written for it elsewhere is damaged.
  if (entry.state != State::kAcknowledged) {
    place(rig, entry, v.location);
    if (rig.find(v.location.disk)->is_damaged()) doubtful_.insert(v.record.sequence.value);
  }
  entry.state = State::kAcknowledged;
  ++counts_.visited;
  std::string wrong = verify(rig, entry, v.location);
  place(rig, entry, v.location);
  return wrong;
}

std::string CampaignModel::judge_missing(CampaignRig& rig, Entry& entry) {
  if (entry.state != State::kAcknowledged) {
    if (entry.state == State::kUnknown) unheard_.push_back({entry.record, entry.content});
    if (entry.state == State::kUnknown || entry.state == State::kFailed) {
      entry.state = State::kForgotten;
    }
    return {};
  }
  const CampaignRig::Slot* slot = rig.find(entry.at.disk);
  const std::string name = "acknowledged " + name_of(entry.record) + place_of(entry.at) +
                           " in batch " + std::to_string(entry.batch.number);
  if (slot == nullptr || !slot->is_damaged()) return name + " is lost";
  const bool reported = std::ranges::any_of(rig.recovered.damage, [&](const LogDamage& damage) {
    return damage.disk == entry.at.disk && damage.first_batch <= entry.batch.number &&
           damage.last_batch >= entry.batch.number;
  });
  if (reported) {
    entry.state = State::kLost;
    ++counts_.lost_reported;
    return {};
  }
  if (entry.batch.number >= slot->next_batch && is_damaged_track(*slot, entry.batch.range.offset)) {
    entry.state = State::kForgotten;
    ++counts_.lost_at_end;
    return {};
  }
  // (What a write that never came leaves standing in one track may reach into the next.)
  if (is_damaged_track(*slot, entry.batch.range.offset) || !slot->disk->lies().empty()) {
    const std::set<std::uint64_t>& found = slot->found_batches;
    // In the oldest track, with nothing before it: what is not there looks freed.
    if (found.empty() || entry.batch.number < *found.begin()) {
      entry.state = State::kForgotten;
      ++counts_.lost_at_front;
      return {};
    }
    // Then another batch of its number was found: what a failed write has left, or what was put
    // back there.
    if (entry.batch.number < slot->next_batch) {
      entry.state = State::kForgotten;
      ++counts_.replaced;
      return {};
    }
  }
  // What was put back in another track is the batch of its number there.
  const bool came_back =
      slot->found_batches.contains(entry.batch.number) &&
      std::ranges::any_of(slot->spy->namesakes(entry.batch), [&](const BatchSpy::Batch& other) {
        return is_damaged_track(*slot, other.range.offset);
      });
  if (came_back) {
    entry.state = State::kForgotten;
    ++counts_.replaced;
    return {};
  }
  return name + " is missing, and no damage is reported";
}

std::string CampaignModel::judge(CampaignRig& rig) {
  if (!wrong_.empty()) return wrong_;
  counts_.damage_reports += rig.recovered.damage.size();
  const bool damaged =
      std::ranges::any_of(rig.slots, [](const auto& slot) { return slot->is_damaged(); });
  if (!damaged && !rig.recovered.damage.empty()) {
    return "damage is reported where none is: " + damage_text(rig.recovered);
  }
  for (auto& [sequence, entry] : entries_) entry.seen = false;
  std::uint64_t ordinal = 0;
  std::map<VolumeId, std::uint64_t> last;
  for (const Visited& v : rig.visited) {
    if (std::string wrong = judge_visited(rig, v); !wrong.empty()) return wrong;
    if (doubtful_.contains(v.record.sequence.value)) continue;
    if (v.record.ordinal <= std::exchange(ordinal, v.record.ordinal)) {
      return name_of(v.record) + " comes out of order";
    }
    // Before-images may have overtaken what waited for room.
    if (v.record.type == RecordType::kBeforeImage) continue;
    std::uint64_t& before = last[v.record.volume];
    if (v.record.sequence.value < std::exchange(before, v.record.sequence.value)) {
      return name_of(v.record) + " comes behind a later one of its volume";
    }
  }
  unheard_.clear();
  for (auto& [sequence, entry] : entries_) {
    if (entry.seen) continue;
    if (std::string wrong = judge_missing(rig, entry); !wrong.empty()) return wrong;
  }
  return {};
}

std::optional<ByteRange> CampaignModel::any_batch(std::uint8_t disk, std::uint64_t choice) const {
  std::vector<ByteRange> batches;
  for (const auto& [sequence, entry] : entries_) {
    if (entry.state == State::kAcknowledged && entry.at.disk == disk) {
      batches.push_back(entry.batch.range);
    }
  }
  if (batches.empty()) return std::nullopt;
  return batches[choice % batches.size()];
}

std::string CampaignModel::read_any(CampaignRig& rig, std::uint64_t choice) {
  std::vector<const Entry*> there;
  for (const auto& [sequence, entry] : entries_) {
    if (entry.state == State::kAcknowledged) there.push_back(&entry);
  }
  if (there.empty()) return {};
  const Entry& entry = *there[choice % there.size()];
  return verify(rig, entry, entry.at);
}

}  // namespace mariner::logging::test
