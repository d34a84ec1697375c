#include "server/node/cluster_volumes.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "proto/check.h"
#include "server/node/cluster_definition.h"
#include "server/node/identity.h"
#include "server/node/names.h"
#include "server/node/target_log.h"

namespace mariner::node {

using logging::FileDisk;
using replication::NodeId;

namespace {

meta::Progress progress_of(const cluster::StoragePart& part, SequenceNumber durable) {
  meta::Progress progress;
  progress.set_frontier(durable.value);
  progress.set_base_known(part.base_known());
  return progress;
}

}  // namespace

ClusterVolumes::ClusterVolumes(const Parts& parts, Options options)
    : parts_(parts), options_(std::move(options)) {}

ClusterVolumes::~ClusterVolumes() { CHECK_MSG(idle(), "volumes of a cluster are dropped in use"); }

bool ClusterVolumes::logs(const meta::Volume& meta) const {
  return options_.logs && meta.cluster().logger() == options_.self.value;
}

bool ClusterVolumes::stores(const meta::Volume& meta) const {
  const auto& nodes = meta.cluster().storages();
  return options_.stores && std::ranges::find(nodes, options_.self.value) != nodes.end();
}

bool ClusterVolumes::serves(const meta::Volume& meta) const {
  const std::vector<std::uint32_t> nodes = manager::targets_of(meta);
  return options_.serves && std::ranges::find(nodes, options_.self.value) != nodes.end();
}

// Without what tells the files apart.
std::string ClusterVolumes::image_path(const meta::Volume& meta) const {
  return options_.state_dir + "/images/" + std::to_string(meta.id());
}

bool ClusterVolumes::journals(const meta::Volume& meta) const {
  return options_.journals && stores(meta) && !logs(meta);
}

Result<void> ClusterVolumes::load() {
  std::error_code error;
  std::filesystem::create_directories(options_.state_dir + "/images", error);
  if (error) return errno_error(error.value(), options_.state_dir + "/images: create");
  Result<std::vector<meta::Volume>> volumes = parts_.store.volumes();
  if (!volumes) return volumes.error();
  for (meta::Volume& meta : *volumes) {
    if (!meta.has_cluster()) {
      return Error{ErrorCode::kInvalidArgument,
                   "the state directory " + options_.state_dir + " has the volume " + meta.name() +
                       " of a standalone server; a node of a cluster needs a directory of its own "
                       "([server] state_dir)"};
    }
    if (Result<void> r = check(meta); !r) {
      return Error{r.error().code,
                   "the state directory " + options_.state_dir + ": " + r.error().message};
    }
    if (logs(meta) || journals(meta)) {
      parts_.recovered.expect(meta.id(), {meta.size_bytes() >> kBlockShift},
                              RecoveredVolumes::Order::kByNumber);
    }
    known_[meta.id()] = std::move(meta);
  }
  return {};
}

Result<void> ClusterVolumes::start(LogStack* log) {
  log_ = log;
  started_ = true;
  for (const auto& [id, meta] : known_) {
    if (Result<void> r = begin(meta); !r) return r;
  }
  return {};
}

Result<void> ClusterVolumes::begin(const meta::Volume& meta) {
  const Result<meta::Promise> promise = parts_.store.promise(meta.id());
  if (!promise) return promise.error();
  const Epoch promised{promise->epoch()};
  ClusterVolume& volume = volumes_[meta.id()];
  volume.meta = meta;
  volume.iqn = volume_iqn(options_.iqn_base, meta.name());
  volume.identity = identity_of(meta.uuid(), volume.iqn, meta.name(), "VOLUME");
  Result<void> begun;
  const VersionTime floor{promise->floor_ns()};
  if (logs(meta)) begun = begin_logger(volume, promised, floor);
  if (begun && journals(meta)) begun = begin_journal(volume, promised, floor);
  if (begun && (stores(meta) || serves(meta))) {
    volume.history =
        volume.logger != nullptr
            ? static_cast<volume::History*>(&volume.logger->logged().history())
            : &parts_.caller.history(VolumeId{meta.id()}, NodeId{meta.cluster().logger()});
  }
  if (begun && stores(meta)) begun = begin_storage(volume, promised, *volume.history);
  if (begun && serves(meta)) begin_target(volume, *volume.history);
  if (!begun) {
    volumes_.erase(meta.id());
    return begun;
  }
  cluster::ParticipantService::Parts parts;
  if (volume.logger != nullptr) {
    parts.logger = &volume.logger->host();
    parts.history = &volume.logger->logged().history();
  } else if (volume.journal != nullptr) {
    parts.logger = &volume.journal->host();  // (Its history answers this node alone.)
  }
  if (volume.storage != nullptr) {
    parts.storage = &volume.storage->host();
    parts.image = &volume.storage->image();
    parts.current = &volume.storage->current();
  }
  parts_.participants.add(VolumeId{meta.id()}, parts);
  return {};
}

Result<void> ClusterVolumes::begin_logger(ClusterVolume& volume, Epoch promised,
                                          VersionTime floor) {
  auto made = make_log(VolumeId{volume.meta.id()}, promised, floor, false);
  if (!made) return made.error();
  volume.logger = *std::move(made);
  return {};
}

Result<void> ClusterVolumes::begin_journal(ClusterVolume& volume, Epoch promised,
                                           VersionTime floor) {
  auto made = make_log(VolumeId{volume.meta.id()}, promised, floor, true);
  if (!made) return made.error();
  volume.journal = *std::move(made);
  volume.journal_source =
      std::make_unique<cluster::JournalSource>(*volume.journal, log_->parts().reader);
  volume.spill = std::make_unique<volume::Spill>(image_path(volume.meta) + ".spill",
                                                 VolumeId{volume.meta.id()}, parts_.worker);
  volume.journal_reclaimable =
      std::make_unique<cluster::JournalReclaimable>(*volume.journal, [&volume] {
        return volume.storage == nullptr ? SequenceNumber{} : volume.storage->storage().durable();
      });
  return {};
}

Result<std::unique_ptr<cluster::LoggerPart>> ClusterVolumes::make_log(VolumeId id, Epoch promised,
                                                                      VersionTime floor,
                                                                      bool journal) {
  Result<RecoveredVolumes::Found> found = parts_.recovered.take(id.value);
  if (!found) return found.error();
  volume::LoggedVolume::Options options;
  options.id = id;
  options.epoch = promised;
  options.payload_bytes = found->history.payload_bytes;
  const replication::LoggerRole::Start start = cluster::begin_logging(
      id, found->history, found->index->newest(), found->index->end(), promised, floor);
  options.index = std::move(found->index);
  // What a journal does not have, the image has.
  options.based_everywhere = journal || found->based_everywhere;
  cluster::LoggerPart::KeepBeginning keep;
  if (!journal) {
    keep = keep_beginning();
    Result<std::vector<volume::BaseMap::Page>> base_pages = parts_.store.base_pages(id.value);
    if (!base_pages) return base_pages.error();
    options.base_pages = *std::move(base_pages);
    options.images = volume::Images::kElsewhere;
    options.unapplied = std::move(found->history.unapplied_bytes);
  }
  return std::make_unique<cluster::LoggerPart>(
      std::move(options), start,
      cluster::LoggerPart::Parts{log_->parts(), parts_.executor, parts_.promises}, std::move(keep));
}

cluster::LoggerPart::KeepBeginning ClusterVolumes::keep_beginning() {
  return [this](volume::VolumeRelease release, volume::Done kept) {
    parts_.log.error(
        "the log of a volume is lost, and what is missing nobody has: its history begins anew",
        {{"volume_id", release.volume.value}, {"sequence", release.horizon.last.value}});
    parts_.worker.run(
        [store = &parts_.store, release] { return store->put_releases({release}, std::nullopt); },
        std::move(kept));
  };
}

Result<void> ClusterVolumes::begin_storage(ClusterVolume& volume, Epoch promised,
                                           volume::History& history) {
  const meta::Volume& meta = volume.meta;
  volume.image_path = image_path(meta) + ".raw";
  const Result<meta::Progress> before = parts_.store.progress(meta.id());
  if (!before) return before.error();
  // What an image holds of which nothing was ever durable may be of any time: it begins anew, too.
  if (before->frontier() == 0) {
    std::error_code removed;
    std::filesystem::remove(volume.image_path, removed);
    if (removed) return errno_error(removed.value(), volume.image_path + ": remove");
  }
  if (!std::filesystem::exists(volume.image_path)) {
    // (A node that has lost its image begins with nothing, and is built anew from the history and
    // another node's image.)
    meta::Progress nothing;
    if (Result<void> r = parts_.store.put_progress(meta.id(), nothing, true); !r) return r;
    if (Result<void> r =
            FileDisk::create(volume.image_path, FileDisk::Caching::kBuffered, meta.size_bytes());
        !r) {
      return r;
    }
  }
  Result<std::unique_ptr<FileDisk>> image = FileDisk::open(
      volume.image_path, FileDisk::Caching::kBuffered, &parts_.ring, options_.lock_wait);
  if (!image) return image.error();
  if ((*image)->size_bytes() < meta.size_bytes()) {
    return Error{ErrorCode::kCorrupt, volume.image_path + ": has " +
                                          std::to_string((*image)->size_bytes()) +
                                          " bytes, the volume " + meta.name() + " has " +
                                          std::to_string(meta.size_bytes())};
  }
  const Result<meta::Progress> progress = parts_.store.progress(meta.id());
  if (!progress) return progress.error();
  for (const std::uint32_t node : meta.cluster().storages()) {
    if (node == options_.self.value) continue;
    volume.other_image =
        std::make_unique<cluster::RemoteBase>(parts_.caller.image(VolumeId{meta.id()}, {node}));
  }
  std::optional<volume::Spill::Contents> spilled;
  if (volume.spill != nullptr) {
    auto found = volume.spill->read({meta.size_bytes() >> kBlockShift});
    if (!found) {
      // The log has all of it, or will when it is back.
      parts_.log.error("what was kept beside an image cannot be used",
                       {{"volume", meta.name()}, {"error", to_string(found.error())}});
    } else {
      spilled = *std::move(found);
    }
  }
  cluster::StoragePart::Events events;
  // Kept before the coordinator hears of it: the log gives up what every image holds, and this node
  // must not come back with less.
  events.durable = [this, id = meta.id(), &volume](SequenceNumber sequence, volume::Done kept) {
    const meta::Progress now = progress_of(*volume.storage, sequence);
    parts_.worker.run(
        [store = &parts_.store, id, now] { return store->put_progress(id, now, true); },
        [this, kept = std::move(kept)](Result<void> r) mutable {
          if (!r) {
            parts_.log.warning("cannot record progress", {{"error", to_string(r.error())}});
          }
          kept(std::move(r));
        });
  };
  events.apply_failed = [this, name = meta.name()](const Error& error) {
    parts_.log.error("applying to the image failed; it will be tried again",
                     {{"volume", name}, {"error", to_string(error)}});
  };
  events.starts_over = [this, name = meta.name()] {
    parts_.log.warning(
        "the log has given up what this node's image lacks, because this node was away for so "
        "long: the image is made anew, from another node's image and the log",
        {{"volume", name}});
  };
  volume::Storage::Options storage_options = options_.storage;
  storage_options.catch_up = &catch_up_;
  storage_options.restore = &restore_;
  volume.storage = std::make_unique<cluster::StoragePart>(
      *std::move(image),
      replication::StorageRole::Start{VolumeId{meta.id()}, promised,
                                      SequenceNumber{progress->frontier()}},
      storage_options,
      cluster::StoragePart::Parts{history, volume.other_image.get(), parts_.worker, parts_.executor,
                                  parts_.promises, volume.journal.get(), volume.spill.get(),
                                  progress->base_known()},
      std::move(events), std::move(spilled));
  return {};
}

void ClusterVolumes::begin_target(ClusterVolume& volume, volume::History& history) {
  const meta::Volume& meta = volume.meta;
  cluster::TargetPart::Options options;
  options.volume = VolumeId{meta.id()};
  options.self = options_.self;
  options.size_bytes = meta.size_bytes();
  options.journal = volume.journal != nullptr;
  options.coordinator.absent_max = options_.absent_max;
  options.promote = !meta.cluster().promote_by_hand();
  if (options_.group_of) options.group = options_.group_of(meta.name());
  const std::vector<std::uint32_t> targets = manager::targets_of(meta);
  for (const std::uint32_t node : targets) options.targets.push_back({node});
  options.backoff.seed = options_.self.value;
  cluster::ParticipantService::Parts own;
  if (volume.logger != nullptr) own.logger = &volume.logger->host();
  if (volume.journal != nullptr) {
    own.logger = &volume.journal->host();
    own.journal = volume.journal_source.get();
    options.coordinator.logger_patience = options_.logger_patience;
  }
  volume::CurrentReader* storage = nullptr;
  if (volume.storage != nullptr) {
    own.storage = &volume.storage->host();
    storage = &volume.storage->storage();
  }
  cluster::TargetPart::Events events;
  log_events(events, parts_.log, meta.name());
  events.changed = [this, id = options.volume](cluster::TargetPart::State state) {
    target_changed(id, state);
  };
  events.prepare = [this, id = options.volume](UniqueFunction<void()> done) {
    take_reservations(id, std::move(done));
  };
  volume.target = std::make_unique<cluster::TargetPart>(
      options,
      cluster::TargetPart::Parts{parts_.executor, parts_.shared, parts_.lease, parts_.view,
                                 parts_.caller, storage, history, own},
      std::move(events));
  ClusterPortGroups::Nodes nodes{options.volume, options_.self, targets, options_.lease,
                                 meta.cluster().redirect()};
  volume.port_groups = std::make_shared<ClusterPortGroups>(std::move(nodes), parts_.directory);
  volume.port_groups->attach(*volume.target);
  make_device(volume);
}

void ClusterVolumes::make_device(ClusterVolume& volume) {
  volume.identity.target_ports = volume.port_groups->ports();
  std::vector<scsi::LogicalUnitOptions> units(1);
  units[0].disk.identity = volume.identity;
  units[0].disk.block_bytes = volume.meta.block_size();
  units[0].disk.removable = volume.meta.removable();
  units[0].disk.clock = [executor = &parts_.executor] { return executor->monotonic_time(); };
  units[0].disk.port_groups = volume.port_groups;
  units[0].layer = volume.target->layer();
  units[0].reservations = parts_.reservations.options(VolumeId{volume.meta.id()});
  volume.device = std::make_shared<scsi::Device>(std::move(units));
  volume.metered = std::make_shared<MeteredDevice>(volume.device, parts_.executor);
}

// What the coordinator before has kept.
void ClusterVolumes::take_reservations(VolumeId volume, UniqueFunction<void()> done) {
  parts_.reservations.fetch(
      volume, [this, volume, done = std::move(done)](Result<scsi::Reservations> kept) mutable {
        const auto found = volumes_.find(volume.value);
        if (found == volumes_.end()) return;
        if (!kept) {
          // Without them nobody would be kept out who is to be.
          return parts_.log.error(
              "a volume is not served: its reservations cannot be read",
              {{"volume", found->second.meta.name()}, {"error", to_string(kept.error())}});
        }
        found->second.device->replace_reservations({}, *std::move(kept));
        done();
      });
}

void ClusterVolumes::target_changed(VolumeId volume, cluster::TargetPart::State state) {
  using State = cluster::TargetPart::State;
  const auto found = volumes_.find(volume.value);
  if (found == volumes_.end() || found->second.device == nullptr) return;
  const char* const now = state == State::kServing         ? "serving"
                          : state == State::kTransitioning ? "transitioning"
                                                           : "standby";
  parts_.log.info("a target's state has changed",
                  {{"volume", found->second.meta.name()}, {"state", now}});
  found->second.device->access_state_changed({});
}

void ClusterVolumes::look() {
  if (!started_ || closed_) return;
  if (!resigned_) look_for_new();
  for (auto& [id, volume] : volumes_) {
    if (volume.target != nullptr) volume.target->look();
  }
}

void ClusterVolumes::look_for_new() {
  std::vector<Error> left_out;
  for (const meta::Volume& meta : parts_.directory.volumes(&left_out)) {
    if (failed_.contains(meta.id())) continue;
    if (const auto here = volumes_.find(meta.id()); here != volumes_.end()) {
      if (here->second.meta.uuid() == meta.uuid()) continue;
      left_out.push_back({ErrorCode::kCorrupt,
                          "volume " + std::to_string(meta.id()) + " of the cluster, " +
                              meta.name() + ", is not the one that this node has by that number, " +
                              here->second.meta.name() + ": another store has given it"});
    } else if (Result<void> r = check(meta); r) {
      join(meta);
    } else {
      left_out.push_back(r.error());
    }
  }
  tell(left_out);
}

void ClusterVolumes::tell(const std::vector<Error>& left_out) {
  std::set<std::string> told;
  for (const Error& error : left_out) {
    if (!told_.contains(error.message)) {
      parts_.log.error("a volume of the cluster makes no sense, and is left alone",
                       {{"error", to_string(error)}});
    }
    told.insert(error.message);
  }
  told_ = std::move(told);
}

// What the shared store says, anybody who reaches it may have written; behind this it is relied on.
Result<void> ClusterVolumes::check(const meta::Volume& meta) const {
  const auto known = [this](NodeId node) {
    return node == options_.self || parts_.caller.knows(node);
  };
  if (Result<void> r = check_definition(
          meta, {options_.self, options_.logs, options_.stores, options_.serves, known});
      !r) {
    return r;
  }
  const auto wrong = [&meta](const std::string& what) {
    return Error{ErrorCode::kCorrupt,
                 "volume " + std::to_string(meta.id()) + " of the cluster " + what};
  };
  for (const auto& [id, other] : volumes_) {
    if (other.meta.name() != meta.name() || id == meta.id()) continue;
    return wrong("has the name of volume " + std::to_string(id) + ", " + meta.name());
  }
  if (volumes_.size() >= kVolumesMax) {
    return wrong("is one more than the " + std::to_string(kVolumesMax) + " that a node can have");
  }
  return {};
}

// A volume that the cluster has created.
void ClusterVolumes::join(const meta::Volume& meta) {
  if (!logs(meta) && !stores(meta) && !serves(meta)) return;
  Result<void> begun = parts_.store.put_volume(meta);
  if (begun) begun = begin(meta);
  if (!begun) {
    failed_.insert(meta.id());
    parts_.log.error("a volume of the cluster cannot begin here",
                     {{"volume", meta.name()}, {"error", to_string(begun.error())}});
    return;
  }
  parts_.log.info("has a part in a new volume of the cluster",
                  {{"volume", meta.name()},
                   {"logs", logs(meta) ? "yes" : "no"},
                   {"stores", stores(meta) ? "yes" : "no"},
                   {"serves", serves(meta) ? "yes" : "no"}});
}

ClusterVolume* ClusterVolumes::find(std::string_view name) {
  for (auto& [id, volume] : volumes_) {
    if (volume.meta.name() == name) return &volume;
  }
  return nullptr;
}

ClusterVolume* ClusterVolumes::find_target(std::string_view iqn) {
  for (auto& [id, volume] : volumes_) {
    if (volume.iqn == iqn && volume.target != nullptr) return &volume;
  }
  return nullptr;
}

void ClusterVolumes::resign() {
  resigned_ = true;
  for (auto& [id, volume] : volumes_) {
    if (volume.target != nullptr) volume.target->close();
  }
}

void ClusterVolumes::close(const Error& error) {
  closed_ = true;
  for (auto& [id, volume] : volumes_) {
    volume.close(error);
    parts_.participants.remove(VolumeId{id});
  }
}

bool ClusterVolumes::idle() const {
  return std::ranges::all_of(volumes_, [](const auto& each) { return each.second.idle(); });
}

void ClusterVolumes::save_progress() {
  for (const auto& [id, volume] : volumes_) {
    if (volume.storage == nullptr) continue;
    const cluster::StoragePart& part = *volume.storage;
    const meta::Progress progress = progress_of(part, part.storage().durable());
    if (Result<void> r = parts_.store.put_progress(id, progress, true); !r) {
      parts_.log.warning("cannot record progress", {{"error", to_string(r.error())}});
    }
  }
}

}  // namespace mariner::node
