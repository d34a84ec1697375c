#include "tests/sim/cluster/storage_part.h"

#include <utility>

namespace mariner::test {

StoragePart::StoragePart(SimNode& node, std::mt19937_64& random, StorageDisk& disk, VolumeId volume,
                         Planted planted_in, SimStorage::AskHistory ask)
    : storage(
          node, random, disk, planted_in, std::move(ask),
          [this](SequenceNumber durable, std::uint64_t granted) {
            host.durable(durable);
            host.granted(granted);
            reads.look();
          },
          [this] { host.outlived(); }),
      host({volume, disk.promised, disk.durable, disk.spill ? disk.spill->kept : SequenceNumber{}},
           node, storage, storage),
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
