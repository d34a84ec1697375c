// What a cluster volume's target has to say goes to the server's log. Owner's thread only.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "server/cluster/target_part.h"
#include "server/node/log.h"

namespace mariner::node {

// `log` outlives the events.
inline void log_events(cluster::TargetPart::Events& events, Log& log, const std::string& volume) {
  const auto waits_told = std::make_shared<std::string>();  // is told again and again
  events.elected = [&log, volume, waits_told](const manager::VolumeRecord& record) {
    log.info("coordinates a volume", {{"volume", volume}, {"epoch", record.epoch.value}});
    waits_told->clear();
    if (record.away) {
      log.warning(
          "a volume's logger is away: the storage nodes keep what is written until it is back",
          {{"volume", volume}, {"since", record.away->since.value}});
    }
  };
  events.writes_wait = [&log, volume, waits_told](const Error& why) {
    const std::string text = to_string(why);
    if (std::exchange(*waits_told, text) == text) return;
    log.warning("a volume's writes wait", {{"volume", volume}, {"because", text}});
  };
  events.given_up = [&log, volume](const replication::CoordinatorRole::GivenUp& which) {
    log.warning(
        which.for_room
            ? "the log needs room: what the image of a storage node that is away, or whose image "
              "has failed, lacks is no longer kept for it; it is built anew if the log gives that "
              "up before it is back"
            : "a storage node has been away, or its image has not worked, for absent_max: what the "
              "image lacks is no longer kept for it; it is built anew if the log gives that up "
              "before it is back",
        {{"volume", volume}, {"node_id", which.node.value}});
  };
  events.image_failed = [&log, volume](const replication::CoordinatorRole::ImageFailed& which) {
    log.error(
        which.let_go
            ? "an image of a volume has failed, and is done without: the volume is degraded; the "
              "image is tried again by itself, and built anew if it must be"
            : "an image of a volume has failed, and is needed all the same: the log gives up "
              "nothing that it lacks, and writes wait when the log is full",
        {{"volume", volume}, {"node_id", which.node.value}, {"error", to_string(which.why)}});
  };
  events.failed = [&log, volume](const Error& error) {
    log.error("a volume cannot be coordinated", {{"volume", volume}, {"error", to_string(error)}});
  };
}

}  // namespace mariner::node
