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

void affected_moments(const std::shared_ptr<volume::Volume>& volume, const TrackDamage& damage,
                      UniqueFunction<void(AffectedMoments)> done) {
  AffectedMoments moments{damage.time, {}, false};
  if (damage.extent.empty() || damage.extent.count.value > kLookupsMax) return done(moments);
  struct Replaced {
    SequenceNumber last;  // of its blocks
    bool all = true;
    bool none = true;
  };
  auto replaced = std::make_shared<Replaced>();
  const auto compute = [replaced, damage](const index::VersionLookup& lookup) {
    *replaced = {};
    const SequenceNumber newest = lookup.index().newest().sequence;
    for (Lbn lbn = damage.extent.first; lbn < damage.extent.end(); lbn = lbn + BlockCount{1}) {
      const std::vector<SequenceNumber> later = lookup.versions(lbn, damage.sequence, newest);
      if (later.empty()) {
        replaced->all = false;
      } else {
        replaced->none = false;
        replaced->last = std::max(replaced->last, later.front());
      }
    }
  };
  volume->index().consult(compute, [volume, damage, moments, replaced,
                                    done = std::move(done)](const Result<void>& looked) mutable {
    if (!looked) return done(moments);
    const std::vector<SequenceNumber> targets = volume->index().rollback_targets(damage.sequence);
    const bool rolled_back_to = std::ranges::any_of(targets, [&](SequenceNumber target) {
      return target >= damage.sequence && target < replaced->last;
    });
    moments.in_image =
        replaced->none && targets.empty() && damage.type != logging::RecordType::kBeforeImage &&
        damage.type != logging::RecordType::kRelocated && volume->storage() != nullptr &&
        volume->storage()->durable() >= damage.sequence;
    if (!replaced->all || rolled_back_to) return done(moments);
    volume->index().moment_of(replaced->last, [volume, moments, done = std::move(done)](
                                                  const Result<index::IndexMoment>& at) mutable {
      if (at) moments.before = at->time;
      done(moments);
    });
  });
}

std::string ScrubReport::name_of(VolumeId volume) {
  const ServedVolume* served = volumes_.find(volume.value);
  return served != nullptr ? served->meta.name() : fmt::format("(id {})", volume.value);
}

void ScrubReport::moments_of(const TrackDamage& damage,
                             UniqueFunction<void(AffectedMoments)> done) {
  if (damage.kind != Kind::kPayload) return done({damage.after, damage.before, false});
  const std::shared_ptr<volume::Volume> volume = volumes_.find_volume(damage.volume.value);
  if (volume == nullptr) return done({damage.time, {}, false});
  affected_moments(volume, damage, std::move(done));
}

void ScrubReport::damaged(const std::string& disk, const TrackDamage& damage) {
  moments_of(damage, [this, disk, damage](const AffectedMoments& moments) {
    report(disk, damage, moments);
  });
}

void ScrubReport::report(const std::string& disk, const TrackDamage& damage,
                         const AffectedMoments& moments) {
  constexpr const char* kMessage = "the log is damaged";
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

std::string ScrubReport::sentence(const TrackDamage& damage, const AffectedMoments& moments) {
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

// What is damaged, in words, and what that is said of.
struct ScrubReport::Sentences {
  Scrubbed scrubbed;
  std::string text;
  std::size_t next = 0;
  UniqueFunction<void(std::string)> done;
};

void ScrubReport::next_sentence(const std::shared_ptr<Sentences>& sentences) {
  const std::vector<TrackDamage>& all = sentences->scrubbed.damage;
  if (sentences->next == std::min(all.size(), kNamedMax)) {
    if (all.size() > kNamedMax) {
      sentences->text +=
          fmt::format("; and {} more, named in the daemon's log", all.size() - kNamedMax);
    }
    return sentences->done(std::move(sentences->text));
  }
  const TrackDamage& damage = all[sentences->next++];
  moments_of(damage, [this, sentences, damage](const AffectedMoments& moments) {
    sentences->text += fmt::format("; {}", sentence(damage, moments));
    next_sentence(sentences);
  });
}

void ScrubReport::finding(Scrubbed scrubbed, UniqueFunction<void(api::Finding)> done) {
  const logging::TrackScrubber::Progress progress = scrubbed.progress;
  const std::string disk = scrubbed.disk;
  api::Finding out;
  out.set_check("log scrub");
  const std::string last = progress.rounds == 0 ? "no full pass yet"
                                                : fmt::format("last full pass of {} at {}", disk,
                                                              format_utc(progress.last_round));
  if (scrubbed.damage.empty()) {
    out.set_level("ok");
    out.set_found(scrubbed.enabled ? fmt::format("{}; {} verified since start", last,
                                                 format_size(progress.bytes))
                                   : "off ([log] scrub_rate = \"0\")");
    return done(std::move(out));
  }
  auto sentences = std::make_shared<Sentences>();
  const std::size_t ranges = scrubbed.damage.size();
  sentences->scrubbed = std::move(scrubbed);
  sentences->done = [out, progress, disk, last, ranges,
                     done = std::move(done)](const std::string& what) mutable {
    out.set_level("error");
    out.set_found(fmt::format("{} damaged blocks of {} in {} ranges{}; {}", progress.damaged_blocks,
                              disk, ranges, what, last));
    out.set_advice(kAdvice);
    done(std::move(out));
  };
  next_sentence(sentences);
}

}  // namespace mariner::node
