// Who does what for one volume of a cluster, as it stands in the store that the nodes share, and
// the keys under which things stand there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/error.h"
#include "proto/units.h"
#include "replication/cluster_messages.h"

namespace mariner::manager {

// Why a wish was not followed.
enum class Declined : std::uint8_t {
  kNot,
  kNotAlive,    // who was wanted
  kCatchingUp,  // its storage lacks what was acknowledged
  kNotTaken,    // it is alive, but took nothing over for a while
  kLoggerAway,  // it stores nothing of the volume, and the logger is away
};

struct VolumeRecord {
  VolumeId volume;
  Epoch epoch;                      // of the coordinator
  replication::NodeId coordinator;  // 0: none, or none any more
  replication::NodeId logger;
  std::vector<replication::NodeId> storages;
  replication::NodeId wanted{};        // who is to coordinate; 0: whoever does
  Declined declined = Declined::kNot;  // the last wish, for who had it
  // The journals of the storage nodes take the logger's place.
  std::optional<replication::LogAway> away{};

  friend bool operator==(const VolumeRecord&, const VolumeRecord&) = default;
};

// Everything of ours.
inline constexpr std::string_view kClusterPrefix = "/mariner/";
// The record of a volume.
[[nodiscard]] std::string volume_key(VolumeId volume);
// It exists as long as the node's lease.
[[nodiscard]] std::string alive_key(replication::NodeId node);

[[nodiscard]] std::string encode(const VolumeRecord& record);
// kCorrupt: not a record, not of this volume, or it makes no sense (no logger, no storage node, a
// node twice, a logger that is away without two storage nodes beside it).
[[nodiscard]] Result<VolumeRecord> decode_volume_record(VolumeId volume, std::string_view bytes);

}  // namespace mariner::manager
