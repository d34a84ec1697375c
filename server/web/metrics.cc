#include "server/web/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <limits>
#include <string_view>

namespace mariner::web {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

constexpr double kSecondsPerNanosecond = 1e-9;

// In the order of kFamilies.
enum Family : std::size_t {
  kScsiCommands,
  kScsiDuration,
  kScsiBytes,
  kServes,
  kLogCommit,
  kLogBatch,
  kLogDurability,
  kLogDurableWrite,
  kLogUsed,
  kLogHistory,
  kLogPayload,
  kLogLimit,
  kScrubBytes,
  kScrubRounds,
  kScrubLastRound,
  kDamagedBlocks,
  kOldestRecoverable,
  kWindow,
  kWindowForecast,
  kWindowShortIn,
  kWritePace,
  kIndexPending,
  kIndexLookup,
  kCommitLag,
  kReplicaLag,
  kReplicaFailed,
  kSessions,
  kLentConnections,
  kLoginFailures,
  kLoginLimitRefusals,
  kLoginRedirections,
  kDigestErrors,
  kViews,
  kRollbackProgress,
  kCheckDuration,
  kClockSteps,
  kMulticastPayloadBytes,
  kMulticastRepairs,
  kMulticastRepairedBytes,
  kMulticastAdmitted,
  kMulticastDismissals,
  kMulticastStrange,
  kMulticastOverflows,
  kFamilyCount,
};

struct Description {
  const char* name;
  MetricType type;
  const char* help;
};

// Every metric there is.
constexpr std::array<Description, kFamilyCount> kFamilies{{
    {"mariner_scsi_commands_total", MetricType::Counter, "SCSI commands answered."},
    {"mariner_scsi_command_duration_seconds", MetricType::Histogram,
     "Time from a SCSI command's arrival with all its data to its answer."},
    {"mariner_scsi_bytes_total", MetricType::Counter,
     "Bytes that successful SCSI commands transferred."},
    {"mariner_volume_serving", MetricType::Gauge,
     "1 if hosts can use the volume; 0 if its image or its reservations cannot be opened."},
    {"mariner_log_commit_duration_seconds", MetricType::Histogram,
     "Time from a batch's dispatch to its being durable in the log."},
    {"mariner_log_batch_bytes", MetricType::Histogram,
     "Bytes that one physical write to the log carried."},
    {"mariner_log_durability_info", MetricType::Gauge,
     "How writes to a log disk are made durable: by fua or by a flush. Always 1."},
    {"mariner_log_durable_write_seconds", MetricType::Gauge,
     "What a small durable write to a log disk took either way, measured at start."},
    {"mariner_log_used_bytes", MetricType::Gauge, "Bytes of the log that hold history."},
    {"mariner_log_history_bytes", MetricType::Gauge,
     "Bytes that the log would use if nothing in it was compacted."},
    {"mariner_log_payload_bytes_total", MetricType::Counter,
     "Bytes that were written to the log, by why: blocks that hosts wrote, blocks that keeping the "
     "past of it took besides, and packs."},
    {"mariner_log_limit_bytes", MetricType::Gauge, "Bytes that the log may hold."},
    {"mariner_log_scrub_bytes_total", MetricType::Counter,
     "Bytes of old tracks of the log that were read again and verified."},
    {"mariner_log_scrub_rounds_total", MetricType::Counter,
     "Full passes of the background verification over the log."},
    {"mariner_log_scrub_last_round_timestamp_seconds", MetricType::Gauge,
     "When the last full pass over the log was completed, as Unix time."},
    {"mariner_log_damaged_blocks", MetricType::Gauge,
     "Blocks of the log that are known to be damaged or unreadable."},
    {"mariner_oldest_recoverable_timestamp_seconds", MetricType::Gauge,
     "The oldest moment that the volume can be rolled back to, as Unix time."},
    {"mariner_window_seconds", MetricType::Gauge,
     "The protection window that was asked for the volume."},
    {"mariner_window_forecast_seconds", MetricType::Gauge,
     "How much of the window the log will hold if it is written to as it is now."},
    {"mariner_window_short_in_seconds", MetricType::Gauge,
     "From when on that is less than was asked for, from now; absent: that is not foreseen."},
    {"mariner_write_pace_bytes_per_second", MetricType::Gauge,
     "What hosts may write to the volume so that the log holds the windows; absent: whatever "
     "comes."},
    {"mariner_index_pending_updates", MetricType::Gauge,
     "Updates that wait to be committed to the index."},
    {"mariner_index_lookup_duration_seconds", MetricType::Histogram,
     "Time that a lookup in the version index took."},
    {"mariner_commit_lag_seconds", MetricType::Gauge,
     "Age of the oldest acknowledged write that is not yet durable in the image."},
    {"mariner_replica_lag_seconds", MetricType::Gauge,
     "How long the image of a storage node of the cluster has lacked something that was "
     "acknowledged, as the volume's coordinator knows."},
    {"mariner_replica_failed", MetricType::Gauge,
     "1: the disk of a storage node's image fails, and the image is not counted on, as the "
     "volume's "
     "coordinator knows."},
    {"mariner_iscsi_sessions", MetricType::Gauge, "iSCSI sessions logged in."},
    {"mariner_iscsi_lent_connections", MetricType::Gauge,
     "iSCSI connections that socket threads receive and send for, because the main thread is "
     "busy."},
    {"mariner_login_failures_total", MetricType::Counter, "iSCSI logins that were refused."},
    {"mariner_login_limit_refusals_total", MetricType::Counter,
     "iSCSI logins that were refused for too many sessions."},
    {"mariner_login_redirections_total", MetricType::Counter,
     "iSCSI logins that were sent to another address."},
    {"mariner_digest_errors_total", MetricType::Counter,
     "iSCSI PDUs whose header or data digest was wrong."},
    {"mariner_views_exposed", MetricType::Gauge, "Views of past moments that are exposed as LUNs."},
    {"mariner_rollback_progress_ratio", MetricType::Gauge,
     "How much of the running rollback has been restored in the background, 0 to 1."},
    {"mariner_fsck_duration_seconds", MetricType::Histogram,
     "Time that checks of the volume's file system at some moment took, as those who made them "
     "told."},
    {"mariner_clock_steps_total", MetricType::Counter,
     "Steps of the wall clock that were noticed."},
    {"mariner_multicast_payload_bytes_total", MetricType::Counter,
     "Bytes of payloads of writes that this node has sent to others while it multicasts: by "
     "multicast, once for all, and over connections, once for each node."},
    {"mariner_multicast_repairs_total", MetricType::Counter,
     "Parts of payloads that a node did not get by multicast, and was sent over its connection."},
    {"mariner_multicast_repaired_bytes_total", MetricType::Counter, "Bytes of these parts."},
    {"mariner_multicast_admitted", MetricType::Gauge,
     "Whether a node gets the writes of a volume that is coordinated here by multicast: 1, or 0 "
     "while they go over its connection."},
    {"mariner_multicast_dismissals_total", MetricType::Counter,
     "How often a node was not to get writes by multicast any more, by the reason."},
    {"mariner_multicast_strange_datagrams_total", MetricType::Counter,
     "Datagrams that came to a multicast group and changed nothing: malformed, of an unknown "
     "stream (another node's, if the group is shared), or forged."},
    {"mariner_multicast_overflows_total", MetricType::Counter,
     "Multicast datagrams that the kernel had no room for."},
}};

constexpr std::array<const char*, kScsiOps> kOpNames{
    "read", "write", "unmap", "write_same", "compare_and_write", "flush", "other"};
constexpr std::array<const char*, kScsiOutcomes> kOutcomeNames{
    "good", "check_condition", "unit_attention", "reservation_conflict", "busy", "aborted"};

class Exposition {
 public:
  Exposition() : families_(kFamilyCount) {
    for (std::size_t i = 0; i < kFamilyCount; ++i) {
      families_[i].name = kFamilies[i].name;
      families_[i].help = kFamilies[i].help;
      families_[i].type = kFamilies[i].type;
    }
  }

  // Of a counter or gauge.
  void value(Family family, Labels labels, double value) {
    auto& metric = add(family, std::move(labels));
    if (kFamilies[family].type == MetricType::Counter) {
      metric.counter.value = value;
    } else {
      metric.gauge.value = value;
    }
  }

  // `unit` is what one of the histogram's steps is in the metric's base unit.
  template <typename Histogram>
  void histogram(Family family, Labels labels, const Histogram& from, double unit) {
    auto& to = add(family, std::move(labels)).histogram;
    std::uint64_t cumulative = 0;
    for (std::size_t i = 0; i < Histogram::kBuckets; ++i) {
      cumulative += from.counts()[i];
      const bool last = i + 1 == Histogram::kBuckets;
      const double bound = last ? std::numeric_limits<double>::infinity()
                                : static_cast<double>(Histogram::upper_bound(i)) * unit;
      to.bucket.push_back({cumulative, bound});
    }
    to.sample_count = cumulative;
    to.sample_sum = static_cast<double>(from.sum()) * unit;
  }

  [[nodiscard]] std::string text() const {
    return prometheus::TextSerializer().Serialize(families_);
  }

 private:
  ClientMetric& add(Family family, Labels labels) {
    auto& metric = families_[family].metric.emplace_back();
    metric.label = std::move(labels);
    return metric;
  }

  std::vector<MetricFamily> families_;
};

void add_scsi(Exposition& to, const std::string& volume, const ScsiMetrics& scsi) {
  for (std::size_t op = 0; op < kScsiOps; ++op) {
    const auto& counters = scsi.op(static_cast<ScsiOp>(op));
    const Labels labels{{"volume", volume}, {"op", kOpNames[op]}};
    for (std::size_t outcome = 0; outcome < kScsiOutcomes; ++outcome) {
      auto with_status = labels;
      with_status.push_back({"status", kOutcomeNames[outcome]});
      to.value(kScsiCommands, std::move(with_status),
               static_cast<double>(counters.commands[outcome]));
    }
    to.value(kScsiBytes, labels, static_cast<double>(counters.bytes));
    to.histogram(kScsiDuration, labels, counters.duration, kSecondsPerNanosecond);
  }
}

void add_volume(Exposition& to, const VolumeMetrics& volume) {
  const Labels labels{{"volume", volume.volume}};
  if (volume.scsi != nullptr) add_scsi(to, volume.volume, *volume.scsi);
  if (volume.serves) to.value(kServes, labels, *volume.serves ? 1 : 0);
  if (volume.index_lookup != nullptr)
    to.histogram(kIndexLookup, labels, *volume.index_lookup, kSecondsPerNanosecond);
  to.value(kIndexPending, labels, static_cast<double>(volume.index_pending_updates));
  if (volume.oldest_recoverable) {
    to.value(kOldestRecoverable, labels,
             static_cast<double>(volume.oldest_recoverable->ns) * kSecondsPerNanosecond);
  }
  const auto seconds = [&](Family family, std::optional<std::chrono::seconds> value) {
    if (value) to.value(family, labels, static_cast<double>(value->count()));
  };
  seconds(kWindow, volume.window);
  seconds(kWindowForecast, volume.window_lasting);
  seconds(kWindowShortIn, volume.window_short_in);
  if (volume.write_pace) to.value(kWritePace, labels, *volume.write_pace);
  to.value(kCommitLag, labels,
           static_cast<double>(volume.commit_lag.count()) * kSecondsPerNanosecond);
  for (const ReplicaMetrics& each : volume.replicas) {
    const Labels replica{{"volume", volume.volume}, {"replica", each.replica}, {"role", each.role}};
    to.value(kReplicaLag, replica, static_cast<double>(each.lag.count()) * kSecondsPerNanosecond);
    to.value(kReplicaFailed, replica, each.failed ? 1 : 0);
  }
  for (const MulticastReceiverMetrics& each : volume.multicast) {
    to.value(kMulticastAdmitted, {{"volume", volume.volume}, {"replica", each.replica}},
             each.admitted ? 1 : 0);
  }
  to.value(kViews, labels, static_cast<double>(volume.views_exposed));
  if (volume.rollback_progress) to.value(kRollbackProgress, labels, *volume.rollback_progress);
  if (volume.checks != nullptr)
    to.histogram(kCheckDuration, labels, *volume.checks, kSecondsPerNanosecond);
}

void add_log_disk(Exposition& to, const LogDiskMetrics& disk) {
  to.value(kLogDurability, {{"disk", disk.disk}, {"method", disk.durability}}, 1);
  const auto measured = [&](const char* method, std::optional<std::chrono::nanoseconds> time) {
    if (!time) return;
    to.value(kLogDurableWrite, {{"disk", disk.disk}, {"method", method}},
             static_cast<double>(time->count()) * kSecondsPerNanosecond);
  };
  measured("fua", disk.fua);
  measured("flush", disk.flush);
}

void add_scrub(Exposition& to, const LogScrubMetrics& scrub) {
  const Labels labels{{"disk", scrub.disk}};
  to.value(kScrubBytes, labels, static_cast<double>(scrub.bytes));
  to.value(kScrubRounds, labels, static_cast<double>(scrub.rounds));
  to.value(kDamagedBlocks, labels, static_cast<double>(scrub.damaged_blocks));
  if (scrub.last_round.ns != 0) {
    to.value(kScrubLastRound, labels,
             static_cast<double>(scrub.last_round.ns) * kSecondsPerNanosecond);
  }
}

void add_multicast(Exposition& to, const MulticastMetrics& multicast) {
  const auto count = [&to](Family family, Labels labels, std::uint64_t value) {
    to.value(family, std::move(labels), static_cast<double>(value));
  };
  count(kMulticastPayloadBytes, {{"way", "multicast"}}, multicast.multicast_bytes);
  count(kMulticastPayloadBytes, {{"way", "connection"}}, multicast.connection_bytes);
  for (const MulticastReplicaMetrics& each : multicast.replicas) {
    count(kMulticastRepairs, {{"replica", each.replica}}, each.repairs);
    count(kMulticastRepairedBytes, {{"replica", each.replica}}, each.repaired_bytes);
    for (const auto& [reason, times] : each.dismissals) {
      count(kMulticastDismissals, {{"replica", each.replica}, {"reason", reason}}, times);
    }
  }
  count(kMulticastStrange, {{"kind", "malformed"}}, multicast.malformed);
  count(kMulticastStrange, {{"kind", "unknown"}}, multicast.unknown);
  count(kMulticastStrange, {{"kind", "forged"}}, multicast.forged);
  count(kMulticastOverflows, {}, multicast.overflows);
}

void add_log_payloads(Exposition& to, const LogPayloadMetrics& payloads) {
  const auto count = [&](const char* kind, std::uint64_t bytes) {
    to.value(kLogPayload, {{"kind", kind}}, static_cast<double>(bytes));
  };
  count("written", payloads.written);
  count("before-image", payloads.before_images);
  count("moved", payloads.moved);
  count("kept", payloads.kept);
  count("packed", payloads.packed);
}

}  // namespace

std::string metrics_text(const NodeMetrics& metrics) {
  Exposition to;
  for (const auto& volume : metrics.volumes) add_volume(to, volume);
  if (metrics.log_commit != nullptr)
    to.histogram(kLogCommit, {}, *metrics.log_commit, kSecondsPerNanosecond);
  if (metrics.log_batch != nullptr) to.histogram(kLogBatch, {}, *metrics.log_batch, 1);
  for (const auto& disk : metrics.log_disks) add_log_disk(to, disk);
  to.value(kLogUsed, {}, static_cast<double>(metrics.log_used_bytes));
  to.value(kLogHistory, {}, static_cast<double>(metrics.log_history_bytes));
  to.value(kLogLimit, {}, static_cast<double>(metrics.log_limit_bytes));
  if (metrics.log_payloads) add_log_payloads(to, *metrics.log_payloads);
  for (const auto& scrub : metrics.log_scrubs) add_scrub(to, scrub);
  to.value(kSessions, {}, static_cast<double>(metrics.iscsi_sessions));
  to.value(kLentConnections, {}, static_cast<double>(metrics.iscsi_lent_connections));
  to.value(kLoginFailures, {}, static_cast<double>(metrics.login_failures));
  to.value(kLoginLimitRefusals, {}, static_cast<double>(metrics.login_limit_refusals));
  to.value(kLoginRedirections, {}, static_cast<double>(metrics.login_redirections));
  to.value(kDigestErrors, {}, static_cast<double>(metrics.digest_errors));
  to.value(kClockSteps, {}, static_cast<double>(metrics.clock_steps));
  if (metrics.multicast) add_multicast(to, *metrics.multicast);
  return to.text();
}

}  // namespace mariner::web
