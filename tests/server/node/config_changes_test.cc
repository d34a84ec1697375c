#include "server/node/config_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace mariner::node {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ConfigChanges, WhatIsTheSameIsNone) {
  EXPECT_THAT(changes_for_next_start(Config{}, Config{}), IsEmpty());
}

TEST(ConfigChanges, WhatAReloadTakesIsNone) {
  Config read;
  read.log.disks = {"/dev/sdb"};
  read.log.compact.enabled = true;
  read.log.on_full = OnFull::kStopWrites;
  read.rollback.rate_max = ByteSize{1};
  read.server.busy_poll = std::chrono::microseconds(100);
  read.server.discovery_auth = {"alice"};
  read.views.overlay_max = ByteSize{1};
  read.volumes.emplace_back().name = "db1";
  EXPECT_THAT(changes_for_next_start(Config{}, read), IsEmpty());
}

TEST(ConfigChanges, WhatIsTakenAtOnceIsTaken) {
  Config running;
  Config read;
  read.log.disks = {"/dev/sdb"};
  read.log.compact.enabled = true;
  read.log.on_full = OnFull::kStopWrites;
  read.log.lost = {"/dev/sdc"};
  read.rollback.rate_max = ByteSize{1};
  read.server.busy_poll = std::chrono::microseconds(100);
  read.views.overlay_max = ByteSize{2};
  take_changes(running, read);
  EXPECT_EQ(running.log.disks, read.log.disks);
  EXPECT_TRUE(running.log.compact.enabled);
  EXPECT_EQ(running.log.on_full, OnFull::kStopWrites);
  EXPECT_THAT(running.log.lost, IsEmpty()) << "at the next start";
  EXPECT_EQ(running.rollback.rate_max.bytes, 1u);
  EXPECT_EQ(running.server.busy_poll, read.server.busy_poll);
  ASSERT_TRUE(running.views.overlay_max);
  EXPECT_EQ(running.views.overlay_max->bytes, 2u);
  read.log.on_full = OnFull::kThrottle;
  take_changes(running, read);
  EXPECT_EQ(running.log.on_full, OnFull::kStopWrites) << "at the next start";
}

TEST(ConfigChanges, EachOtherKeyIsNamed) {
  const std::pair<const char*, std::function<void(Config&)>> changes[] = {
      {"[server] http", [](Config& c) { c.server.http.emplace(); }},
      {"[server] admin", [](Config& c) { c.server.admin_socket = "/other"; }},
      {"[server] initiator_memory", [](Config& c) { c.server.initiator_memory = ByteSize{1}; }},
      {"[log] lost", [](Config& c) { c.log.lost = {"/dev/sdb"}; }},
      {"[log] max_size", [](Config& c) { c.log.max_size = ByteSize{1}; }},
      {"[log] on_full", [](Config& c) { c.log.on_full = OnFull::kThrottle; }},
      {"[log] polling", [](Config& c) { c.log.polling = false; }},
      {"[log] scrub_rate", [](Config& c) { c.log.scrub_rate = ByteSize{0}; }},
      {"[storage] lag_max", [](Config& c) { c.storage.lag_max = ByteSize{1}; }},
      {"[storage] apply_delay", [](Config& c) { c.storage.apply_delay = std::chrono::hours(1); }},
      {"[index] replay_max", [](Config& c) { c.index.replay_max = 1; }},
  };
  for (const auto& [key, change] : changes) {
    Config read;
    change(read);
    EXPECT_THAT(changes_for_next_start(Config{}, read), ElementsAre(key));
  }
  Config running;
  running.volumes.emplace_back().name = "db1";
  Config read = running;
  read.volumes[0].removable = true;
  EXPECT_THAT(changes_for_next_start(running, read), ElementsAre("[[volume]] db1 removable"));
}

}  // namespace
}  // namespace mariner::node
