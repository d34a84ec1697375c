// The metrics of a daemon: what the data path counts, and how it is shown to Prometheus.
//
// Names, types and help texts stand in one place (metrics.cc). Counting happens in plain structs on
// their owner's thread; only a scrape turns them into Prometheus families.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proto/histogram.h"
#include "proto/units.h"

namespace mariner::web {

enum class ScsiOp { kRead, kWrite, kUnmap, kWriteSame, kCompareAndWrite, kFlush, kOther };
inline constexpr std::size_t kScsiOps = 7;

// kUnitAttention: told of a change, and to be sent again; nothing failed.
enum class ScsiOutcome {
  kGood,
  kCheckCondition,
  kUnitAttention,
  kReservationConflict,
  kBusy,
  kAborted
};
inline constexpr std::size_t kScsiOutcomes = 6;

// The commands of one volume.
class ScsiMetrics {
 public:
  struct Op {
    std::array<std::uint64_t, kScsiOutcomes> commands{};
    std::uint64_t bytes = 0;  // transferred by commands with outcome kGood
    DurationHistogram duration;
  };

  void count(ScsiOp op, ScsiOutcome outcome, std::uint64_t bytes,
             std::chrono::nanoseconds duration) {
    auto& counters = ops_[static_cast<std::size_t>(op)];
    ++counters.commands[static_cast<std::size_t>(outcome)];
    if (outcome == ScsiOutcome::kGood) counters.bytes += bytes;
    counters.duration.observe(duration.count() < 0 ? 0
                                                   : static_cast<std::uint64_t>(duration.count()));
  }

  [[nodiscard]] const Op& op(ScsiOp op) const { return ops_[static_cast<std::size_t>(op)]; }

 private:
  std::array<Op, kScsiOps> ops_;
};

// A storage node of a volume of a cluster, as the coordinator knows it.
struct ReplicaMetrics {
  std::string replica;             // its name
  std::string role;                // "master": beside the coordinator; "mirror"
  std::chrono::nanoseconds lag{};  // how long its image has lacked something acknowledged
  bool failed = false;             // its image cannot be counted on: its disk fails
};

// A node that is to get the writes of a volume that is coordinated here by multicast.
struct MulticastReceiverMetrics {
  std::string replica;    // its name
  bool admitted = false;  // it does
};

// What was sent to another node again, and how often it was dismissed from multicast.
struct MulticastReplicaMetrics {
  std::string replica;
  std::uint64_t repairs = 0;
  std::uint64_t repaired_bytes = 0;
  std::vector<std::pair<const char*, std::uint64_t>> dismissals{};  // by reason
};

// What a node of a cluster has sent and heard by multicast, and instead.
struct MulticastMetrics {
  std::uint64_t multicast_bytes = 0;   // of payloads, each once
  std::uint64_t connection_bytes = 0;  // of payloads, once for each node
  std::vector<MulticastReplicaMetrics> replicas{};
  std::uint64_t malformed = 0;  // datagrams that came and changed nothing
  std::uint64_t unknown = 0;
  std::uint64_t forged = 0;
  std::uint64_t overflows = 0;
};

// One volume at the moment of a scrape. Pointers live until the scrape ends; null: not shown.
struct VolumeMetrics {
  std::string volume;
  std::optional<bool> serves{};
  const ScsiMetrics* scsi = nullptr;
  const DurationHistogram* index_lookup = nullptr;
  std::uint64_t index_pending_updates = 0;
  std::optional<VersionTime> oldest_recoverable;
  std::optional<std::chrono::seconds> window;           // as it was asked for
  std::optional<std::chrono::seconds> window_lasting;   // what the log will hold of it
  std::optional<std::chrono::seconds> window_short_in;  // from when on that is less
  std::optional<double> write_pace;                     // bytes a second, if hosts are bound to it
  std::chrono::nanoseconds
      commit_lag{};  // age of the oldest write that is not durable in the image
  std::vector<ReplicaMetrics> replicas{};  // of a volume that is coordinated here
  std::vector<MulticastReceiverMetrics> multicast{};
  std::uint64_t views_exposed = 0;
  std::optional<double> rollback_progress;  // 0 to 1, while one is being restored
  const CheckHistogram* checks = nullptr;   // of its file system at some moment
};

// One log disk.
struct LogDiskMetrics {
  std::string disk;
  std::string durability;                           // "fua" or "flush"
  std::optional<std::chrono::nanoseconds> fua{};    // what a small write took so, at start
  std::optional<std::chrono::nanoseconds> flush{};  // and so
};

// The background verification of one log disk.
struct LogScrubMetrics {
  std::string disk;
  std::uint64_t bytes = 0;
  std::uint64_t rounds = 0;
  VersionTime last_round;  // 0: none yet, and not shown
  std::uint64_t damaged_blocks = 0;
};

// Payload that was logged, in bytes, by why.
struct LogPayloadMetrics {
  std::uint64_t written = 0;  // by hosts
  std::uint64_t before_images = 0;
  std::uint64_t moved = 0;
  std::uint64_t kept = 0;
  std::uint64_t packed = 0;  // written to the disk once more, compacted: bytes of packs
};

struct NodeMetrics {
  std::vector<VolumeMetrics> volumes;
  std::vector<LogDiskMetrics> log_disks{};
  const DurationHistogram* log_commit = nullptr;
  const SizeHistogram* log_batch = nullptr;
  std::uint64_t log_used_bytes = 0;
  std::uint64_t log_history_bytes = 0;
  std::uint64_t log_limit_bytes = 0;
  std::optional<LogPayloadMetrics> log_payloads{};  // of a node with a log
  std::vector<LogScrubMetrics> log_scrubs;
  std::uint64_t iscsi_sessions = 0;
  std::uint64_t iscsi_lent_connections = 0;  // to socket threads, now
  std::uint64_t login_failures = 0;
  std::uint64_t login_limit_refusals = 0;  // of them
  std::uint64_t login_redirections = 0;
  std::uint64_t digest_errors = 0;
  std::uint64_t clock_steps = 0;
  std::optional<MulticastMetrics> multicast{};  // of a node of a cluster
};

// The Prometheus text format, version 0.0.4.
[[nodiscard]] std::string metrics_text(const NodeMetrics& metrics);
inline constexpr const char* kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace mariner::web
