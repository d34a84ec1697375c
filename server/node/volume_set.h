// The volumes of a node: started from the store and the log, created, imported, cloned, grown,
// deleted.
//
// A volume whose image or reservations cannot be opened is there, and not served: its history is
// kept and can be listed, nobody logs in, and what is missing is looked for again and again.
//
// Also the hidden volumes behind writable views, which have no name and no target. Owner's thread
// only; opening blocks and happens before the event loop runs, but for what was missing then.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "logging/io_ring.h"
#include "logging/late_disk.h"
#include "proto/executor.h"
#include "proto/meta.pb.h"
#include "server/client/retention.h"
#include "server/node/log.h"
#include "server/node/log_stack.h"
#include "server/node/meta_store.h"
#include "server/node/metered_device.h"
#include "server/node/recovered_volumes.h"
#include "server/scsi/device.h"
#include "server/volume/fault_layer.h"
#include "server/volume/volume.h"

namespace mariner::node {

// A volume with its target.
struct ServedVolume {
  meta::Volume meta;
  std::string iqn;
  scsi::Identity identity;
  std::shared_ptr<volume::Volume> volume;  // null unless READY
  // Why it is not served now; then these two are null.
  std::optional<Error> failure;
  std::shared_ptr<scsi::Device> device;
  std::shared_ptr<MeteredDevice> metered;
  logging::FileDisk* image = nullptr;    // the volume's; null while it is missing
  logging::LateDisk* missing = nullptr;  // stands for it then
  std::string image_path;

  [[nodiscard]] bool serves() const { return volume != nullptr && !failure; }
};

// kUnavailable: what whoever asks for a volume that does not serve is told.
Error not_served(const ServedVolume& volume);

struct VolumeSetParts {  // all outlive the set
  Executor& executor;
  logging::IoRing& ring;
  MetaStore& store;
  volume::Worker& worker;
  RecoveredVolumes& recovered;
  Log& log;
};

struct VolumeSetOptions {
  // Of the units of other targets, for copies that an initiator of volume `from` asks for
  // (scsi/copy_manager.h).
  std::function<std::shared_ptr<scsi::CopyUnit>(std::uint32_t from, const scsi::CopyTarget& target,
                                                const scsi::InitiatorPort& initiator)>
      find_copy_unit;
  // For SANITIZE of a volume; none: it is not known.
  std::function<std::shared_ptr<scsi::Sanitizer>(std::uint32_t volume)> make_sanitizer;
  // Of all targets; null: each has its own.
  std::shared_ptr<scsi::RodTokens> rod_tokens;
  std::string state_dir;
  std::string iqn_base;
  std::vector<std::uint16_t> target_ports{1};  // scsi::Identity
  volume::Storage::Options storage;
  std::uint64_t restore_max = 0;  // bytes a second of what rollbacks changed; 0: no limit
  std::map<std::string, volume::FaultOptions>
      faults;                              // by volume: injected between host and volume
  std::chrono::milliseconds lock_wait{0};  // for what a killed process has left under way
  // How often what was missing at the start is looked for, and who is told that it is there.
  std::chrono::milliseconds look_again{5000};
  std::function<void(ServedVolume&)> serves_again{};
};

struct NewVolume {
  std::string name;
  std::uint64_t size_bytes = 0;
  std::uint32_t block_size = 512;
  std::uint64_t window_s = 0;
  Retention retain{};
  std::vector<std::string> acl;
  std::vector<std::string> auth;
  bool sanitize = false;
  bool removable = false;
};

class VolumeSet {
 public:
  VolumeSet(VolumeSetParts parts, VolumeSetOptions options);
  ~VolumeSet();

  // Before recovery: reads which volumes exist, and has them expected there. After: start() makes
  // them volumes, some of which may not be served; an error if none can be.
  Result<void> load();
  Result<void> start(LogStack& log, Epoch epoch);

  // What create() would make, without an id, after every check.
  Result<meta::Volume> plan(const NewVolume& request) const;
  Result<ServedVolume*> create(const NewVolume& request);
  // Copies the file `path` into a new volume. Progress in bytes; `done` when it serves. A dry run
  // checks all and answers with a volume that is gone when `done` returns.
  void import(const NewVolume& request, const std::string& path, bool dry_run,
              UniqueFunction<void(std::uint64_t, std::uint64_t)> progress,
              UniqueFunction<void(Result<ServedVolume*>)> done);
  // The same of a volume that serves, as of a settled moment of its history: a new volume of its
  // size, block size and access, whatever `request` says of these. kOutsideWindow, kUnavailable
  // when the moment is not kept (any more).
  void clone(const NewVolume& request, const ServedVolume& source, SequenceNumber at, bool dry_run,
             UniqueFunction<void(std::uint64_t, std::uint64_t)> progress,
             UniqueFunction<void(Result<ServedVolume*>)> done);
  // What resize() would make of a volume that serves, after every check. kInvalidArgument for a
  // size out of bounds, or smaller than the volume's.
  Result<meta::Volume> plan_resize(const std::string& name, std::uint64_t size_bytes) const;
  // Grows a volume that serves, beside whatever is under way; with the size that it has, nothing
  // happens. `done` when the size is durable, layers opened from then on have it, and initiators
  // are being told (2Ah 09h). After an error, or a crash before, it has either size at a start;
  // what is behind the old end reads as zeros.
  void resize(const std::string& name, std::uint64_t size_bytes,
              UniqueFunction<void(Result<ServedVolume*>)> done);
  // Takes the volume away: nobody may use it any more. `done` when its image is gone.
  void remove(const std::string& name, UniqueFunction<void(Result<void>)> done);

  // A hidden volume on top of `parent` at `at`; null parent entry never.
  Result<std::shared_ptr<volume::Volume>> create_overlay(const ServedVolume& parent,
                                                         SequenceNumber at, std::uint32_t& id);
  Result<std::shared_ptr<volume::Volume>> open_overlay(std::uint32_t id);
  void remove_overlay(std::uint32_t id, std::shared_ptr<volume::Volume> overlay);
  // Hidden volumes that no view claims any more.
  void remove_orphans(const std::vector<std::uint32_t>& claimed);

  // A target for a volume, or for a view of it, with these units.
  [[nodiscard]] std::shared_ptr<scsi::Device> make_device(
      std::uint32_t volume, std::vector<scsi::LogicalUnitOptions> units) const;

  [[nodiscard]] ServedVolume* find(const std::string& name);
  [[nodiscard]] ServedVolume* find(std::uint32_t id);
  [[nodiscard]] ServedVolume* find_target(std::string_view iqn);
  // A volume or hidden volume that is alive, also one that is being taken down.
  [[nodiscard]] std::shared_ptr<volume::Volume> find_volume(std::uint32_t id) const;
  [[nodiscard]] const std::map<std::string, ServedVolume>& all() const { return volumes_; }
  [[nodiscard]] std::map<std::string, ServedVolume>& all() { return volumes_; }

  // Bytes a second of what rollbacks changed; 0: no limit.
  void set_restore_max(std::uint64_t bytes_per_second) { restore_.set(bytes_per_second); }

  // Refuses new writes everywhere.
  void close(const Error& error);
  [[nodiscard]] bool idle() const;
  // The progress of every volume, durable: saves work at the next start.
  void save_progress();

 private:
  std::string image_path(std::uint32_t id) const;
  Result<std::unique_ptr<logging::FileDisk>> open_image(const ServedVolume& served,
                                                        std::chrono::milliseconds lock_wait) const;
  Result<void> start_volume(ServedVolume& served, std::unique_ptr<logging::Disk> image);
  Result<void> serve(ServedVolume& served);
  Result<void> start_new(ServedVolume& served);
  Result<void> start_known(ServedVolume& served);
  void look_for_missing();
  Result<void> serve_again(ServedVolume& served);
  Result<std::shared_ptr<volume::Volume>> make_overlay(const meta::Volume& meta);
  static Result<std::uint64_t> checked_size(std::uint64_t bytes);
  Result<meta::Volume> new_meta(const NewVolume& request);
  ServedVolume& add(const meta::Volume& meta);
  void forget_unstarted(const meta::Volume& meta);
  void remember(const std::shared_ptr<volume::Volume>& volume);
  void retire(std::shared_ptr<volume::Volume> volume, UniqueFunction<void()> done);
  Result<ServedVolume*> finish_resize(const std::string& name, std::uint64_t size_bytes);
  void finish_removal(std::uint32_t id, const std::string& name,
                      UniqueFunction<void(Result<void>)> done);
  // A new volume whose image is being filled: listed, and not served.
  struct Filling {
    meta::Volume meta;
    std::unique_ptr<logging::FileDisk> image;
    UniqueFunction<void(std::uint64_t, std::uint64_t)> progress;
    UniqueFunction<void(Result<ServedVolume*>)> done;
  };
  // With an image of zeros, in this state. After an error nothing is left.
  Result<void> begin_filling(Filling& filling, meta::Volume::State state);
  // It serves, if all of its image is durable; else nothing is left.
  void finish_filling(Filling& filling, Result<void> filled);
  [[nodiscard]] Result<void> may_fill() const;
  struct Import;
  void begin_import(const std::shared_ptr<Import>& import, NewVolume wanted, bool dry_run);
  void import_next(const std::shared_ptr<Import>& import);

  const VolumeSetParts parts_;
  const VolumeSetOptions options_;
  volume::Throttle restore_{options_.restore_max};
  LogStack* log_ = nullptr;
  Epoch epoch_;
  std::map<std::string, ServedVolume> volumes_;
  std::unordered_map<std::uint32_t, meta::Volume> overlays_;
  std::unordered_map<std::uint32_t, VersionTime> opened_until_;  // moments opened before this start
  std::vector<std::weak_ptr<volume::Volume>> started_;
  std::size_t retiring_ = 0;
  std::size_t fillings_ = 0;
  std::size_t resizes_ = 0;
  bool closing_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::node
