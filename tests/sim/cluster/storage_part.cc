#include "tests/sim/cluster/storage_part.h"

#include <utility>

namespace mariner::test {
namespace {

// All in a minute.
constexpr replication::ImageHealth::Options kHealth{.failures_min = 3,
                                                    .failing_min = std::chrono::seconds(1),
                                                    .rest_min = std::chrono::seconds(2),
                                                    .rest_max = std::chrono::seconds(8),
                                                    .sound_after = std::chrono::seconds(20)};

}  // namespace

StoragePart::StoragePart(SimNode& node, std::mt19937_64& random, StorageDisk& disk, VolumeId volume,
                         Planted planted_in, SimStorage::AskHistory ask)
    : storage(
          node, random, disk, planted_in, std::move(ask),
          [this](SequenceNumber durable, std::uint64_t granted) {
            host.durable(durable);
            host.granted(granted);
            reads.look();
          },
          [this] { host.outlived(); }, [this](const Error& why) { host.image_failed(why); }),
      host({volume, disk.promised, disk.durable, disk.spill ? disk.spill->kept : SequenceNumber{}},
           node, storage, storage, kHealth),
      reads(node, storage, host),
      planted(planted_in) {
  host.granted(SimStorage::kLagBytesMax);
}

void StoragePart::received(replication::ConnectionId from, replication::ToStorage message) {
  if (planted == Planted::kEpochNotChecked && host.role().heard() != from) {
    if (auto* write = std::get_if<replication::WriteMessage>(&message)) {
      storage.prepare(*write);
      return;
    }
  }
  if (auto* resume = std::get_if<replication::Resume>(&message);
      resume != nullptr && planted == Planted::kNotStartedOver) {
    resume->start_over = false;
  }
  host.received(from, std::move(message));
  reads.look();
}

}  // namespace mariner::test
