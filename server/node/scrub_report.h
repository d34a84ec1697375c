// What the scrubber of a log disk found, for people: as lines of the daemon's log, and as the
// doctor's finding. It knows which volume and which moments damage is about.
//
// Owner's thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "logging/track_scrubber.h"
#include "proto/admin.pb.h"
#include "server/client/quantity.h"
#include "server/node/log.h"
#include "server/node/volume_set.h"

namespace mariner::node {

// Bytes per second for a log of `log_bytes`: what is configured; otherwise such that a round takes
// a day, but not below 1 MiB/s (8 GiB take 2 h 17 min) nor above 32 MiB/s.
[[nodiscard]] std::uint64_t scrub_rate(std::optional<ByteSize> configured, std::uint64_t log_bytes);

// The moments at which a view would need what is damaged.
struct AffectedMoments {
  VersionTime from;    // 0: not known, or from the beginning
  VersionTime before;  // 0: still; a later rollback to one of them counts as still
  // It is what the volume holds now, and the image has it on stable storage.
  bool in_image = false;
};
// Of damage to a payload. What the index cannot tell is not known.
void affected_moments(const std::shared_ptr<volume::Volume>& volume,
                      const logging::TrackDamage& damage,
                      UniqueFunction<void(AffectedMoments)> done);

class ScrubReport {
 public:
  // Both outlive it.
  ScrubReport(VolumeSet& volumes, Log& log) : volumes_(volumes), log_(log) {}

  // One line for each.
  void damaged(const std::string& disk, const logging::TrackDamage& damage);
  // How a log disk is: ok, or an error with what is damaged and what to do.
  struct Scrubbed {
    std::string disk;
    bool enabled = true;
    logging::TrackScrubber::Progress progress;
    std::vector<logging::TrackDamage> damage;
  };
  void finding(Scrubbed scrubbed, UniqueFunction<void(api::Finding)> done);

 private:
  struct Sentences;

  [[nodiscard]] std::string name_of(VolumeId volume);
  void moments_of(const logging::TrackDamage& damage, UniqueFunction<void(AffectedMoments)> done);
  void report(const std::string& disk, const logging::TrackDamage& damage,
              const AffectedMoments& moments);
  [[nodiscard]] std::string sentence(const logging::TrackDamage& damage,
                                     const AffectedMoments& moments);
  void next_sentence(const std::shared_ptr<Sentences>& sentences);

  VolumeSet& volumes_;
  Log& log_;
};

}  // namespace mariner::node
