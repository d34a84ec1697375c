#include "tests/logging/log_model.h"

#include <algorithm>
#include <map>
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
void LogModel::overtake(Volume& of, const Record& record) const {
  const auto begin = of.entries.begin() + static_cast<std::ptrdiff_t>(of.next);
  const auto found = std::find_if(
      begin, of.entries.end(), [&](const Entry* entry) { return is_same(record, entry->record); });
  if (found != of.entries.end()) std::rotate(begin, found, found + 1);
}

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
  // Each volume's records are in the order of append(); those of several wait for the disk in
  // turns.
  std::map<VolumeId, Volume> volumes;
  for (Entry& entry : entries_) volumes[entry.record.volume].entries.push_back(&entry);
  // Of unknown ones, so many may have failed, durably, before anybody was told.
  std::size_t withdrawn = rig.recovered.withdrawn.size();
  for (const Visited& v : rig.visited) {
    Volume& of = volumes[v.record.volume];
    if (v.record.type == RecordType::kBeforeImage) overtake(of, v.record);
    for (; of.next < of.entries.size() && !is_same(v.record, of.entries[of.next]->record);
         ++of.next) {
      const Entry& missing = *of.entries[of.next];
      if (missing.state == State::kAcknowledged) {
        return "acknowledged " + name_of(missing.record) + " is missing or displaced";
      }
      if (missing.state != State::kUnknown) continue;
      if (withdrawn > 0) {
        --withdrawn;
      } else {
        of.open_end = true;
      }
    }
    if (of.next == of.entries.size()) return name_of(v.record) + " was never appended here";
    const Entry& found = *of.entries[of.next];
    if (found.state == State::kRefused) return name_of(v.record) + " was refused";
    if (found.state == State::kGone) return name_of(v.record) + " was released";
    if (of.open_end) return name_of(v.record) + " is there, an earlier one in flight is not";
    if (const Result<void> read = rig.verify(v.record, v.location); !read) {
      return name_of(v.record) + ": " + to_string(read.error());
    }
    kept.push_back({found.record, State::kAcknowledged, v.location});
    ++of.next;
  }
  if (std::string wrong = judge_back_pointers(rig.visited); !wrong.empty()) return wrong;
  for (const auto& [id, of] : volumes) {
    for (std::size_t i = of.next; i < of.entries.size(); ++i) {
      if (of.entries[i]->state == State::kAcknowledged) {
        return "acknowledged " + name_of(of.entries[i]->record) + " is lost from the end";
      }
    }
  }
  entries_ = std::move(kept);
  return {};
}

}  // namespace mariner::logging::test
