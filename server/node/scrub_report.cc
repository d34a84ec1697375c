#include "server/node/scrub_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "server/client/time_text.h"

namespace mariner::node {
namespace {

using logging::TrackDamage;
using Kind = TrackDamage::Kind;

constexpr std::uint64_t kRateMin = 1u << 20;
constexpr std::uint64_t kRateMax = 32u << 20;
constexpr std::uint64_t kSecondsPerDay = 24 * 3600;
// Blocks of one damage whose next versions are looked up, and ranges that the doctor names.
constexpr std::uint64_t kLookupsMax = 1024;
constexpr std::size_t kNamedMax = 5;

constexpr const char* kAdvice =
    "views and rollbacks that need these blocks get medium errors, never wrong bytes; moments "
    "before and behind are whole. Look at the kernel's log and the disk's own health report; copy "
    "away what you still need of the history, and replace the disk if it goes on. The finding goes "
    "when the log has given up what is damaged";

std::string time_text(VersionTime time, const char* otherwise) {
  return time.ns == 0 ? otherwise : format_utc(time);
}

const char* what_is_wrong(const TrackDamage& damage) {
  if (damage.unreadable) return "the disk cannot read it";
  switch (damage.kind) {
    case Kind::kTrackHeader: return "a track's header is not what was written";
    case Kind::kBatches: return "batches are damaged or missing";
    case Kind::kPayload: return "data fails its checksum";
    case Kind::kMore: return "more than can be listed is damaged";
  }
  return "";
}

}  // namespace

std::uint64_t scrub_rate(std::optional<ByteSize> configured, std::uint64_t log_bytes) {
  if (configured) return configured->bytes;
  return std::clamp(log_bytes / kSecondsPerDay, kRateMin, kRateMax);
}

AffectedMoments affected_moments(const volume::Volume& volume, const TrackDamage& damage) {
  const index::VersionIndex& index = volume.index();
  const SequenceNumber newest = index.newest().sequence;
  AffectedMoments moments{damage.time, {}, false};
  if (damage.extent.empty() || damage.extent.count.value > kLookupsMax) return moments;
  SequenceNumber replaced;  // the last of its blocks
  bool all = true;
  bool none = true;
  for (Lbn lbn = damage.extent.first; lbn < damage.extent.end(); lbn = lbn + BlockCount{1}) {
    const std::vector<SequenceNumber> later = index.versions(lbn, damage.sequence, newest);
    if (later.empty()) {
      all = false;
    } else {
      none = false;
      replaced = std::max(replaced, later.front());
    }
  }
  const std::vector<SequenceNumber> targets = index.rollback_targets(damage.sequence);
  const bool rolled_back_to = std::any_of(
      targets.begin(), targets.end(),
      [&](SequenceNumber target) { return target >= damage.sequence && target < replaced; });
  if (all && !rolled_back_to) moments.before = index.moment_of(replaced).time;
  moments.in_image = none && targets.empty() && damage.type != logging::RecordType::kBeforeImage &&
                     volume.storage() != nullptr && volume.storage()->durable() >= damage.sequence;
  return moments;
}

std::string ScrubReport::name_of(VolumeId volume) {
  const ServedVolume* served = volumes_.find(volume.value);
  return served != nullptr ? served->meta.name() : fmt::format("(id {})", volume.value);
}

AffectedMoments ScrubReport::moments_of(const TrackDamage& damage) {
  if (damage.kind != Kind::kPayload) return {damage.after, damage.before, false};
  const std::shared_ptr<volume::Volume> volume = volumes_.find_volume(damage.volume.value);
  return volume != nullptr ? affected_moments(*volume, damage) : AffectedMoments{damage.time, {}};
}

void ScrubReport::damaged(const std::string& disk, const TrackDamage& damage) {
  constexpr const char* kMessage = "the log is damaged";
  const AffectedMoments moments = moments_of(damage);
  if (damage.kind == Kind::kPayload) {
    log_.error(kMessage, {{"what", what_is_wrong(damage)},
                          {"volume", name_of(damage.volume)},
                          {"sequence", damage.sequence.value},
                          {"record", logging::record_type_name(damage.type)},
                          {"first_lbn", damage.extent.first.value},
                          {"blocks", damage.extent.count.value},
                          {"moments_from", time_text(moments.from, "the beginning")},
                          {"moments_before", time_text(moments.before, "now")},
                          {"image_has_it", moments.in_image},
                          {"disk", disk},
                          {"track", damage.track},
                          {"block", damage.first_block},
                          {"block_count", damage.block_count}});
    return;
  }
  log_.error(kMessage, {{"what", what_is_wrong(damage)},
                        {"first_batch", damage.first_batch},
                        {"last_batch", damage.last_batch},
                        {"moments_from", time_text(moments.from, "not known")},
                        {"moments_before", time_text(moments.before, "not known")},
                        {"disk", disk},
                        {"track", damage.track},
                        {"block", damage.first_block},
                        {"block_count", damage.block_count}});
}

std::string ScrubReport::sentence(const TrackDamage& damage) {
  const AffectedMoments moments = moments_of(damage);
  switch (damage.kind) {
    case Kind::kPayload:
      return fmt::format(
          "{}: LBN {} to {} of write {}, moments from {} to {}{}", name_of(damage.volume),
          damage.extent.first.value, damage.extent.end().value - (damage.extent.empty() ? 0 : 1),
          damage.sequence.value, time_text(moments.from, "the beginning"),
          time_text(moments.before, "now"), moments.in_image ? " (the image holds it too)" : "");
    case Kind::kBatches:
      return fmt::format("batches {} to {} of track {}, written after {} and before {}",
                         damage.first_batch, damage.last_batch, damage.track,
                         time_text(moments.from, "an unknown time"),
                         time_text(moments.before, "the next track's"));
    case Kind::kTrackHeader: return fmt::format("the header of track {}", damage.track);
    case Kind::kMore: return fmt::format("more of track {}", damage.track);
  }
  return "";
}

api::Finding ScrubReport::finding(const std::string& disk, const logging::TrackScrubber& scrubber) {
  const logging::TrackScrubber::Progress progress = scrubber.progress();
  api::Finding out;
  out.set_check("log scrub");
  const std::string last = progress.rounds == 0 ? "no full pass yet"
                                                : fmt::format("last full pass of {} at {}", disk,
                                                              format_utc(progress.last_round));
  const std::vector<TrackDamage> damage = scrubber.damage();
  if (damage.empty()) {
    out.set_level("ok");
    out.set_found(scrubber.enabled() ? fmt::format("{}; {} verified since start", last,
                                                   format_size(progress.bytes))
                                     : "off ([log] scrub_rate = \"0\")");
    return out;
  }
  std::string what;
  for (std::size_t i = 0; i < std::min(damage.size(), kNamedMax); ++i) {
    what += fmt::format("; {}", sentence(damage[i]));
  }
  if (damage.size() > kNamedMax) {
    what += fmt::format("; and {} more, named in the daemon's log", damage.size() - kNamedMax);
  }
  out.set_level("error");
  out.set_found(fmt::format("{} damaged blocks of {} in {} ranges{}; {}", progress.damaged_blocks,
                            disk, damage.size(), what, last));
  out.set_advice(kAdvice);
  return out;
}

}  // namespace mariner::node
