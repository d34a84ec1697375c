// What a start finds of each volume in the log and the index, until the volume begins.
//
// Owner's thread only; what blocks happens before the event loop runs.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "index/stored_index.h"
#include "logging/log_location.h"
#include "logging/record.h"
#include "server/node/index_stack.h"
#include "server/node/log.h"
#include "server/node/meta_store.h"
#include "server/volume/volume_history.h"

namespace mariner::node {

class RecoveredVolumes {
 public:
  struct Found {
    volume::VolumeHistory history;
    std::shared_ptr<index::StoredIndex> index;
    bool based_everywhere = false;  // volume::VolumeRelease
  };
  // How a volume's records follow each other.
  enum class Order {
    // Its coordinator stands beside the log: what is missing above what was settled is void.
    kAny,
    // The coordinator is told in the order of numbers (replication/PROTOCOL.md, section 3): what
    // stands behind a missing number was acknowledged to nobody, and is taken back, because the
    // coordinator will send it again, or void it.
    kByNumber,
  };

  RecoveredVolumes(MetaStore& store, Log& log) : store_(store), log_(log) {}

  // Before recovery: there is a volume with this id and size.
  void expect(std::uint32_t id, BlockCount blocks, Order order = Order::kAny);
  // Opens the indexes of those.
  Result<void> open_indexes(IndexStack& indexes, std::uint64_t given_up_ordinal);
  // During recovery: takes each record of the log.
  void record(const logging::Record& record, const logging::LogLocation& location);
  // The lowest ordinal of what waits for a missing number; UINT64_MAX: nothing does. Everything
  // below that was given to record() is in the indexes.
  [[nodiscard]] std::uint64_t held_from() const;
  // After recovery: the ordinals of the records that are taken back. Until the log has been told
  // that they were withdrawn, durably, nothing may begin.
  [[nodiscard]] std::vector<std::uint64_t> taken_back() const;

  // What was found of a volume, for it to begin with; of a new one, nothing but an empty index.
  Result<Found> take(std::uint32_t id);
  // Finds out what the image lacks. Runs the loop.
  Result<void> find_unapplied(Found& found);
  // It is not wanted any more.
  void drop(std::uint32_t id) { volumes_.erase(id); }
  // Nobody uses the volume's index any more.
  void remove_index(std::uint32_t id) { indexes_->remove(VolumeId{id}); }

 private:
  struct Held {
    logging::Record record;
    logging::LogLocation location;
  };
  struct Volume {
    volume::VolumeHistory history;
    std::shared_ptr<index::StoredIndex> index;
    BlockCount blocks;
    Order order = Order::kAny;
    SequenceNumber given_up;  // every number up to it has been used, and may be missing
    std::deque<Held> behind;  // a missing number, in the order of the log
  };

  [[nodiscard]] bool follows(const Volume& volume, const logging::Record& record) const;
  void add(Volume& volume, const logging::Record& record, const logging::LogLocation& location);

  MetaStore& store_;
  Log& log_;
  IndexStack* indexes_ = nullptr;
  std::unordered_map<std::uint32_t, Volume> volumes_;
  std::size_t held_ = 0;
  std::vector<std::uint64_t> given_back_;  // ordinals of what was held and is not waited for
};

}  // namespace mariner::node
