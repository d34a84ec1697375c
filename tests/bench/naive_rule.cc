// marinerd with the naive rule: a write is acknowledged when the log and both images have it on
// stable storage. The rival of `run.sh replication`.
//
// The linker puts these functions in the place of the product's (--wrap): the coordinator hears of
// the logger's word only as far as the images are, and a storage node applies a write when it
// comes, not when it is settled: log and images are written at the same time, with `apply_delay =
// "0s"` at once, and what waited meanwhile in one go. Everything else is the product. It is for
// measuring while all nodes are there: what was not settled is in the images.
#include <naive_names.h>  // of the functions: naive_names.py

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>
#include <variant>

#include "replication/coordinator_role.h"
#include "replication/storage_role.h"

namespace mariner::replication {
namespace {

constexpr std::size_t kImages = 2;

struct Everywhere {
  NodeId logger;
  SequenceNumber logged;
  std::map<NodeId, StorageProgress> images;  // as they have said

  [[nodiscard]] SequenceNumber through() const {
    if (images.size() < kImages) return {};
    SequenceNumber least = logged;
    for (const auto& [node, progress] : images) least = std::min(least, progress.durable);
    return least;
  }
};

// The process has few terms, and ends after the measurement.
std::unordered_map<const CoordinatorRole*, Everywhere>& terms() {
  static std::unordered_map<const CoordinatorRole*, Everywhere> terms;
  return terms;
}

}  // namespace

// As members are called: `this` comes first.
void product_from_logger(CoordinatorRole* role, NodeId node, FromLogger message, VersionTime now,
                         CoordinatorRole::Actions& out) __asm__("__real_" FROM_LOGGER);
void product_from_storage(CoordinatorRole* role, NodeId node, const FromStorage& message,
                          VersionTime now,
                          CoordinatorRole::Actions& out) __asm__("__real_" FROM_STORAGE);
void product_to_storage(StorageRole* role, ConnectionId from, ToStorage message,
                        StorageRole::Actions& out) __asm__("__real_" TO_STORAGE);
void from_logger(CoordinatorRole* role, NodeId node, FromLogger message, VersionTime now,
                 CoordinatorRole::Actions& out) __asm__("__wrap_" FROM_LOGGER);
void from_storage(CoordinatorRole* role, NodeId node, const FromStorage& message, VersionTime now,
                  CoordinatorRole::Actions& out) __asm__("__wrap_" FROM_STORAGE);
void to_storage(StorageRole* role, ConnectionId from, ToStorage message,
                StorageRole::Actions& out) __asm__("__wrap_" TO_STORAGE);

// A coordinator of the product knows of no image that is ahead of what is settled.
void tell(CoordinatorRole* role, NodeId node, StorageProgress progress, VersionTime now,
          CoordinatorRole::Actions& out) {
  progress.durable = std::min(progress.durable, role->settled());
  product_from_storage(role, node, progress, now, out);
}

// The logger's word: nobody else keeps this one's log.
void settle(CoordinatorRole* role, const Logged& logged, VersionTime now,
            CoordinatorRole::Actions& out) {
  const Everywhere& everywhere = terms()[role];
  if (everywhere.through() <= role->settled()) return;
  product_from_logger(role, everywhere.logger,
                      Logged{logged.volume, logged.epoch, everywhere.through()}, now, out);
  for (const auto& [node, progress] : everywhere.images) tell(role, node, progress, now, out);
}

void from_logger(CoordinatorRole* role, NodeId node, FromLogger message, VersionTime now,
                 CoordinatorRole::Actions& out) {
  const auto* logged = std::get_if<Logged>(&message);
  if (logged == nullptr || !role->ready()) {
    return product_from_logger(role, node, std::move(message), now, out);
  }
  terms()[role].logger = node;
  SequenceNumber& through = terms()[role].logged;
  through = std::max(through, logged->through);
  settle(role, *logged, now, out);
}

void from_storage(CoordinatorRole* role, NodeId node, const FromStorage& message, VersionTime now,
                  CoordinatorRole::Actions& out) {
  const auto* progress = std::get_if<StorageProgress>(&message);
  if (progress == nullptr) return product_from_storage(role, node, message, now, out);
  terms()[role].images[node] = *progress;
  settle(role, {progress->volume, progress->epoch, {}}, now, out);
  tell(role, node, *progress, now, out);
}

void to_storage(StorageRole* role, ConnectionId from, ToStorage message,
                StorageRole::Actions& out) {
  if (auto* write = std::get_if<WriteMessage>(&message)) write->settled = write->stamp.sequence;
  product_to_storage(role, from, std::move(message), out);
}

}  // namespace mariner::replication
