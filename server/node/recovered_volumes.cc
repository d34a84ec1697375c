#include "server/node/recovered_volumes.h"

#include <algorithm>
#include <utility>

namespace mariner::node {

using logging::RecordType;

void RecoveredVolumes::expect(std::uint32_t id, BlockCount blocks, Order order) {
  Volume& volume = volumes_[id];
  volume.blocks = blocks;
  volume.order = order;
}

Result<void> RecoveredVolumes::open_indexes(IndexStack& indexes, std::uint64_t given_up_ordinal) {
  indexes_ = &indexes;
  for (auto& [id, volume] : volumes_) {
    const Result<volume::VolumeRelease> release = store_.release(id);
    if (!release) return release.error();
    volume.given_up = release->horizon.last;
    auto index = indexes.open_volume(VolumeId{id}, release->horizon, given_up_ordinal);
    if (!index) return index.error();
    volume.index = *std::move(index);
  }
  return indexes.load();
}

// Whether every number before the record's is known to be settled.
bool RecoveredVolumes::follows(const Volume& volume, const logging::Record& record) const {
  if (volume.order == Order::kAny || record.ordinal <= indexes_->frontier()) return true;
  const SequenceNumber known = std::max(volume.history.last, volume.given_up);
  switch (record.type) {
    case RecordType::kWrite:
    case RecordType::kZero:
    case RecordType::kRollback:
      // (What its coordinator knew to be settled is missing, if it is, because it was lost.)
      return record.sequence <= known.next() || record.sequence <= record.settled.next();
    default: return true;
  }
}

void RecoveredVolumes::record(const logging::Record& record, const logging::LogLocation& location) {
  const auto found = volumes_.find(record.volume.value);
  if (found == volumes_.end()) return;  // of a volume that was deleted
  Volume& volume = found->second;
  if (!follows(volume, record)) {
    volume.behind.push_back({record, location});
    ++held_;
    return;
  }
  add(volume, record, location);
  // A void names what failed; a write that was logged later than what waits for it means that its
  // coordinator has begun anew there, and sends again what is wanted of it.
  if (!volume.behind.empty() && record.sequence != SequenceNumber{}) {
    const SequenceNumber last =
        record.type == RecordType::kVoid ? record.target_sequence : SequenceNumber{UINT64_MAX};
    std::erase_if(volume.behind, [&](const Held& held) {
      const SequenceNumber number = held.record.sequence;
      if (number < record.sequence || number > last) return false;
      given_back_.push_back(held.record.ordinal);
      --held_;
      return true;
    });
  }
  while (!volume.behind.empty() && follows(volume, volume.behind.front().record)) {
    const Held held = volume.behind.front();
    volume.behind.pop_front();
    --held_;
    add(volume, held.record, held.location);
  }
}

void RecoveredVolumes::add(Volume& volume, const logging::Record& record,
                           const logging::LogLocation& location) {
  const Result<bool> taken = volume.history.add(record, volume.blocks);
  if (!taken) {
    log_.error("a record of the log is left out: history is missing",
               {{"error", to_string(taken.error())}});
    return;
  }
  if (!*taken || record.ordinal <= indexes_->frontier()) return;
  volume.index->insert(record, location);
  indexes_->wait_for_room();
}

std::uint64_t RecoveredVolumes::held_from() const {
  std::uint64_t lowest = UINT64_MAX;
  if (held_ == 0) return lowest;
  for (const auto& [id, volume] : volumes_) {
    if (!volume.behind.empty()) lowest = std::min(lowest, volume.behind.front().record.ordinal);
  }
  return lowest;
}

std::vector<std::uint64_t> RecoveredVolumes::taken_back() const {
  std::vector<std::uint64_t> ordinals = given_back_;
  for (const auto& [id, volume] : volumes_) {
    for (const Held& held : volume.behind) ordinals.push_back(held.record.ordinal);
  }
  return ordinals;
}

// What the log and the index hold of a volume, and how far the log has given it up.
Result<RecoveredVolumes::Found> RecoveredVolumes::take(std::uint32_t id) {
  Found out;
  const auto found = volumes_.find(id);
  if (found != volumes_.end()) {
    out.history = std::move(found->second.history);
    out.index = std::move(found->second.index);
    volumes_.erase(found);
  } else {
    auto index = indexes_->open_volume(VolumeId{id}, {}, 0);
    if (!index) return index.error();
    out.index = *std::move(index);
  }
  const Result<volume::VolumeRelease> release = store_.release(id);
  if (!release) return release.error();
  out.history.set_horizon(release->horizon);
  out.based_everywhere = release->based_everywhere;
  for (const volume::VolumeHistory::Hole& hole : out.history.lost()) {
    log_.error("acknowledged writes are missing from the log",
               {{"volume_id", id}, {"first", hole.first.value}, {"last", hole.last.value}});
  }
  return out;
}

Result<void> RecoveredVolumes::find_unapplied(Found& found) {
  volume::VolumeHistory& history = found.history;
  if (history.frontier >= history.last) return {};
  constexpr SequenceNumber kNewest{UINT64_MAX};
  const bool ahead = history.headway.as_of() > history.frontier;
  std::size_t waiting = ahead ? 3 : 2;
  Result<void> result;
  const auto changed = [&](SequenceNumber from, std::vector<BlockRange>& to) {
    found.index->changed(from, kNewest, [&](Result<std::vector<BlockRange>> r) {
      --waiting;
      if (r) {
        to = *std::move(r);
      } else {
        result = r.error();
      }
    });
  };
  changed(history.frontier, history.unapplied);
  std::vector<BlockRange> since_headway;
  if (ahead) changed(history.headway.as_of(), since_headway);
  found.index->for_each(
      history.frontier, kNewest,
      [&](const index::IndexedWrite& write) {
        history.unapplied_since = write.time;
        return false;
      },
      [&](const Result<void>& r) {
        --waiting;
        if (!r) result = r;
      });
  indexes_->wait_until([&] { return waiting == 0; });
  if (ahead && result) {
    history.unapplied = history.headway.lacking(history.unapplied, since_headway);
  }
  return result;
}

}  // namespace mariner::node
