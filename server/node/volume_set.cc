#include "server/node/volume_set.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <utility>

#include "proto/check.h"
#include "server/node/config.h"
#include "server/node/identity.h"
#include "server/node/names.h"

namespace mariner::node {

using logging::Disk;
using logging::FileDisk;
using volume::Volume;

namespace {

constexpr auto kRetirePoll = std::chrono::milliseconds(5);

const char* what_was_interrupted(meta::Volume::State state) {
  switch (state) {
    case meta::Volume::IMPORTING:
      return "an import was interrupted; the unfinished volume is removed";
    case meta::Volume::CLONING:
      return "cloning a volume was interrupted; the unfinished clone is removed";
    default: return "removing a volume whose deletion was interrupted";
  }
}

}  // namespace

VolumeSet::VolumeSet(VolumeSetParts parts, VolumeSetOptions options)
    : parts_(parts), options_(std::move(options)) {}

VolumeSet::~VolumeSet() { *alive_ = false; }

std::string VolumeSet::image_path(std::uint32_t id) const {
  // By id, not by name: a name can be used again while an old image is still being removed.
  return options_.state_dir + "/images/" + std::to_string(id) + ".raw";
}

ServedVolume& VolumeSet::add(const meta::Volume& meta) {
  ServedVolume& served = volumes_[meta.name()];
  served.meta = meta;
  served.iqn = volume_iqn(options_.iqn_base, meta.name());
  served.identity = identity_of(meta.uuid(), served.iqn, meta.name(), "VOLUME");
  served.identity.target_ports = options_.target_ports;
  served.image_path = image_path(meta.id());
  return served;
}

Result<void> VolumeSet::load() {
  std::error_code error;
  std::filesystem::create_directories(options_.state_dir + "/images", error);
  if (error) return errno_error(error.value(), options_.state_dir + "/images: create");
  Result<std::vector<meta::Volume>> volumes = parts_.store.volumes();
  if (!volumes) return volumes.error();
  // Moments that somebody has opened never change: later writes get later times, whatever the clock
  // says by now.
  Result<std::vector<meta::View>> views = parts_.store.views();
  if (!views) return views.error();
  for (const meta::View& view : *views) {
    VersionTime& until = opened_until_[view.volume_id()];
    until = std::max(until, VersionTime{view.asked_ns()});
  }
  Result<std::vector<meta::Mark>> marks = parts_.store.marks();
  if (!marks) return marks.error();
  for (const meta::Mark& mark : *marks) {
    VersionTime& until = opened_until_[mark.volume_id()];
    until = std::max(until, VersionTime{mark.created_ns()});
  }
  for (const meta::Volume& meta : *volumes) {
    if (meta.parent_id() != 0) {
      overlays_[meta.id()] = meta;
      parts_.recovered.expect(meta.id(), {meta.size_bytes() >> kBlockShift});
      continue;
    }
    if (meta.state() != meta::Volume::READY) {
      parts_.log.warning(what_was_interrupted(meta.state()), {{"volume", meta.name()}});
      ::unlink(image_path(meta.id()).c_str());
      if (Result<void> r = parts_.store.remove_volume(meta.id()); !r) return r;
      continue;
    }
    add(meta);
    parts_.recovered.expect(meta.id(), {meta.size_bytes() >> kBlockShift});
  }
  return {};
}

Result<void> VolumeSet::start_volume(ServedVolume& served, std::unique_ptr<Disk> image) {
  const meta::Volume& meta = served.meta;
  Result<meta::Progress> progress = parts_.store.progress(meta.id());
  if (!progress) return progress.error();
  Result<RecoveredVolumes::Found> recovering = parts_.recovered.take(meta.id());
  if (!recovering) return recovering.error();
  volume::VolumeHistory& history = recovering->history;
  history.frontier = std::max(history.frontier, SequenceNumber{progress->frontier()});
  const Result<volume::Headway::Kept> headway = parts_.store.headway(meta.id());
  if (!headway) return headway.error();
  history.headway = volume::Headway(*headway);
  if (Result<void> r = parts_.recovered.find_unapplied(*recovering); !r) return r;
  Result<std::vector<volume::BaseMap::Page>> base_pages = parts_.store.base_pages(meta.id());
  if (!base_pages) return base_pages.error();

  volume::VolumeOptions options;
  options.id = VolumeId{meta.id()};
  options.index = std::move(recovering->index);
  options.size_bytes = meta.size_bytes();
  options.epoch = epoch_;
  options.floor = std::max(VersionTime{progress->floor_ns()}, opened_until_[meta.id()]);
  options.image = std::move(image);
  options.base_in_image = meta.base_in_image();
  options.base_pages = std::move(*base_pages);
  options.storage = options_.storage;
  options.storage.restore = &restore_;
  Volume::Events events;
  events.durable = [this, id = meta.id()](SequenceNumber sequence) {
    meta::Progress now;
    now.set_frontier(sequence.value);
    if (const ServedVolume* self = find(id); self != nullptr && self->volume != nullptr) {
      now.set_floor_ns(self->volume->replicator().coordinator().floor().ns);
    }
    if (Result<void> r = parts_.store.put_progress(id, now, false); !r) {
      parts_.log.warning("cannot record progress", {{"error", to_string(r.error())}});
    }
  };
  events.apply_failed = [this, name = meta.name()](const Error& error) {
    parts_.log.error("applying to the image failed; it will be tried again",
                     {{"volume", name}, {"error", to_string(error)}});
  };
  events.restored = [this, name = meta.name()](const volume::Storage::RestoreProgress& done) {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(done.took).count();
    parts_.log.info("what the rollback changed is in the image",
                    {{"volume", name},
                     {"bytes", done.total_bytes},
                     {"ms", ms},
                     {"bytes_per_s", done.bytes_per_second}});
  };
  events.headway = [this, id = meta.id()](volume::Headway::Change change, volume::Done kept) {
    parts_.worker.run([store = &parts_.store, id,
                       change = std::move(change)] { return store->put_headway(id, change); },
                      [this, kept = std::move(kept)](Result<void> r) mutable {
                        if (!r) {
                          parts_.log.warning("cannot record how far an image has got",
                                             {{"error", to_string(r.error())}});
                        }
                        kept(std::move(r));
                      });
  };
  served.volume = std::make_shared<Volume>(std::move(options), std::move(history), log_->parts(),
                                           &parts_.worker, parts_.executor, std::move(events));
  remember(served.volume);
  return {};
}

std::shared_ptr<scsi::Device> VolumeSet::make_device(
    std::uint32_t volume, std::vector<scsi::LogicalUnitOptions> units) const {
  scsi::FindCopyUnit elsewhere;
  if (options_.find_copy_unit) elsewhere = std::bind_front(options_.find_copy_unit, volume);
  return std::make_shared<scsi::Device>(std::move(units), std::move(elsewhere),
                                        options_.rod_tokens);
}

// Whole blocks.
Result<std::uint64_t> VolumeSet::checked_size(std::uint64_t bytes) {
  if (bytes < kVolumeSizeMin.bytes || bytes > kVolumeSizeMax.bytes) {
    return Error{ErrorCode::kInvalidArgument, "a volume has between 1 MiB and 1 PiB; " +
                                                  std::to_string(bytes) + " bytes were asked for"};
  }
  return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
}

Result<meta::Volume> VolumeSet::plan(const NewVolume& request) const {
  if (closing_) return Error{ErrorCode::kUnavailable, "the server is stopping"};
  if (Result<void> r = check_volume_name(request.name); !r) return r.error();
  if (volumes_.contains(request.name)) {
    return Error{ErrorCode::kAlreadyExists, "a volume named " + request.name + " exists already"};
  }
  if (volumes_.size() >= kVolumesMax) {
    return Error{ErrorCode::kLimit, "there are " + std::to_string(kVolumesMax) +
                                        " volumes already, which is the limit"};
  }
  if (request.block_size != 512 && request.block_size != 4096) {
    return Error{
        ErrorCode::kInvalidArgument,
        "the block size is 512 or 4096; " + std::to_string(request.block_size) + " was asked for"};
  }
  const Result<std::uint64_t> size_bytes = checked_size(request.size_bytes);
  if (!size_bytes) return size_bytes.error();
  meta::Volume meta;
  meta.set_name(request.name);
  meta.set_size_bytes(*size_bytes);
  meta.set_block_size(request.block_size);
  meta.set_window_s(request.window_s);
  if (!request.retain.none()) meta.set_retain(retention_text(request.retain));
  meta.set_created_ns(parts_.executor.wall_time().ns);
  meta.set_uuid(new_uuid());
  meta.set_sanitize(request.sanitize);
  meta.set_removable(request.removable);
  for (const std::string& initiator : request.acl) meta.add_acl(initiator);
  for (const std::string& account : request.auth) meta.add_auth(account);
  return meta;
}

Result<meta::Volume> VolumeSet::new_meta(const NewVolume& request) {
  Result<meta::Volume> meta = plan(request);
  if (!meta) return meta;
  Result<std::uint32_t> id = parts_.store.next_volume_id();
  if (!id) return id.error();
  meta->set_id(*id);
  return meta;
}

Result<ServedVolume*> VolumeSet::create(const NewVolume& request) {
  Result<meta::Volume> meta = new_meta(request);
  if (!meta) return meta.error();
  const std::string path = image_path(meta->id());
  if (Result<void> r = FileDisk::create(path, FileDisk::Caching::kBuffered, meta->size_bytes());
      !r) {
    return r.error();
  }
  if (Result<void> r = parts_.store.put_volume(*meta); !r) {
    ::unlink(path.c_str());
    return r.error();
  }
  ServedVolume& served = add(*meta);
  if (Result<void> r = start_new(served); !r) {
    forget_unstarted(*meta);
    return r.error();
  }
  return &served;
}

// Takes back what was made of a volume that could not be started.
void VolumeSet::forget_unstarted(const meta::Volume& meta) {
  volumes_.erase(meta.name());
  parts_.recovered.remove_index(meta.id());
  ::unlink(image_path(meta.id()).c_str());
  if (Result<void> r = parts_.store.remove_volume(meta.id()); !r) {
    parts_.log.warning("cannot forget a volume that could not be made",
                       {{"volume", meta.name()}, {"error", to_string(r.error())}});
  }
}

// Waits until nothing uses a closed volume, then drops it.
void VolumeSet::retire(std::shared_ptr<Volume> volume, UniqueFunction<void()> done) {
  const bool last_reference = volume.use_count() == 1;
  if (volume->idle() && last_reference) {
    volume.reset();
    done();
    return;
  }
  ++retiring_;
  parts_.executor.after(kRetirePoll,
                        [this, volume = std::move(volume), done = std::move(done)]() mutable {
                          --retiring_;
                          retire(std::move(volume), std::move(done));
                        });
}

void VolumeSet::remove(const std::string& name, UniqueFunction<void(Result<void>)> done) {
  ServedVolume* served = find(name);
  if (served == nullptr || served->volume == nullptr) {
    return done(Error{ErrorCode::kNotFound, "there is no volume " + name});
  }
  meta::Volume meta = served->meta;
  meta.set_state(meta::Volume::DELETING);
  if (Result<void> r = parts_.store.put_volume(meta); !r) return done(r.error());
  std::shared_ptr<Volume> volume = std::move(served->volume);
  served->meta = meta;
  served->device.reset();
  served->metered.reset();
  served->failure.reset();
  served->image = nullptr;
  served->missing = nullptr;
  volume->close(Error{ErrorCode::kNotFound, "the volume " + name + " was deleted"});
  retire(std::move(volume), [this, id = meta.id(), name, done = std::move(done)]() mutable {
    finish_removal(id, name, std::move(done));
  });
}

void VolumeSet::finish_removal(std::uint32_t id, const std::string& name,
                               UniqueFunction<void(Result<void>)> done) {
  const std::string path = image_path(id);
  // Unlinking a large image takes a while: not on this thread.
  parts_.worker.run(
      [path]() -> Result<void> {
        if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
          return errno_error(errno, path + ": remove");
        }
        return logging::sync_directory_of(path);
      },
      [this, id, name, done = std::move(done)](Result<void> removed) mutable {
        if (removed) removed = parts_.store.remove_volume(id);
        parts_.recovered.remove_index(id);
        if (removed) volumes_.erase(name);
        done(std::move(removed));
      });
}

ServedVolume* VolumeSet::find(const std::string& name) {
  const auto found = volumes_.find(name);
  return found == volumes_.end() ? nullptr : &found->second;
}

ServedVolume* VolumeSet::find(std::uint32_t id) {
  for (auto& [name, served] : volumes_) {
    if (served.meta.id() == id) return &served;
  }
  return nullptr;
}

ServedVolume* VolumeSet::find_target(std::string_view iqn) {
  for (auto& [name, served] : volumes_) {
    if (served.iqn == iqn) return &served;
  }
  return nullptr;
}

std::shared_ptr<Volume> VolumeSet::find_volume(std::uint32_t id) const {
  for (const std::weak_ptr<Volume>& weak : started_) {
    if (std::shared_ptr<Volume> volume = weak.lock();
        volume != nullptr && volume->id().value == id) {
      return volume;
    }
  }
  return nullptr;
}

// Those that are gone are forgotten, so that views that come and go take no memory.
void VolumeSet::remember(const std::shared_ptr<Volume>& volume) {
  std::erase_if(started_, [](const std::weak_ptr<Volume>& weak) { return weak.expired(); });
  started_.push_back(volume);
}

void VolumeSet::close(const Error& error) {
  closing_ = true;
  for (const std::weak_ptr<Volume>& weak : started_) {
    if (const std::shared_ptr<Volume> volume = weak.lock()) volume->close(error);
  }
}

bool VolumeSet::idle() const {
  if (retiring_ > 0 || fillings_ > 0 || resizes_ > 0) return false;
  return std::all_of(started_.begin(), started_.end(), [](const std::weak_ptr<Volume>& weak) {
    const std::shared_ptr<Volume> volume = weak.lock();
    return volume == nullptr || volume->idle();
  });
}

void VolumeSet::save_progress() {
  for (const auto& [name, served] : volumes_) {
    if (served.volume == nullptr || served.volume->storage() == nullptr) continue;
    meta::Progress progress;
    progress.set_frontier(served.volume->storage()->durable().value);
    progress.set_floor_ns(served.volume->replicator().coordinator().floor().ns);
    if (Result<void> r = parts_.store.put_progress(served.meta.id(), progress, true); !r) {
      parts_.log.warning("cannot record progress", {{"error", to_string(r.error())}});
    }
  }
}

}  // namespace mariner::node
