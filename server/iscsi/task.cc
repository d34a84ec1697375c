#include "server/iscsi/task.h"

#include <bit>

#include "proto/check.h"

namespace mariner::iscsi {
namespace {

constexpr std::uint32_t kR2tSnBits = 8;
constexpr std::uint32_t kIndexMask = (1u << kTaskIndexBits) - 1;
constexpr std::uint32_t kR2tSnMask = (1u << kR2tSnBits) - 1;

}  // namespace

// From the low bits: task index, R2TSN, generation. The index is never all ones, so the tag is
// never kReservedTag.
std::uint32_t transfer_tag(TaskRef task, std::uint32_t r2t_sn) {
  return (task.generation << (kTaskIndexBits + kR2tSnBits)) |
         ((r2t_sn & kR2tSnMask) << kTaskIndexBits) | (task.index & kIndexMask);
}

TaskTable::TaskTable(std::size_t capacity) : chunks_((capacity + kChunkSlots - 1) / kChunkSlots) {
  CHECK(capacity >= 1 && capacity <= kTasksMax);
  free_.reserve(capacity);
  for (std::size_t i = capacity; i-- > 0;) free_.push_back(static_cast<std::uint32_t>(i));
  // At most half full, so that probes stay short.
  buckets_.assign(std::bit_ceil(capacity * 2), kNoSlot);
}

// One that is or was in use.
Task& TaskTable::slot(std::uint32_t index) {
  return (*chunks_[index / kChunkSlots])[index % kChunkSlots];
}

Task* TaskTable::allocate(std::uint32_t itt) {
  if (free_.empty()) return nullptr;
  const std::size_t bucket = bucket_of(itt);
  CHECK_MSG(buckets_[bucket] == kNoSlot, "the initiator task tag is in use");
  const std::uint32_t index = free_.back();
  if (auto& chunk = chunks_[index / kChunkSlots]; chunk == nullptr) {
    chunk = std::make_unique<Chunk>();
    const std::uint32_t first = index - index % kChunkSlots;
    for (std::uint32_t i = 0; i < kChunkSlots; ++i) {
      (*chunk)[i].ref = {.index = first + i, .generation = 1};
    }
  }
  Task& task = slot(index);
  free_.pop_back();
  ++used_;
  buckets_[bucket] = task.ref.index;
  task.state = Task::State::kReceiving;
  task.itt = itt;
  task.listed = true;
  return &task;
}

Task* TaskTable::find(std::uint32_t itt) {
  const std::uint32_t index = buckets_[bucket_of(itt)];
  return index == kNoSlot ? nullptr : &slot(index);
}

Task* TaskTable::get(TaskRef ref) {
  if (ref.index / kChunkSlots >= chunks_.size() || chunks_[ref.index / kChunkSlots] == nullptr) {
    return nullptr;
  }
  Task& task = slot(ref.index);
  return task.state != Task::State::kFree && task.ref.generation == ref.generation ? &task
                                                                                   : nullptr;
}

void TaskTable::unlist(Task& task) {
  if (!task.listed) return;
  task.listed = false;
  const std::size_t mask = buckets_.size() - 1;
  std::size_t hole = bucket_of(task.itt);
  CHECK(buckets_[hole] == task.ref.index);
  // Close the hole: move back what probed past it.
  for (std::size_t next = (hole + 1) & mask; buckets_[next] != kNoSlot; next = (next + 1) & mask) {
    const std::size_t home = home_of(slot(buckets_[next]).itt);
    if (((next - home) & mask) >= ((next - hole) & mask)) {
      buckets_[hole] = buckets_[next];
      hole = next;
    }
  }
  buckets_[hole] = kNoSlot;
}

void TaskTable::release(Task& task) {
  CHECK(task.state != Task::State::kFree);
  unlist(task);
  const std::uint32_t generation = task.ref.generation + 1;
  const TaskRef next{.index = task.ref.index, .generation = generation == 0 ? 1 : generation};
  task = Task{};
  task.ref = next;
  free_.push_back(next.index);
  --used_;
}

std::size_t TaskTable::home_of(std::uint32_t itt) const {
  // Fibonacci hashing: initiators count tags up, some in steps of a power of two.
  return (itt * 0x9e3779b1u) >> (32 - std::countr_zero(buckets_.size()));
}

std::size_t TaskTable::bucket_of(std::uint32_t itt) {
  const std::size_t mask = buckets_.size() - 1;
  std::size_t bucket = home_of(itt);
  while (buckets_[bucket] != kNoSlot && slot(buckets_[bucket]).itt != itt) {
    bucket = (bucket + 1) & mask;
  }
  return bucket;
}

}  // namespace mariner::iscsi
