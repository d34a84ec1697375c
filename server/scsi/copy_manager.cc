#include "server/scsi/copy_manager.h"

#include <algorithm>
#include <utility>

namespace mariner::scsi {
namespace {

constexpr std::uint64_t kPieceBytes = 1 << 20;

}  // namespace

struct CopyManager::Copy {
  CopyList list;
  NexusId from;
  SenseFormat format = SenseFormat::kFixed;
  CommandDone done;
  std::vector<std::shared_ptr<CopyUnit>> units;  // of the targets; null: not reachable
  CopyStatus status;
  std::size_t segment = 0;
  std::uint64_t bytes_done = 0;  // of the segment
  bool aborted = false;
};

void CopyManager::abort(const NexusId* of) {
  for (const auto& copy : running_) {
    if (of == nullptr || copy->from == *of) copy->aborted = true;
  }
}

// Asked before each write, in the same turn: whoever is fenced off meanwhile writes nothing more.
bool CopyManager::may_write(const Copy& copy) {
  const CopySegment& segment = copy.list.segments[copy.segment];
  const CopyUnit& destination = *copy.units[segment.destination];
  return !copy.aborted &&
         !destination.reservations->state().conflicts(ReservationAccess::kWrites, copy.from);
}

const CopyStatus* CopyManager::status(const NexusId& from, std::uint8_t id) const {
  const auto found = std::ranges::find_if(
      remembered_, [&](const Remembered& r) { return r.from == from && r.id == id; });
  return found == remembered_.end() ? nullptr : &found->status;
}

CopyManager::Remembered* CopyManager::remembered(const NexusId& from, std::uint8_t id) {
  const auto found = std::ranges::find_if(
      remembered_, [&](const Remembered& r) { return r.from == from && r.id == id; });
  return found == remembered_.end() ? nullptr : &*found;
}

void CopyManager::remember(const Copy& copy) {
  if (!copy.list.keeps_status) return;
  if (Remembered* known = remembered(copy.from, copy.list.id)) {
    known->status = copy.status;
    return;
  }
  if (remembered_.size() >= kRememberedMax) remembered_.pop_front();
  remembered_.push_back({copy.from, copy.list.id, copy.status});
}

// Everything that can be known before is checked before anything is written.
std::optional<Sense> CopyManager::prepare(Copy& copy) {
  for (const CopyTarget& target : copy.list.targets) {
    copy.units.push_back(target.null ? nullptr : find_(target, copy.from.initiator));
  }
  for (const CopySegment& segment : copy.list.segments) {
    const auto unit_of = [&](std::uint16_t index) {
      return index < copy.units.size() ? copy.units[index].get() : nullptr;
    };
    const CopyUnit* source = unit_of(segment.source);
    const CopyUnit* destination = unit_of(segment.destination);
    if (source == nullptr || destination == nullptr) {
      return copy_aborted(asc::kUnreachableCopyTarget);
    }
    const Geometry from = source->disk->geometry();
    const Geometry to = destination->disk->geometry();
    if (from.block_bytes != to.block_bytes) return copy_aborted(asc::kIncorrectCopyTarget);
    if (check_extent({segment.source_lba, segment.blocks}, from) ||
        check_extent({segment.destination_lba, segment.blocks}, to)) {
      return copy_aborted(asc::kNone);
    }
    if (source->reservations->state().conflicts(ReservationAccess::kReads, copy.from) ||
        destination->reservations->state().conflicts(ReservationAccess::kWrites, copy.from)) {
      return copy_aborted(asc::kCopyTargetNotReachable);
    }
    if (source->disk->not_ready(Operation::kRead) ||
        destination->disk->not_ready(Operation::kWrite)) {
      return copy_aborted(asc::kCopyTargetNotReachable);
    }
    if (auto sense = destination->disk->write_protection()) {
      return copy_aborted(asc::kCopyTargetNotReachable);
    }
  }
  return std::nullopt;
}

void CopyManager::copy(CopyList list, const NexusId& from, SenseFormat format, CommandDone done) {
  auto copy = std::make_shared<Copy>();
  copy->list = std::move(list);
  copy->from = from;
  copy->format = format;
  copy->done = std::move(done);
  if (const auto failure = prepare(*copy)) return end(copy, failure);
  remember(*copy);
  running_.push_back(copy);
  next_segment(copy);
}

void CopyManager::next_segment(const std::shared_ptr<Copy>& copy) {
  copy->bytes_done = 0;
  while (copy->segment < copy->list.segments.size() &&
         copy->list.segments[copy->segment].blocks == 0) {
    ++copy->segment;
    ++copy->status.segments_done;
  }
  if (copy->segment == copy->list.segments.size()) return end(copy, std::nullopt);
  next_piece(copy);
}

void CopyManager::next_piece(const std::shared_ptr<Copy>& copy) {
  const CopySegment& segment = copy->list.segments[copy->segment];
  const CopyUnit& source = *copy->units[segment.source];
  const CopyUnit& destination = *copy->units[segment.destination];
  const std::uint32_t block_bytes = source.disk->geometry().block_bytes;
  const std::uint64_t total = std::uint64_t{segment.blocks} * block_bytes;
  const std::uint64_t bytes = std::min(kPieceBytes, total - copy->bytes_done);
  const ByteRange from{segment.source_lba * block_bytes + copy->bytes_done, bytes};
  const ByteRange to{segment.destination_lba * block_bytes + copy->bytes_done, bytes};
  source.disk->layer().read(
      from, [self = shared_from_this(), copy, to, total, &destination](Result<PayloadSlice> read) {
        if (!read || !may_write(*copy)) {
          return self->end(copy, copy_aborted(asc::kCopyTargetNotReachable));
        }
        destination.disk->layer().write(
            to, *std::move(read), [self, copy, to, total](const Result<void>& written) {
              if (!written) return self->end(copy, copy_aborted(asc::kCopyTargetNotReachable));
              copy->bytes_done += to.length;
              copy->status.bytes += to.length;
              if (copy->bytes_done < total) return self->next_piece(copy);
              ++copy->segment;
              ++copy->status.segments_done;
              self->remember(*copy);
              self->next_segment(copy);
            });
      });
}

void CopyManager::end(const std::shared_ptr<Copy>& copy, const std::optional<Sense>& failure) {
  copy->status.state = failure ? CopyStatus::State::kFailed : CopyStatus::State::kDone;
  remember(*copy);
  std::erase(running_, copy);
  std::exchange(copy->done,
                nullptr)(failure ? check_condition(*failure, copy->format) : Response{});
}

}  // namespace mariner::scsi
