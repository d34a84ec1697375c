#include "tests/server/volume/volume_model.h"

#include <algorithm>

#include "proto/check.h"

namespace mariner::test {

using logging::RecordType;

VolumeModel::Handle VolumeModel::begin(ModelWrite write) {
  begun_.push_back({next_, std::move(write), false, false, false});
  return next_++;
}

void VolumeModel::answered(Handle handle, bool success) {
  const auto it = std::find_if(begun_.begin(), begun_.end(),
                               [&](const Begun& begun) { return begun.handle == handle; });
  CHECK(it != begun_.end() && !it->answered);
  it->answered = true;
  it->failed = !success;
  if (it->found) begun_.erase(it);
}

void VolumeModel::forget_failed() {
  std::erase_if(begun_, [](const Begun& begun) { return begun.failed; });
}

std::size_t VolumeModel::unanswered() const {
  return static_cast<std::size_t>(
      std::count_if(begun_.begin(), begun_.end(), [](const Begun& b) { return !b.answered; }));
}

std::string VolumeModel::take(const index::IndexedWrite& indexed, const Contents* contents) {
  const std::string name = "write #" + std::to_string(indexed.sequence.value);
  const auto may_be = [&](const Begun& begun) {
    return !begun.found && begun.write.type == indexed.type &&
           begun.write.extent == indexed.extent && (contents != nullptr || !begun.failed) &&
           begun.write.target == indexed.target_sequence;
  };
  auto it = std::ranges::find_if(begun_, may_be);
  if (it == begun_.end()) return name + " is in the index, and nobody wrote it";
  if (indexed.type == RecordType::kRollback) {
    // Those of one target do the same, in no order. One that was promised is there.
    const auto promised = std::ranges::find_if(begun_, [&](const Begun& begun) {
      return may_be(begun) && begun.answered && !begun.failed;
    });
    if (promised != begun_.end()) it = promised;
  } else if (contents != nullptr && std::ranges::count_if(begun_, may_be) > 1) {
    const Sectors now = (*contents)(indexed.sequence);
    it = std::ranges::find_if(
        begun_, [&](const Begun& begun) { return may_be(begun) && after(begun.write) == now; });
    if (it == begun_.end()) return name + " is in the index, and not as anybody wrote it";
  }
  apply(it->write, indexed);
  it->found = true;
  if (it->answered) begun_.erase(it);
  return {};
}

Sectors VolumeModel::after(const ModelWrite& write) const {
  if (write.type == RecordType::kRollback) return at(write.target);
  Sectors sectors = newest();
  const std::span<std::uint64_t> part = part_of(sectors, write.range);
  CHECK(part.size() == write.sectors.size());
  std::copy(write.sectors.begin(), write.sectors.end(), part.begin());
  return sectors;
}

void VolumeModel::apply(const ModelWrite& write, const index::IndexedWrite& indexed) {
  states_.push_back({indexed.sequence, after(write), indexed.time});
}

std::string VolumeModel::follow(const IndexAnswers& index, SequenceNumber until) {
  std::string wrong;
  index.for_each(last(), until, [&](const index::IndexedWrite& indexed) {
    wrong = take(indexed, nullptr);
    return wrong.empty();
  });
  return wrong;
}

std::string VolumeModel::recover(const IndexAnswers& index, const Contents& contents) {
  std::vector<index::IndexedWrite> all;
  index.for_each(last(), SequenceNumber{UINT64_MAX}, [&](const index::IndexedWrite& indexed) {
    all.push_back(indexed);
    return true;
  });
  for (const index::IndexedWrite& indexed : all) {
    if (std::string wrong = take(indexed, &contents); !wrong.empty()) return wrong;
  }
  for (const Begun& begun : begun_) {
    if (begun.answered && !begun.failed) {
      return "an acknowledged write of [" + std::to_string(begun.write.extent.first.value) + ", " +
             std::to_string(begun.write.extent.end().value) + ") is lost";
    }
  }
  begun_.clear();
  return {};
}

std::size_t VolumeModel::state_of(SequenceNumber moment) const {
  const auto it =
      std::upper_bound(states_.begin(), states_.end(), moment,
                       [](SequenceNumber s, const State& state) { return s < state.sequence; });
  return static_cast<std::size_t>(it - states_.begin()) - 1;
}

const Sectors& VolumeModel::at(SequenceNumber moment) const {
  return states_[state_of(moment)].sectors;
}

bool VolumeModel::block_was(std::uint64_t block, std::span<const std::byte> bytes,
                            SequenceNumber from, SequenceNumber to) const {
  const ByteRange range{block * kBlockBytes, kBlockBytes};
  for (std::size_t i = state_of(from); i <= state_of(to); ++i) {
    if (!mismatch(bytes, part_of(states_[i].sectors, range))) return true;
  }
  return false;
}

}  // namespace mariner::test
