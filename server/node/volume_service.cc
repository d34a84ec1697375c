// What it takes to serve a volume, and volumes that lack some of it. A part of volume_set.h.
//
// Without its image a volume is started all the same, on a disk that fails every request: so the
// log, the index and the windows know it, and nothing that is kept for it is given up. It has no
// device, so no host sees errors that would damage what is on it; hosts try to log in again until
// it serves.
#include <utility>

#include "server/node/reservation_store.h"
#include "server/node/volume_set.h"

namespace mariner::node {

using logging::FileDisk;
using logging::LateDisk;

namespace {

// A fault layer with the layer that it stands in front of.
struct FaultyLayer {
  FaultyLayer(std::shared_ptr<volume::Layer> below_layer, Executor& executor,
              const volume::FaultOptions& options)
      : below(std::move(below_layer)), layer(*below, executor, options) {}
  std::shared_ptr<volume::Layer> below;
  volume::FaultLayer layer;
};

}  // namespace

Error not_served(const ServedVolume& volume) {
  std::string message = "the volume " + volume.meta.name() + " is not served";
  if (volume.failure) message += ": " + volume.failure->message;
  return Error{ErrorCode::kUnavailable, std::move(message)};
}

Result<std::unique_ptr<FileDisk>> VolumeSet::open_image(const ServedVolume& served,
                                                        std::chrono::milliseconds lock_wait) const {
  Result<std::unique_ptr<FileDisk>> image =
      FileDisk::open(served.image_path, FileDisk::Caching::kBuffered, &parts_.ring, lock_wait);
  if (!image) return image;
  const meta::Volume& meta = served.meta;
  if ((*image)->size_bytes() >= meta.size_bytes()) return image;
  return Error{ErrorCode::kCorrupt, served.image_path + ": has " +
                                        std::to_string((*image)->size_bytes()) +
                                        " bytes, the volume " + meta.name() + " has " +
                                        std::to_string(meta.size_bytes())};
}

// Its target: from now on initiators reach it.
Result<void> VolumeSet::serve(ServedVolume& served) {
  const meta::Volume& meta = served.meta;
  std::vector<scsi::LogicalUnitOptions> units(1);
  units[0].disk.identity = served.identity;
  units[0].disk.block_bytes = meta.block_size();
  units[0].disk.removable = meta.removable();
  units[0].disk.clock = [executor = &parts_.executor] { return executor->monotonic_time(); };
  units[0].layer = served.volume->live_layer();
  if (options_.make_sanitizer) units[0].disk.sanitizer = options_.make_sanitizer(meta.id());
  auto reservations = reservation_options(parts_.store, MetaStore::unit_of_volume(meta.id()));
  if (!reservations) return reservations.error();
  units[0].reservations = *std::move(reservations);
  if (const auto faults = options_.faults.find(meta.name()); faults != options_.faults.end()) {
    parts_.log.warning("faults are injected into a volume, as configured",
                       {{"volume", meta.name()}});
    auto faulty = std::make_shared<FaultyLayer>(units[0].layer, parts_.executor, faults->second);
    units[0].layer = {faulty, &faulty->layer};
  }
  served.device = make_device(meta.id(), std::move(units));
  served.metered = std::make_shared<MeteredDevice>(served.device, parts_.executor);
  served.failure.reset();
  return {};
}

// One that has just been made serves, or is none.
Result<void> VolumeSet::start_new(ServedVolume& served) {
  Result<std::unique_ptr<FileDisk>> image = open_image(served, options_.lock_wait);
  if (!image) return image.error();
  served.image = image->get();
  if (Result<void> r = start_volume(served, *std::move(image)); !r) return r;
  return serve(served);
}

Result<void> VolumeSet::start_known(ServedVolume& served) {
  std::unique_ptr<logging::Disk> disk;
  if (Result<std::unique_ptr<FileDisk>> image = open_image(served, options_.lock_wait); image) {
    served.image = image->get();
    disk = *std::move(image);
  } else {
    served.failure = image.error();
    auto late =
        std::make_unique<LateDisk>(served.meta.size_bytes(), image.error(), parts_.executor);
    served.missing = late.get();
    disk = std::move(late);
  }
  if (Result<void> r = start_volume(served, std::move(disk)); !r) return r;
  if (served.failure) return {};
  if (Result<void> r = serve(served); !r) served.failure = r.error();
  return {};
}

Result<void> VolumeSet::start(LogStack& log, Epoch epoch) {
  log_ = &log;
  epoch_ = epoch;
  const ServedVolume* failed = nullptr;
  std::size_t failures = 0;
  for (auto& [name, served] : volumes_) {
    if (Result<void> r = start_known(served); !r) {
      return Error{r.error().code, "the volume " + name + ": " + r.error().message};
    }
    if (!served.failure) continue;
    failed = &served;
    ++failures;
    parts_.log.error("a volume is not served; what is missing is looked for every few seconds",
                     {{"volume", name}, {"error", to_string(*served.failure)}});
  }
  if (failures == 0) return {};
  // Where nothing can be served, most likely a file system is not mounted yet: who starts this
  // tries again.
  if (failures == volumes_.size()) {
    return Error{failed->failure->code,
                 "no volume can be served; " + failed->meta.name() + ": " +
                     failed->failure->message +
                     "; see \"The disk of the images fails\" in docs/operations.md"};
  }
  look_for_missing();
  return {};
}

Result<void> VolumeSet::serve_again(ServedVolume& served) {
  if (served.missing != nullptr) {
    Result<std::unique_ptr<FileDisk>> image = open_image(served, {});
    if (!image) return image.error();
    served.image = image->get();
    std::exchange(served.missing, nullptr)->arrive(*std::move(image));
  }
  return serve(served);
}

void VolumeSet::look_for_missing() {
  parts_.executor.after(options_.look_again, [this, alive = alive_] {
    if (!*alive || closing_) return;
    bool any = false;
    for (auto& [name, served] : volumes_) {
      if (served.volume == nullptr || !served.failure) continue;
      if (Result<void> r = serve_again(served); !r) {
        served.failure = r.error();
        any = true;
        continue;
      }
      parts_.log.info("a volume is served again", {{"volume", name}});
      if (options_.serves_again) options_.serves_again(served);
    }
    if (any) look_for_missing();
  });
}

}  // namespace mariner::node
