#include "server/volume/volume_history.h"

#include <algorithm>
#include <string>
#include <utility>

namespace mariner::volume {
namespace {

Error out_of_place(const logging::Record& record, const char* what) {
  return Error{ErrorCode::kCorrupt, "record " + std::to_string(record.sequence.value) +
                                        " of volume " + std::to_string(record.volume.value) +
                                        " in the log " + what};
}

}  // namespace

Result<bool> VolumeHistory::add(const logging::Record& record, BlockCount blocks) {
  using logging::RecordType;
  if (!BlockRange{{0}, blocks}.contains(record.extent)) {
    return out_of_place(record, "lies outside of the volume");
  }
  switch (record.type) {
    case RecordType::kVoid:
    case RecordType::kGap: reach(record.sequence, record.target_sequence); return false;
    case RecordType::kBeforeImage:
    case RecordType::kRebase:
    case RecordType::kRelocated:
      payload_bytes += std::uint64_t{record.payload_blocks} * kBlockBytes;
      return true;
    case RecordType::kWrite:
    case RecordType::kZero:
    case RecordType::kRollback: break;
    case RecordType::kMark:
    case RecordType::kEncoded:
    case RecordType::kWithdrawal:
      return out_of_place(record, "has a type that this version does not write");
  }
  // A batch that was written twice after an error stands there twice.
  if (record.sequence <= last) return false;
  if (record.time <= last_time) return out_of_place(record, "is not later than the one before it");
  if (record.frontier >= record.sequence) {
    return out_of_place(record, "claims to have been applied before it was written");
  }
  reach(record.sequence, record.sequence);
  settled = std::max(settled, record.settled);
  last_time = record.time;
  frontier = std::max(frontier, record.frontier);
  if (record.type != RecordType::kRollback) {
    unapplied_bytes.add(record.sequence, record.extent.count.bytes());
  }
  unapplied_bytes.applied(frontier);
  payload_bytes += std::uint64_t{record.payload_blocks} * kBlockBytes;
  return true;
}

// The log says what became of the numbers [first, until].
void VolumeHistory::reach(SequenceNumber first, SequenceNumber until) {
  std::vector<Hole> left;
  for (const Hole& hole : holes) {
    if (hole.first < first) {
      left.push_back({hole.first, std::min(hole.last, SequenceNumber{first.value - 1})});
    }
    if (hole.last > until) left.push_back({std::max(hole.first, until.next()), hole.last});
  }
  holes = std::move(left);
  if (first > last.next()) holes.push_back({last.next(), SequenceNumber{first.value - 1}});
  last = std::max(last, until);
}

std::vector<VolumeHistory::Hole> VolumeHistory::lost() const {
  std::vector<Hole> out;
  for (const Hole& hole : holes) {
    if (hole.first <= settled) out.push_back({hole.first, std::min(hole.last, settled)});
  }
  return out;
}

void VolumeHistory::set_horizon(const Horizon& horizon) {
  std::erase_if(holes, [&](const Hole& hole) { return hole.last <= horizon.last; });
  if (!holes.empty()) {
    holes.front().first = std::max(holes.front().first, horizon.last.next());
  }
  last = std::max(last, horizon.last);
  // The write that it names was settled, and its record need not be given up.
  const SequenceNumber written = horizon.moment.sequence;
  settled = std::max(settled, written);
  if (written > last) holes.push_back({last.next(), written});
  last = std::max(last, written);
  last_time = std::max(last_time, horizon.moment.time);
  frontier = std::max(frontier, horizon.frontier);
  unapplied_bytes.applied(frontier);
}

}  // namespace mariner::volume
