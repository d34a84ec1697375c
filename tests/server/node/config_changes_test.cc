#include "server/node/config_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <utility>

namespace mariner {
namespace {

using Effect = ConfigChange::Effect;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ConfigChanges : public ::testing::Test {
 protected:
  ConfigChanges() {
    running_.log.disks = {"/log0"};
    VolumeConfig& db1 = running_.volumes.emplace_back();
    db1.name = "db.1";
    db1.size = ByteSize{8u << 20};
  }
  // What the change leads to; it is the only one.
  ConfigChange changed(const std::function<void(Config&)>& change) {
    Config read = running_;
    change(read);
    auto changes = config_changes(running_, read);
    EXPECT_EQ(changes.size(), 1u) << keys_of(changes, Effect::kAtOnce)
                                  << keys_of(changes, Effect::kNextStart);
    return changes.empty() ? ConfigChange{} : changes[0];
  }
  void in_a_cluster() { running_.roles = {Role::kTarget, Role::kStorage}; }

  Config running_;
};

TEST_F(ConfigChanges, WhatIsTheSameIsNone) {
  EXPECT_THAT(config_changes(running_, running_), IsEmpty());
}

TEST_F(ConfigChanges, WhatAReloadTakes) {
  const std::pair<const char*, std::function<void(Config&)>> changes[] = {
      {"server.discovery_auth", [](Config& c) { c.server.discovery_auth = {"alice"}; }},
      {"server.busy_poll", [](Config& c) { c.server.busy_poll = std::chrono::microseconds(100); }},
      {"log.disks", [](Config& c) { c.log.disks = {"/log1"}; }},
      {"log.polling", [](Config& c) { c.log.polling = false; }},
      {"log.on_full", [](Config& c) { c.log.on_full = OnFull::kStopWrites; }},
      {"log.on_full", [](Config& c) { c.log.on_full = OnFull::kThrottle; }},
      {"log.compact", [](Config& c) { c.log.compact.enabled = true; }},
      {"log.compact_after", [](Config& c) { c.log.compact.after = std::chrono::hours(2); }},
      {"log.compact_cpu", [](Config& c) { c.log.compact.cpu_share = 0.5; }},
      {"views.overlay_max", [](Config& c) { c.views.overlay_max = ByteSize{1u << 30}; }},
      {"rollback.rate_max", [](Config& c) { c.rollback.rate_max = ByteSize{8u << 20}; }},
      {"volume.db.1.size", [](Config& c) { c.volumes[0].size = ByteSize{16u << 20}; }},
      {"volume.db.1.window", [](Config& c) { c.volumes[0].window = std::chrono::hours(1); }},
      {"volume.db.1.acl", [](Config& c) { c.volumes[0].acl = {"iqn.2026-11.org.host:a"}; }},
  };
  for (const auto& [key, change] : changes) {
    const ConfigChange found = changed(change);
    EXPECT_EQ(found.key, key);
    EXPECT_EQ(found.effect, Effect::kAtOnce) << key;
    EXPECT_THAT(found.reason, IsEmpty());
  }
}

TEST_F(ConfigChanges, WhatWaitsForTheNextStart) {
  const std::pair<const char*, std::function<void(Config&)>> changes[] = {
      {"server.http", [](Config& c) { c.server.http.emplace(); }},
      {"server.admin", [](Config& c) { c.server.admin_socket = "/other"; }},
      {"server.initiator_memory", [](Config& c) { c.server.initiator_memory = ByteSize{1}; }},
      {"server.socket_threads", [](Config& c) { c.server.socket_threads = 2; }},
      {"server.socket_threads_load", [](Config& c) { c.server.socket_threads_load = 0.5; }},
      {"server.portal_group.2.portals",
       [](Config& c) {
         c.server.portal_groups.push_back({2, {{"192.0.2.1", 3260, false}}});
       }},
      {"log.lost", [](Config& c) { c.log.lost = {"/dev/sdb"}; }},
      {"log.max_size", [](Config& c) { c.log.max_size = ByteSize{1}; }},
      {"log.track_size", [](Config& c) { c.log.track_size = ByteSize{1}; }},
      {"log.t_wait", [](Config& c) { c.log.t_wait = std::chrono::microseconds(1); }},
      {"log.durability", [](Config& c) { c.log.durability = LogDurability::kFlush; }},
      {"log.scrub_rate", [](Config& c) { c.log.scrub_rate = ByteSize{0}; }},
      {"storage.lag_max", [](Config& c) { c.storage.lag_max = ByteSize{1}; }},
      {"storage.apply_delay", [](Config& c) { c.storage.apply_delay = std::chrono::hours(1); }},
      {"index.replay_max", [](Config& c) { c.index.replay_max = 1; }},
      {"cluster.pki", [](Config& c) { c.cluster.pki = "/pki"; }},
      {"volume.db.1.removable", [](Config& c) { c.volumes[0].removable = true; }},
  };
  for (const auto& [key, change] : changes) {
    const ConfigChange found = changed(change);
    EXPECT_EQ(found.key, key);
    EXPECT_EQ(found.effect, Effect::kNextStart) << key;
  }
}

TEST_F(ConfigChanges, ALogThatIsTooSmallSlowsNobodyBeforeItIsLarger) {
  running_.log.max_size = ByteSize{64u << 20};
  running_.log.track_size = ByteSize{8u << 20};
  Config read = running_;
  read.log.on_full = OnFull::kThrottle;
  read.log.max_size = ByteSize{1u << 30};
  for (const ConfigChange& change : config_changes(running_, read)) {
    EXPECT_EQ(change.effect, Effect::kNextStart) << change.key;
  }
  take_changes(running_, read);
  EXPECT_EQ(running_.log.on_full, OnFull::kShortenWindow);
}

TEST_F(ConfigChanges, WhatIsNeverTakenSaysWhy) {
  ConfigChange found = changed([](Config& c) { c.volumes[0].size = ByteSize{4u << 20}; });
  EXPECT_EQ(found.effect, Effect::kNever);
  EXPECT_EQ(found.from, "\"8M\"");
  EXPECT_EQ(found.to, "\"4M\"");
  EXPECT_THAT(found.reason, HasSubstr("never shrinks: expected at least \"8M\""));
  found = changed([](Config& c) { c.volumes[0].block_size = 4096; });
  EXPECT_EQ(found.effect, Effect::kNever);
  EXPECT_THAT(found.reason, HasSubstr("keeps its block size"));
}

TEST_F(ConfigChanges, AVolumeThatIsNewAndOneThatIsGone) {
  Config read = running_;
  read.volumes[0].name = "db2";
  read.volumes[0].block_size = 4096;
  std::vector<std::string> keys;
  for (const ConfigChange& change : config_changes(running_, read)) {
    EXPECT_EQ(change.effect, Effect::kAtOnce) << change.key;
    EXPECT_EQ(change.from.empty(), change.key.starts_with("volume.db2."));
    EXPECT_EQ(change.to.empty(), change.key.starts_with("volume.db.1."));
    keys.push_back(change.key);
  }
  EXPECT_THAT(keys, ::testing::IsSupersetOf({"volume.db2.size", "volume.db.1.size"}));
}

TEST_F(ConfigChanges, OfANodeOfACluster) {
  in_a_cluster();
  EXPECT_EQ(changed([](Config& c) { c.log.disks = {"/log1"}; }).effect, Effect::kAtOnce);
  EXPECT_EQ(changed([](Config& c) { c.log.on_full = OnFull::kStopWrites; }).effect,
            Effect::kAtOnce);
  EXPECT_EQ(changed([](Config& c) { c.rollback.rate_max = ByteSize{8u << 20}; }).effect,
            Effect::kAtOnce);
  EXPECT_EQ(changed([](Config& c) { c.cluster.catch_up_max = ByteSize{8u << 20}; }).effect,
            Effect::kAtOnce);
  EXPECT_EQ(changed([](Config& c) { c.views.overlay_max = ByteSize{8u << 20}; }).effect,
            Effect::kNextStart);
  EXPECT_EQ(changed([](Config& c) { c.cluster.lease = std::chrono::seconds(9); }).key,
            "cluster.lease");
  const ConfigChange found = changed([](Config& c) { c.volumes[0].size = ByteSize{16u << 20}; });
  EXPECT_EQ(found.effect, Effect::kNever);
  EXPECT_THAT(found.reason, HasSubstr("of a cluster"));
  Config without_log = running_;
  without_log.log.disks.clear();
  EXPECT_EQ(keys_of(config_changes(running_, without_log), Effect::kAtOnce), "");
  EXPECT_EQ(keys_of(config_changes(without_log, running_), Effect::kAtOnce), "");
}

TEST_F(ConfigChanges, WithOtherRolesEverythingWaits) {
  Config read = running_;
  read.roles = {Role::kTarget, Role::kStorage};
  read.log.disks = {"/log1"};
  read.volumes[0].size = ByteSize{1u << 20};
  const auto changes = config_changes(running_, read);
  EXPECT_EQ(changes[0].key, "roles");
  EXPECT_EQ(changes[0].to, "[\"target\", \"storage\"]");
  for (const ConfigChange& change : changes) {
    EXPECT_EQ(change.effect, Effect::kNextStart) << change.key;
  }
}

TEST_F(ConfigChanges, KeysAreJoined) {
  const std::vector<ConfigChange> changes{{"a", "", "1", Effect::kAtOnce},
                                          {"b", "", "1", Effect::kNextStart},
                                          {"c", "", "1", Effect::kAtOnce}};
  EXPECT_EQ(keys_of(changes, Effect::kAtOnce), "a, c");
  EXPECT_EQ(keys_of(changes, Effect::kNever), "");
}

TEST_F(ConfigChanges, WhatIsTakenAtOnceIsTaken) {
  Config read;
  read.log.disks = {"/dev/sdb"};
  read.log.compact.enabled = true;
  read.log.polling = false;
  read.log.on_full = OnFull::kStopWrites;
  read.log.lost = {"/dev/sdc"};
  read.rollback.rate_max = ByteSize{1};
  read.server.busy_poll = std::chrono::microseconds(100);
  read.views.overlay_max = ByteSize{2};
  take_changes(running_, read);
  EXPECT_THAT(running_.log.disks, ElementsAre("/dev/sdb"));
  EXPECT_TRUE(running_.log.compact.enabled);
  EXPECT_FALSE(running_.log.polling);
  EXPECT_EQ(running_.log.on_full, OnFull::kStopWrites);
  EXPECT_THAT(running_.log.lost, IsEmpty()) << "at the next start";
  EXPECT_EQ(running_.rollback.rate_max.bytes, 1u);
  EXPECT_EQ(running_.server.busy_poll, read.server.busy_poll);
  ASSERT_TRUE(running_.views.overlay_max);
  EXPECT_EQ(running_.views.overlay_max->bytes, 2u);
  read.log.on_full = OnFull::kThrottle;
  take_changes(running_, read);
  EXPECT_EQ(running_.log.on_full, OnFull::kThrottle);
}

TEST_F(ConfigChanges, WhatANodeOfAClusterTakesAtOnceIsTaken) {
  in_a_cluster();
  const bool views_were_said = running_.views.overlay_max.has_value();
  Config read = running_;
  read.rollback.rate_max = ByteSize{1};
  read.cluster.catch_up_max = ByteSize{2};
  read.views.overlay_max = ByteSize{3};
  read.log.on_full = OnFull::kStopWrites;
  take_changes(running_, read);
  EXPECT_EQ(running_.rollback.rate_max.bytes, 1u);
  EXPECT_EQ(running_.cluster.catch_up_max.bytes, 2u);
  EXPECT_EQ(running_.views.overlay_max.has_value(), views_were_said) << "at the next start";
  EXPECT_EQ(running_.log.on_full, OnFull::kStopWrites);

  const std::vector<std::string> disks = running_.log.disks;
  read.log.disks.clear();
  read.log.compact.enabled = true;
  take_changes(running_, read);
  EXPECT_EQ(running_.log.disks, disks) << "at the next start it has no log";
  EXPECT_FALSE(running_.log.compact.enabled);
}

}  // namespace
}  // namespace mariner
