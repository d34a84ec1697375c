// The node's embedded store for everything small: volumes, marks, views, progress (RocksDB).
// STATE.md lists the keys.
//
// Calls block on a small write; they are administrative and rare. Owner's thread only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "proto/error.h"
#include "proto/meta.pb.h"
#include "proto/units.h"
#include "server/node/key_value_store.h"
#include "server/volume/headway.h"
#include "server/volume/reclaimer.h"

namespace rocksdb {
class WriteBatch;
}  // namespace rocksdb

namespace mariner::node {

class MetaStore {
 public:
  // Opens or creates the store in directory `path`.
  static Result<std::unique_ptr<MetaStore>> open(const std::string& path);
  ~MetaStore();
  MetaStore(const MetaStore&) = delete;
  MetaStore& operator=(const MetaStore&) = delete;

  // Durable on return, each of them, unless said otherwise.
  Result<void> put_volume(const meta::Volume& volume);
  // Removes the volume with its marks, verdicts, progress and reservations, in one step.
  Result<void> remove_volume(std::uint32_t id);
  Result<std::vector<meta::Volume>> volumes();
  // A volume id that was never given before.
  Result<std::uint32_t> next_volume_id();

  Result<void> put_mark(const meta::Mark& mark);
  Result<void> remove_mark(std::uint32_t volume, const std::string& name);
  Result<std::vector<meta::Mark>> marks();
  // Its own, and its part in those of its group: these have the name "GROUP/NAME".
  Result<std::vector<meta::Mark>> marks_of(std::uint32_t volume);

  Result<void> put_group(const meta::Group& group) { return change_group(group, {}); }
  // With these of its marks, in one step.
  Result<void> change_group(const meta::Group& group, const std::vector<meta::GroupMark>& marks);
  // With its marks and rollbacks, in one step.
  Result<void> remove_group(const std::string& name);
  Result<std::vector<meta::Group>> groups();
  Result<void> put_group_mark(const meta::GroupMark& mark);
  Result<void> remove_group_mark(const std::string& group, const std::string& name);
  Result<std::vector<meta::GroupMark>> group_marks_of(const std::string& group);
  // Those of a group, in their order.
  Result<std::vector<meta::GroupRollback>> group_rollbacks(const std::string& group);
  Result<void> put_group_rollback(const meta::GroupRollback& rollback);
  Result<void> remove_group_rollback(const std::string& group, std::uint64_t number);
  // One that is done, with the mark on the moment before it; others of the group are forgotten. In
  // one step.
  Result<void> end_group_rollback(const meta::GroupRollback& rollback, const meta::GroupMark& mark,
                                  const std::vector<std::uint64_t>& forgotten);

  // Of a volume, by moment. A change happens in one step.
  Result<std::vector<meta::Verdict>> verdicts_of(std::uint32_t volume);
  Result<void> change_verdicts(std::uint32_t volume, const std::vector<meta::Verdict>& added,
                               const std::vector<std::uint64_t>& gone);

  Result<void> put_view(const meta::View& view) { return put_views({view}); }
  Result<void> remove_view(const std::string& name) { return remove_views({name}); }
  // All of them in one step.
  Result<void> put_views(const std::vector<meta::View>& views);
  Result<void> remove_views(const std::vector<std::string>& names);
  Result<std::vector<meta::View>> views();

  // Progress may lag behind after a crash: it only saves work.
  Result<void> put_progress(std::uint32_t volume, const meta::Progress& progress, bool durable);
  Result<meta::Progress> progress(std::uint32_t volume);

  // In one step, which a power cut may take back: an older one only costs work. Any thread.
  Result<void> put_headway(std::uint32_t volume, const volume::Headway::Change& change);
  Result<volume::Headway::Kept> headway(std::uint32_t volume);

  // What the log is about to give up, in one step. Any thread.
  Result<void> put_releases(const std::vector<volume::VolumeRelease>& releases,
                            const std::optional<meta::LogRelease>& log);
  // The ordinal below which `log` has given up everything; 0: nothing.
  Result<std::uint64_t> given_up(const std::string& log);
  // What it has given up of a volume (nothing, at first), and what it left to the image.
  Result<volume::VolumeRelease> release(std::uint32_t volume);
  Result<std::vector<volume::BaseMap::Page>> base_pages(std::uint32_t volume);

  // Adds to the ordinals of records of `log` that were taken back; those that have been given up
  // since are forgotten.
  Result<void> add_withdrawn(const std::string& log, const std::vector<std::uint64_t>& ordinals);
  Result<std::vector<std::uint64_t>> withdrawn(const std::string& log);

  // Neither the epoch nor the floor is ever lowered.
  Result<void> raise_promise(std::uint32_t volume, Epoch epoch, VersionTime floor);
  Result<meta::Promise> promise(std::uint32_t volume);

  // Of a logical unit: "volume/ID", or "view/NAME". Of one that has none, empty ones.
  Result<void> put_reservations(const std::string& unit, const meta::Reservations& reservations);
  Result<void> remove_reservations(const std::string& unit);
  Result<meta::Reservations> reservations(const std::string& unit);
  static std::string unit_of_volume(std::uint32_t id);
  static std::string unit_of_view(const std::string& name);

  // Which index file belongs to which log.
  Result<void> put_index_file(const meta::IndexFile& file);
  Result<meta::IndexFile> index_file();

  Result<void> put_log_disk(const meta::LogDisk& disk);
  Result<void> remove_log_disk(std::uint32_t number);
  Result<std::vector<meta::LogDisk>> log_disks();

  // One higher at each call.
  Result<Epoch> next_epoch();

  Result<void> add_clock_step(const meta::ClockStep& step);
  Result<std::vector<meta::ClockStep>> clock_steps();

 private:
  explicit MetaStore(std::unique_ptr<KeyValueStore> database);
  Result<std::uint64_t> next_number(const std::string& key);
  template <typename Message>
  Result<std::vector<Message>> all(const std::string& prefix);
  template <typename Message>
  Result<void> put(const std::string& key, const Message& message, bool durable);
  template <typename Message>
  Result<Message> get(const std::string& key);
  Result<void> remove(const std::string& key);
  Result<void> write(rocksdb::WriteBatch& batch);
  // All keys that begin so.
  Result<void> remove_all(const std::string& prefix, rocksdb::WriteBatch& batch);
  Result<std::vector<volume::BaseMap::Page>> pages(const std::string& prefix);

  std::unique_ptr<KeyValueStore> database_;
};

}  // namespace mariner::node
