#include "server/node/volume_sanitizer.h"

#include <utility>
#include <vector>

namespace mariner::node {

bool VolumeSanitizer::permitted() const {
  const ServedVolume* volume = served();
  return volume != nullptr && volume->meta.sanitize();
}

scsi::Sanitizer::Refusal VolumeSanitizer::refusal() const {
  const ServedVolume* volume = served();
  if (volume == nullptr || volume->volume == nullptr) return Refusal::kInUse;  // it is going
  const auto refuse = [&](const char* why, Refusal refusal) {
    parts_.log.warning("SANITIZE is refused", {{"volume", volume->meta.name()}, {"why", why}});
    return refusal;
  };
  if (parts_.log_space->locked(VolumeId{volume_})) {
    return refuse("a mark is locked", Refusal::kLockedMark);
  }
  if (parts_.views->count_of(volume_) > 0) {
    return refuse("views show its past; unexpose them first", Refusal::kInUse);
  }
  if (volume->volume->rolling_back()) {
    return refuse("a rollback is under way", Refusal::kInUse);
  }
  return Refusal::kNone;
}

scsi::Sanitizer::Left VolumeSanitizer::left() const {
  const ServedVolume* volume = served();
  if (volume == nullptr) return Left::kNothing;
  switch (volume->meta.sanitize_left()) {
    case meta::Volume::SANITIZE_RESTRICTED: return Left::kRestricted;
    case meta::Volume::SANITIZE_UNRESTRICTED: return Left::kUnrestricted;
    default: return Left::kNothing;
  }
}

Result<void> VolumeSanitizer::set_left(Left left) {
  ServedVolume* volume = served();
  if (volume == nullptr) return Error{ErrorCode::kNotFound, "the volume was deleted"};
  meta::Volume meta = volume->meta;
  meta.set_sanitize_left(left == Left::kNothing      ? meta::Volume::SANITIZE_NOTHING
                         : left == Left::kRestricted ? meta::Volume::SANITIZE_RESTRICTED
                                                     : meta::Volume::SANITIZE_UNRESTRICTED);
  if (Result<void> r = parts_.store.put_volume(meta); !r) return r;
  volume->meta = std::move(meta);
  if (volume->volume != nullptr) last_rollback_ = volume->volume->index().last_rollback();
  return {};
}

// Each of them names a moment that goes.
Result<void> VolumeSanitizer::drop_marks() {
  const Result<std::vector<meta::Mark>> marks = parts_.store.marks();
  if (!marks) return marks.error();
  for (const meta::Mark& mark : *marks) {
    if (mark.volume_id() != volume_) continue;
    parts_.log.info("a mark goes with the past that SANITIZE erases", {{"mark", mark.name()}});
    if (Result<void> r = parts_.store.remove_mark(volume_, mark.name()); !r) return r;
  }
  return {};
}

void VolumeSanitizer::forget_past(volume::Done done) {
  const ServedVolume* of = served();
  if (of == nullptr || of->volume == nullptr) {
    return done(Error{ErrorCode::kNotFound, "the volume was deleted"});
  }
  if (parts_.log_space->locked(VolumeId{volume_})) {
    return done(Error{ErrorCode::kBusy, "a mark was locked meanwhile"});
  }
  if (Result<void> dropped = drop_marks(); !dropped) return done(std::move(dropped));
  parts_.log.warning("SANITIZE: the history of a volume is given up",
                     {{"volume", of->meta.name()}});
  // What is to be forgotten must not be what the image still waits for.
  std::shared_ptr<volume::Volume> volume = of->volume;
  volume::Storage& storage = *volume->storage();
  storage.drain([log_space = parts_.log_space.get(), last_rollback = last_rollback_,
                 volume = std::move(volume), done = std::move(done)](Result<void> drained) mutable {
    if (!drained) return done(std::move(drained));
    const VolumeId id = volume->id();
    log_space->forget_past(
        id, last_rollback,
        [volume = std::move(volume), done = std::move(done)](Result<void> forgotten) mutable {
          if (!forgotten) return done(std::move(forgotten));
          // What the image kept for the past's sake only.
          const BlockRange everything = ByteRange{0, volume->size_bytes()}.covering_blocks();
          volume::Storage& image = *volume->storage();
          image.punch({everything},
                      [volume = std::move(volume), done = std::move(done)](
                          Result<void> punched) mutable { done(std::move(punched)); });
        });
  });
}

}  // namespace mariner::node
