#include "tests/logging/log_model.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace mariner::logging::test {
std::size_t LogModel::appended(const Record& record) {
  entries_.push_back({record, State::kUnknown, {}});
  return entries_.size() - 1;
}

void LogModel::acknowledged(std::size_t number, const LogLocation& at) {
  entries_[number].state = State::kAcknowledged;
  entries_[number].at = at;
}

void LogModel::released(BlockSpan blocks, State state) {
  for (Entry& entry : entries_) {
    if ((entry.state == State::kAcknowledged || entry.state == State::kReleased) &&
        entry.at.batch_sector >= blocks.first && entry.at.batch_sector < blocks.end) {
      entry.state = state;
    }
  }
}

// A before-image may stand in front of records that were appended earlier and waited for a track.
void LogModel::overtake(std::size_t next, const Record& record) {
  for (std::size_t i = next; i < entries_.size(); ++i) {
    if (!is_same(record, entries_[i].record)) continue;
    std::rotate(entries_.begin() + static_cast<std::ptrdiff_t>(next),
                entries_.begin() + static_cast<std::ptrdiff_t>(i),
                entries_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    return;
  }
}

// On each disk a volume's records are one chain: all but the first point back to another one, and
// no two to the same. (In the order in which they were written, which is not always that of the
// log.)
std::string LogModel::judge_back_pointers(const std::vector<Visited>& visited) const {
  using Place = std::tuple<VolumeId, std::uint8_t, std::uint64_t, std::uint16_t>;
  std::set<Place> places;
  for (const Visited& v : visited) {
    places.insert({v.record.volume, v.location.disk, v.location.batch_sector, v.location.slot});
  }
  std::set<Place> targets;
  for (const Visited& v : visited) {
    const Place target{v.record.volume, v.location.disk, v.record.previous_sector,
                       v.record.previous_slot};
    if (!targets.insert(target).second) return name_of(v.record) + " points where another does";
    // The first one behind released records points back to one that is gone.
    if (v.record.previous_sector != 0 && !places.contains(target) &&
        !shortened_.contains(v.record.volume)) {
      return name_of(v.record) + " does not point back to one before";
    }
  }
  return {};
}

std::string LogModel::judge(LogRig& rig) {
  if (!rig.recovered.damage.empty()) return "damage: " + damage_text(rig.recovered);
  for (const Entry& entry : entries_) {
    if (entry.state >= State::kReleased) shortened_.insert(entry.record.volume);
  }
  std::vector<Entry> kept;
  std::size_t next = 0;
  bool open_end = false;  // an unknown record is missing: only such may follow
  // Of unknown ones, so many may have failed, durably, before anybody was told.
  std::size_t withdrawn = rig.recovered.withdrawn.size();
  for (const Visited& v : rig.visited) {
    if (v.record.type == RecordType::kBeforeImage) overtake(next, v.record);
    // In the order of append(), so that each is there once and each volume's order holds.
    for (; next < entries_.size() && !is_same(v.record, entries_[next].record); ++next) {
      if (entries_[next].state == State::kAcknowledged) {
        return "acknowledged " + name_of(entries_[next].record) + " is missing or displaced";
      }
      if (entries_[next].state != State::kUnknown) continue;
      if (withdrawn > 0) {
        --withdrawn;
      } else {
        open_end = true;
      }
    }
    if (next == entries_.size()) return name_of(v.record) + " was never appended here";
    if (entries_[next].state == State::kRefused) return name_of(v.record) + " was refused";
    if (entries_[next].state == State::kGone) return name_of(v.record) + " was released";
    if (open_end) return name_of(v.record) + " is there, an earlier one in flight is not";
    if (const Result<void> read = rig.verify(v.record, v.location); !read) {
      return name_of(v.record) + ": " + to_string(read.error());
    }
    kept.push_back({entries_[next].record, State::kAcknowledged, v.location});
    ++next;
  }
  if (std::string wrong = judge_back_pointers(rig.visited); !wrong.empty()) return wrong;
  for (; next < entries_.size(); ++next) {
    if (entries_[next].state == State::kAcknowledged) {
      return "acknowledged " + name_of(entries_[next].record) + " is lost from the end";
    }
  }
  entries_ = std::move(kept);
  return {};
}

}  // namespace mariner::logging::test
