// Queues of pending modifications, one for each block of an index file, in memory of a fixed kind.
//
// A modification is a few bytes that only its commit function understands. Those of one queue stand
// in chunks one behind another, in order; a chunk holds modifications of one length, so that a
// modification costs no more than its bytes. A queue itself is a few numbers: the pool has its
// memory. Owner's thread only; several threads may read queues that nobody changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "proto/check.h"

namespace mariner::index {

using Modification = std::span<const std::byte>;

class ModificationPool;
class PendingModifications;

// In order of arrival. The pool that made it frees it: a queue that is destroyed must be empty.
class ModificationQueue {
 public:
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] std::uint32_t count() const { return count_; }

 private:
  friend class ModificationPool;
  friend class PendingModifications;
  std::uint32_t head_ = 0;  // chunk numbers, from 1
  std::uint32_t tail_ = 0;
  std::uint32_t count_ = 0;
  std::uint32_t chunks_ = 0;
  std::uint32_t generation_ = 0;  // another one whenever it begins anew
  // Of the last chunk, so that to append touches nothing of the chunk but where it writes.
  std::uint16_t tail_bytes_each_ = 0;
  std::uint16_t tail_count_ = 0;
};

class ModificationPool {
 public:
  struct Options {
    // A power of two from 64 to 65,536. A modification is at most modification_bytes_max() long.
    std::uint32_t chunk_bytes = 256;
  };

  explicit ModificationPool(const Options& options);
  ~ModificationPool();  // all queues are empty
  ModificationPool(const ModificationPool&) = delete;
  ModificationPool& operator=(const ModificationPool&) = delete;

  [[nodiscard]] std::size_t modification_bytes_max() const {
    return chunk_bytes_ - sizeof(Trailer);
  }

  void append(ModificationQueue& queue, Modification modification);
  // Moves all of `from` behind those of `queue`.
  void splice(ModificationQueue& queue, ModificationQueue&& from);
  // Empties it and takes the memory back.
  void clear(ModificationQueue& queue);

  // A place in a queue: between two of its modifications, or behind the last.
  struct Place {
    std::uint32_t chunk = 0;  // number; 0: the queue's beginning
    std::uint16_t index = 0;  // in it
  };
  [[nodiscard]] static Place end_place(const ModificationQueue& queue) {
    return {queue.tail_, queue.tail_count_};
  }
  // Calls visit(Modification) for each, in order.
  template <typename Visit>
  void for_each(const ModificationQueue& queue, Visit visit) const {
    for_each(queue, std::move(visit), Place{});
  }
  // From `from` on. (What came behind a place stands behind it as long as the queue has not begun
  // anew.)
  template <typename Visit>
  void for_each(const ModificationQueue& queue, Visit visit, const Place& from) const {
    std::uint32_t first = from.index;  // in the first chunk
    for (std::uint32_t number = from.chunk == 0 ? queue.head_ : from.chunk; number != 0;) {
      const std::byte* const chunk = chunk_at(number);
      Trailer trailer{0, queue.tail_bytes_each_, queue.tail_count_};
      if (number != queue.tail_) trailer = trailer_of(chunk);
      const std::byte* at = chunk + std::size_t{first} * trailer.bytes_each;
      for (std::uint32_t i = first; i < trailer.count; ++i, at += trailer.bytes_each) {
        visit(Modification(at, trailer.bytes_each));
      }
      first = 0;
      number = trailer.next;
    }
  }

  // Of all queues that have begun, the number.
  [[nodiscard]] std::uint64_t generations() const { return generations_; }

  // Hints that the queue will be appended to soon.
  void prefetch(const ModificationQueue& queue) const {
    if (queue.tail_ != 0) __builtin_prefetch(end_of(queue), 1);
  }
  // Memory of all queues, in whole chunks.
  [[nodiscard]] std::size_t used_bytes() const { return used_chunks_ * chunk_bytes_; }

 private:
  static constexpr std::size_t kSlabsMax = 32'768;
  // At the end of a chunk that has a next one, or is free.
  struct Trailer {
    std::uint32_t next = 0;
    std::uint16_t bytes_each = 0;
    std::uint16_t count = 0;
  };
  static_assert(sizeof(Trailer) == 8);

  [[nodiscard]] std::byte* chunk_at(std::uint32_t number) const {
    return slabs_[(number - 1) >> slab_shift_] +
           std::size_t{(number - 1) & ((1u << slab_shift_) - 1)} * chunk_bytes_;
  }
  Trailer& trailer_of(std::byte* chunk) {
    return *reinterpret_cast<Trailer*>(chunk + chunk_bytes_ - sizeof(Trailer));
  }
  [[nodiscard]] const Trailer& trailer_of(const std::byte* chunk) const {
    return *reinterpret_cast<const Trailer*>(chunk + chunk_bytes_ - sizeof(Trailer));
  }
  // Where the next modification goes if it fits. Requires that the queue has a chunk.
  [[nodiscard]] std::byte* end_of(const ModificationQueue& queue) const {
    return chunk_at(queue.tail_) + std::size_t{queue.tail_count_} * queue.tail_bytes_each_;
  }
  // The last chunk gets `next` behind it.
  void close_tail(const ModificationQueue& queue, std::uint32_t next) {
    new (&trailer_of(chunk_at(queue.tail_)))
        Trailer{next, queue.tail_bytes_each_, queue.tail_count_};
  }
  std::uint32_t new_chunk();

  const std::uint32_t chunk_bytes_;
  const std::uint32_t slab_shift_;  // log2 of a slab's chunks
  std::vector<std::byte*> slabs_;   // huge pages
  std::uint32_t free_ = 0;          // first of those that are free, chained
  std::uint32_t fresh_ = 1;         // the first that was never used
  std::size_t used_chunks_ = 0;
  std::uint64_t generations_ = 0;
};

// The modifications that a block lacks: those that a commit has taken, then those that came since.
class PendingModifications {
 public:
  PendingModifications(const ModificationPool& pool, const ModificationQueue* first,
                       const ModificationQueue* second = nullptr)
      : pool_(&pool), first_(first), second_(second) {}

  [[nodiscard]] std::uint32_t count() const {
    return (first_ == nullptr ? 0 : first_->count()) + (second_ == nullptr ? 0 : second_->count());
  }
  [[nodiscard]] bool empty() const { return count() == 0; }
  // What was there when somebody looked. (Queues are appended to, or emptied; and their memory is
  // used anew only then.)
  struct Stamp {
    std::uint64_t taken_at = 0;  // ModificationPool::generations()
    std::uint32_t generations[2] = {};
    std::uint32_t counts[2] = {};
    ModificationPool::Place ends[2] = {};
    [[nodiscard]] std::uint32_t count() const { return counts[0] + counts[1]; }
  };
  [[nodiscard]] Stamp stamp() const {
    Stamp stamp{.taken_at = pool_->generations()};
    int i = 0;
    for (const ModificationQueue* const queue : {first_, second_}) {
      if (queue == nullptr || queue->empty()) continue;
      stamp.generations[i] = queue->generation_;
      stamp.ends[i] = ModificationPool::end_place(*queue);
      stamp.counts[i++] = queue->count_;
    }
    return stamp;
  }
  // Whether what was there at `stamp` stands where it did, in front of all that has come since.
  [[nodiscard]] bool extends(const Stamp& before) const {
    const Stamp now = stamp();
    if (now.taken_at - before.taken_at >= UINT32_MAX) return false;  // numbers have come round
    if (before.count() == 0) return true;
    if (now.generations[0] != before.generations[0] || now.counts[0] < before.counts[0])
      return false;
    if (before.counts[1] == 0) return true;
    return now.counts[0] == before.counts[0] && now.generations[1] == before.generations[1] &&
           now.counts[1] >= before.counts[1];
  }
  // Calls visit(Modification) for each that was not there at `since`, in order; only as long as
  // extends(since) holds. (Nothing was there at Stamp{}.)
  template <typename Visit>
  void for_each(Visit visit, const Stamp& since) const {
    int i = 0;
    for (const ModificationQueue* const queue : {first_, second_}) {
      if (queue == nullptr || queue->empty()) continue;
      pool_->for_each(*queue, visit, since.ends[i++]);
    }
  }
  template <typename Visit>
  void for_each(Visit visit) const {
    for_each(std::move(visit), Stamp{});
  }

 private:
  const ModificationPool* pool_;
  const ModificationQueue* first_;
  const ModificationQueue* second_;
};

}  // namespace mariner::index
