#include "server/web/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mariner::web {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

TEST(Metrics, ADaemonWithoutVolumes) {
  const auto text = metrics_text({.log_used_bytes = 10,
                                  .log_limit_bytes = 100,
                                  .iscsi_sessions = 2,
                                  .iscsi_lent_connections = 1,
                                  .login_failures = 3,
                                  .digest_errors = 4,
                                  .clock_steps = 5});
  EXPECT_THAT(text, HasSubstr("# HELP mariner_log_used_bytes Bytes of the log that hold history.\n"
                              "# TYPE mariner_log_used_bytes gauge\n"
                              "mariner_log_used_bytes 10\n"));
  EXPECT_THAT(text, HasSubstr("mariner_log_limit_bytes 100\n"));
  EXPECT_THAT(text, HasSubstr("mariner_iscsi_sessions 2\n"));
  EXPECT_THAT(text, HasSubstr("mariner_iscsi_lent_connections 1\n"));
  EXPECT_THAT(
      text,
      HasSubstr("# TYPE mariner_login_failures_total counter\nmariner_login_failures_total 3\n"));
  EXPECT_THAT(text, HasSubstr("mariner_digest_errors_total 4\n"));
  EXPECT_THAT(text, HasSubstr("mariner_clock_steps_total 5\n"));
}

TEST(Metrics, HowLogDisksMakeWritesDurable) {
  const auto text = metrics_text(
      {.log_disks = {{.disk = "/dev/vdb", .durability = "flush", .fua = 110us, .flush = 90us},
                     {.disk = "/dev/vdc", .durability = "fua"}}});
  EXPECT_THAT(text, HasSubstr("# TYPE mariner_log_durability_info gauge\n"
                              "mariner_log_durability_info{disk=\"/dev/vdb\",method=\"flush\"} 1\n"
                              "mariner_log_durability_info{disk=\"/dev/vdc\",method=\"fua\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("mariner_log_durable_write_seconds{disk=\"/dev/vdb\",method=\"fua\"} "
                              "0.00011"));
  EXPECT_THAT(text, HasSubstr("mariner_log_durable_write_seconds{disk=\"/dev/vdb\",method="
                              "\"flush\"} 9"));
  EXPECT_THAT(text, Not(HasSubstr("mariner_log_durable_write_seconds{disk=\"/dev/vdc\"")))
      << "configured, not measured";
}

TEST(Metrics, TheScrubOfALogDisk) {
  const auto text = metrics_text(
      {.log_scrubs = {{"/log0", 4096, 3, VersionTime{2'000'000'000}, 7}, {.disk = "/log1"}}});
  EXPECT_THAT(text, HasSubstr("# TYPE mariner_log_scrub_bytes_total counter\n"
                              "mariner_log_scrub_bytes_total{disk=\"/log0\"} 4096\n"
                              "mariner_log_scrub_bytes_total{disk=\"/log1\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("mariner_log_scrub_rounds_total{disk=\"/log0\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("mariner_log_damaged_blocks{disk=\"/log0\"} 7\n"));
  EXPECT_THAT(text,
              HasSubstr("mariner_log_scrub_last_round_timestamp_seconds{disk=\"/log0\"} 2\n"));
  EXPECT_THAT(text, Not(HasSubstr("last_round_timestamp_seconds{disk=\"/log1\"}")))
      << "it has not been there";
}

TEST(Metrics, CommandsOfAVolume) {
  ScsiMetrics scsi;
  scsi.count(ScsiOp::kWrite, ScsiOutcome::kGood, 4096, 100us);
  scsi.count(ScsiOp::kWrite, ScsiOutcome::kGood, 4096, 3us);
  scsi.count(ScsiOp::kWrite, ScsiOutcome::kCheckCondition, 4096, 60s);
  const auto text = metrics_text({.volumes = {{.volume = "db1", .scsi = &scsi}}});
  EXPECT_THAT(
      text,
      HasSubstr("mariner_scsi_commands_total{volume=\"db1\",op=\"write\",status=\"good\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("mariner_scsi_commands_total{volume=\"db1\",op=\"write\",status="
                              "\"check_condition\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("mariner_scsi_bytes_total{volume=\"db1\",op=\"write\"} 8192\n"));
  EXPECT_THAT(
      text,
      HasSubstr("mariner_scsi_command_duration_seconds_count{volume=\"db1\",op=\"write\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("mariner_scsi_command_duration_seconds_bucket{volume=\"db1\",op="
                              "\"write\",le=\"+Inf\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("mariner_scsi_command_duration_seconds_bucket{volume=\"db1\",op="
                              "\"write\",le=\"0.000131072\"} 2\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "mariner_scsi_command_duration_seconds_sum{volume=\"db1\",op=\"write\"} 60.000103"));
}

TEST(Metrics, StateOfAVolume) {
  DurationHistogram lookups;
  lookups.observe(1000);
  const auto text = metrics_text({.volumes = {{.volume = "db1",
                                               .serves = false,
                                               .index_lookup = &lookups,
                                               .index_pending_updates = 7,
                                               .oldest_recoverable = VersionTime{1'500'000'000},
                                               .window = 3600s,
                                               .window_lasting = 1800s,
                                               .window_short_in = 600s,
                                               .write_pace = 1'500'000.0,
                                               .commit_lag = 250ms,
                                               .views_exposed = 2,
                                               .rollback_progress = 0.5}}});
  EXPECT_THAT(text, HasSubstr("mariner_volume_serving{volume=\"db1\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("mariner_index_pending_updates{volume=\"db1\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("mariner_index_lookup_duration_seconds_count{volume=\"db1\"} 1\n"));
  EXPECT_THAT(text,
              HasSubstr("mariner_oldest_recoverable_timestamp_seconds{volume=\"db1\"} 1.5\n"));
  EXPECT_THAT(text, HasSubstr("mariner_window_seconds{volume=\"db1\"} 3600\n"));
  EXPECT_THAT(text, HasSubstr("mariner_window_forecast_seconds{volume=\"db1\"} 1800\n"));
  EXPECT_THAT(text, HasSubstr("mariner_window_short_in_seconds{volume=\"db1\"} 600\n"));
  EXPECT_THAT(text, HasSubstr("mariner_write_pace_bytes_per_second{volume=\"db1\"} 1500000\n"));
  EXPECT_THAT(metrics_text({.volumes = {{.volume = "db1"}}}),
              Not(AnyOf(HasSubstr("mariner_window_short_in_seconds{"),
                        HasSubstr("mariner_write_pace_bytes_per_second{"))));
  EXPECT_THAT(text, HasSubstr("mariner_commit_lag_seconds{volume=\"db1\"} 0.25\n"));
  EXPECT_THAT(text, HasSubstr("mariner_views_exposed{volume=\"db1\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("mariner_rollback_progress_ratio{volume=\"db1\"} 0.5\n"));
}

TEST(Metrics, ChecksOfAVolume) {
  CheckHistogram checks;
  checks.observe(1'500'000'000);
  const auto text = metrics_text({.volumes = {{.volume = "db1", .checks = &checks}}});
  EXPECT_THAT(text, HasSubstr("# TYPE mariner_fsck_duration_seconds histogram\n"));
  EXPECT_THAT(text, HasSubstr("mariner_fsck_duration_seconds_count{volume=\"db1\"} 1\n"
                              "mariner_fsck_duration_seconds_sum{volume=\"db1\"} 1.5\n"));
  EXPECT_THAT(metrics_text({.volumes = {{.volume = "db1"}}}),
              Not(HasSubstr("mariner_fsck_duration_seconds_count{")));
}

TEST(Metrics, TheReplicasOfAVolumeOfACluster) {
  const auto text = metrics_text(
      {.volumes = {{.volume = "db1", .replicas = {{"a", "master", 250ms}, {"b", "mirror", 3s}}}}});
  EXPECT_THAT(text,
              HasSubstr("# TYPE mariner_replica_lag_seconds gauge\n"
                        "mariner_replica_lag_seconds{volume=\"db1\",replica=\"a\",role=\"master\"} "
                        "0.25\n"
                        "mariner_replica_lag_seconds{volume=\"db1\",replica=\"b\",role=\"mirror\"} "
                        "3\n"));
}

TEST(Metrics, WhoseImageHasFailed) {
  const auto text =
      metrics_text({.volumes = {{.volume = "db1",
                                 .replicas = {{"a", "master", 0ms}, {"b", "mirror", 3s, true}}}}});
  EXPECT_THAT(
      text, HasSubstr("mariner_replica_failed{volume=\"db1\",replica=\"a\",role=\"master\"} 0\n"
                      "mariner_replica_failed{volume=\"db1\",replica=\"b\",role=\"mirror\"} 1\n"));
}

TEST(Metrics, Multicast) {
  const auto text = metrics_text(
      {.volumes = {{.volume = "db1", .multicast = {{"b", true}, {"c", false}}}},
       .multicast = MulticastMetrics{.multicast_bytes = 8192,
                                     .connection_bytes = 4096,
                                     .replicas = {{.replica = "b",
                                                   .repairs = 3,
                                                   .repaired_bytes = 3000,
                                                   .dismissals = {{"deaf", 1}, {"slow", 2}}}},
                                     .malformed = 4,
                                     .unknown = 5,
                                     .forged = 6,
                                     .overflows = 7}});
  EXPECT_THAT(text, HasSubstr("mariner_multicast_payload_bytes_total{way=\"multicast\"} 8192\n"
                              "mariner_multicast_payload_bytes_total{way=\"connection\"} 4096\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE mariner_multicast_repairs_total counter\n"
                              "mariner_multicast_repairs_total{replica=\"b\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("mariner_multicast_repaired_bytes_total{replica=\"b\"} 3000\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE mariner_multicast_admitted gauge\n"
                              "mariner_multicast_admitted{volume=\"db1\",replica=\"b\"} 1\n"
                              "mariner_multicast_admitted{volume=\"db1\",replica=\"c\"} 0\n"));
  EXPECT_THAT(text,
              HasSubstr("mariner_multicast_dismissals_total{replica=\"b\",reason=\"deaf\"} 1\n"
                        "mariner_multicast_dismissals_total{replica=\"b\",reason=\"slow\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("mariner_multicast_strange_datagrams_total{kind=\"malformed\"} 4\n"
                              "mariner_multicast_strange_datagrams_total{kind=\"unknown\"} 5\n"
                              "mariner_multicast_strange_datagrams_total{kind=\"forged\"} 6\n"));
  EXPECT_THAT(text, HasSubstr("mariner_multicast_overflows_total 7\n"));
  EXPECT_THAT(metrics_text({}), Not(HasSubstr("mariner_multicast_repairs_total{")));
}

TEST(Metrics, WhatIsNotKnownIsNotShown) {
  const auto text = metrics_text({.volumes = {{.volume = "db1"}}});
  EXPECT_THAT(text, Not(HasSubstr("mariner_oldest_recoverable_timestamp_seconds{")));
  EXPECT_THAT(text, Not(HasSubstr("mariner_rollback_progress_ratio{")));
  EXPECT_THAT(text, Not(HasSubstr("mariner_scsi_commands_total{")));
}

TEST(Metrics, TheLog) {
  DurationHistogram commits;
  SizeHistogram batches;
  commits.observe(43'000);
  batches.observe(4096);
  batches.observe(8192);
  const auto text = metrics_text(
      {.log_commit = &commits,
       .log_batch = &batches,
       .log_payloads = {
           {.written = 4096, .before_images = 8192, .moved = 100, .kept = 200, .packed = 300}}});
  EXPECT_THAT(text, HasSubstr("mariner_log_commit_duration_seconds_count 1\n"));
  EXPECT_THAT(text, HasSubstr("mariner_log_batch_bytes_bucket{le=\"4096\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("mariner_log_batch_bytes_bucket{le=\"8192\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("mariner_log_batch_bytes_sum 12288\n"));
  EXPECT_THAT(text, HasSubstr("mariner_log_payload_bytes_total{kind=\"written\"} 4096\n"
                              "mariner_log_payload_bytes_total{kind=\"before-image\"} 8192\n"
                              "mariner_log_payload_bytes_total{kind=\"moved\"} 100\n"
                              "mariner_log_payload_bytes_total{kind=\"kept\"} 200\n"
                              "mariner_log_payload_bytes_total{kind=\"packed\"} 300\n"));
  EXPECT_THAT(metrics_text({}), Not(HasSubstr("mariner_log_payload_bytes_total{")));
}

}  // namespace
}  // namespace mariner::web
