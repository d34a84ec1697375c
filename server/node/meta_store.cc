#include "server/node/meta_store.h"

#include <fmt/format.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "proto/bytes.h"

namespace mariner::node {
namespace {

Error unreadable(const std::string& key) {
  return {ErrorCode::kCorrupt, "the node's store: the value of " + key + " cannot be read"};
}

std::string hex_id(std::uint32_t id) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", id);
  return text;
}

std::string hex_number(std::uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

std::string volume_key(std::uint32_t id) { return "volume/" + hex_id(id); }
std::string mark_prefix(std::uint32_t id) { return "mark/" + hex_id(id) + "/"; }
std::string verdict_prefix(std::uint32_t id) { return "verdict/" + hex_id(id) + "/"; }
std::string group_key(const std::string& name) { return "group/" + name; }
std::string group_mark_prefix(const std::string& group) { return "group-mark/" + group + "/"; }
std::string group_rollback_prefix(const std::string& group) {
  return "group-rollback/" + group + "/";
}
std::string view_key(const std::string& name) { return "view/" + name; }
std::string reservations_key(const std::string& unit) { return "reservations/" + unit; }
std::string progress_key(std::uint32_t id) { return "progress/" + hex_id(id); }

std::string headway_key(std::uint32_t id) { return "headway/" + hex_id(id); }
std::string headway_prefix(std::uint32_t id) { return headway_key(id) + "/"; }

std::string release_key(std::uint32_t id) { return "release/" + hex_id(id); }
std::string base_prefix(std::uint32_t id) { return "base/" + hex_id(id) + "/"; }
std::string base_key(std::uint32_t id, std::uint64_t page) {
  return base_prefix(id) + hex_number(page);
}

constexpr const char* kLogReleaseKey = "log-release";
constexpr const char* kWithdrawnKey = "withdrawn";
std::string promise_key(std::uint32_t id) { return "promise/" + hex_id(id); }
constexpr const char* kIndexFileKey = "index-file";
std::string log_disk_key(std::uint32_t number) { return "log-disk/" + hex_id(number); }

// As the volume's own history has it.
meta::Mark mark_of_part(const meta::GroupMark& whole, const meta::GroupPart& part) {
  meta::Mark mark;
  mark.set_volume_id(part.volume_id());
  mark.set_name(whole.group() + "/" + whole.name());
  mark.set_sequence(part.sequence());
  mark.set_time_ns(part.time_ns());
  mark.set_locked_until_ns(whole.locked_until_ns());
  mark.set_created_ns(whole.created_ns());
  mark.set_automatic(whole.automatic());
  mark.set_group(whole.group());
  return mark;
}

}  // namespace

MetaStore::MetaStore(std::unique_ptr<KeyValueStore> database) : database_(std::move(database)) {}
MetaStore::~MetaStore() = default;

Result<std::unique_ptr<MetaStore>> MetaStore::open(const std::string& path) {
  Result<std::unique_ptr<KeyValueStore>> database = KeyValueStore::open(path);
  if (!database) return database.error();
  return std::unique_ptr<MetaStore>(new MetaStore(*std::move(database)));
}

template <typename Message>
Result<void> MetaStore::put(const std::string& key, const Message& message, bool durable) {
  return database_->put(key, message.SerializeAsString(), durable);
}

// Of a key that is not there, an empty message.
template <typename Message>
Result<Message> MetaStore::get(const std::string& key) {
  std::string value;
  const Result<bool> found = database_->get(key, value);
  if (!found) return found.error();
  Message message;
  if (*found && !message.ParseFromString(value)) return unreadable(key);
  return message;
}

Result<void> MetaStore::remove(const std::string& key) { return database_->remove(key); }

Result<void> MetaStore::write(rocksdb::WriteBatch& batch) { return database_->write(batch, true); }

template <typename Message>
Result<std::vector<Message>> MetaStore::all(const std::string& prefix) {
  std::vector<Message> out;
  const Result<void> read =
      database_->each(prefix, [&](std::string_view key, std::string_view value) -> Result<void> {
        Message message;
        if (!message.ParseFromArray(value.data(), static_cast<int>(value.size()))) {
          return unreadable(std::string(key));
        }
        out.push_back(std::move(message));
        return {};
      });
  if (!read) return read.error();
  return out;
}

Result<void> MetaStore::remove_all(const std::string& prefix, rocksdb::WriteBatch& batch) {
  return database_->each(prefix, [&](std::string_view key, std::string_view) -> Result<void> {
    batch.Delete(rocksdb::Slice(key.data(), key.size()));
    return {};
  });
}

Result<std::uint64_t> MetaStore::next_number(const std::string& key) {
  std::string value;
  const Result<bool> found = database_->get(key, value);
  if (!found) return found.error();
  std::uint64_t number = 1;
  if (*found) {
    if (value.size() != sizeof number) {
      return Error{ErrorCode::kCorrupt, "the node's store: " + key + " is damaged"};
    }
    number = load_le<std::uint64_t>(value.data()) + 1;
  }
  value.resize(sizeof number);
  store_le(value.data(), number);
  if (Result<void> r = database_->put(key, value, true); !r) return r.error();
  return number;
}

Result<Epoch> MetaStore::next_epoch() {
  Result<std::uint64_t> number = next_number("epoch");
  if (!number) return number.error();
  return Epoch{*number};
}

Result<std::uint32_t> MetaStore::next_volume_id() {
  Result<std::uint64_t> number = next_number("last-volume-id");
  if (!number) return number.error();
  if (*number > UINT32_MAX) return Error{ErrorCode::kLimit, "no volume id is left"};
  return static_cast<std::uint32_t>(*number);
}

Result<void> MetaStore::put_volume(const meta::Volume& volume) {
  return put(volume_key(volume.id()), volume, true);
}

Result<void> MetaStore::remove_volume(std::uint32_t id) {
  rocksdb::WriteBatch batch;
  batch.Delete(volume_key(id));
  batch.Delete(progress_key(id));
  batch.Delete(headway_key(id));
  batch.Delete(promise_key(id));
  batch.Delete(release_key(id));
  batch.Delete(reservations_key(unit_of_volume(id)));
  for (const std::string& prefix :
       {mark_prefix(id), verdict_prefix(id), base_prefix(id), headway_prefix(id)}) {
    if (Result<void> r = remove_all(prefix, batch); !r) return r;
  }
  return database_->write(batch, true);
}

Result<std::vector<meta::Volume>> MetaStore::volumes() { return all<meta::Volume>("volume/"); }

Result<void> MetaStore::put_mark(const meta::Mark& mark) {
  return put(mark_prefix(mark.volume_id()) + mark.name(), mark, true);
}
Result<void> MetaStore::remove_mark(std::uint32_t volume, const std::string& name) {
  return remove(mark_prefix(volume) + name);
}
Result<std::vector<meta::Mark>> MetaStore::marks() { return all<meta::Mark>("mark/"); }

Result<std::vector<meta::Mark>> MetaStore::marks_of(std::uint32_t volume) {
  Result<std::vector<meta::Mark>> marks = all<meta::Mark>(mark_prefix(volume));
  if (!marks) return marks;
  const Result<std::vector<meta::GroupMark>> of_groups = all<meta::GroupMark>("group-mark/");
  if (!of_groups) return of_groups.error();
  for (const meta::GroupMark& whole : *of_groups) {
    for (const meta::GroupPart& part : whole.parts()) {
      if (part.volume_id() == volume) marks->push_back(mark_of_part(whole, part));
    }
  }
  return marks;
}

Result<void> MetaStore::change_group(const meta::Group& group,
                                     const std::vector<meta::GroupMark>& marks) {
  rocksdb::WriteBatch batch;
  batch.Put(group_key(group.name()), group.SerializeAsString());
  for (const meta::GroupMark& mark : marks) {
    batch.Put(group_mark_prefix(group.name()) + mark.name(), mark.SerializeAsString());
  }
  return write(batch);
}

Result<void> MetaStore::remove_group(const std::string& name) {
  rocksdb::WriteBatch batch;
  batch.Delete(group_key(name));
  for (const std::string& prefix : {group_mark_prefix(name), group_rollback_prefix(name)}) {
    if (Result<void> r = remove_all(prefix, batch); !r) return r;
  }
  return write(batch);
}

Result<std::vector<meta::Group>> MetaStore::groups() { return all<meta::Group>("group/"); }

Result<void> MetaStore::put_group_mark(const meta::GroupMark& mark) {
  return put(group_mark_prefix(mark.group()) + mark.name(), mark, true);
}
Result<void> MetaStore::remove_group_mark(const std::string& group, const std::string& name) {
  return remove(group_mark_prefix(group) + name);
}
Result<std::vector<meta::GroupMark>> MetaStore::group_marks_of(const std::string& group) {
  return all<meta::GroupMark>(group_mark_prefix(group));
}

Result<std::vector<meta::GroupRollback>> MetaStore::group_rollbacks(const std::string& group) {
  return all<meta::GroupRollback>(group_rollback_prefix(group));
}
Result<void> MetaStore::put_group_rollback(const meta::GroupRollback& rollback) {
  return put(group_rollback_prefix(rollback.group()) + hex_number(rollback.number()), rollback,
             true);
}
Result<void> MetaStore::remove_group_rollback(const std::string& group, std::uint64_t number) {
  return remove(group_rollback_prefix(group) + hex_number(number));
}
Result<void> MetaStore::end_group_rollback(const meta::GroupRollback& rollback,
                                           const meta::GroupMark& mark,
                                           const std::vector<std::uint64_t>& forgotten) {
  rocksdb::WriteBatch batch;
  const std::string prefix = group_rollback_prefix(rollback.group());
  batch.Put(prefix + hex_number(rollback.number()), rollback.SerializeAsString());
  batch.Put(group_mark_prefix(mark.group()) + mark.name(), mark.SerializeAsString());
  for (const std::uint64_t number : forgotten) batch.Delete(prefix + hex_number(number));
  return write(batch);
}

Result<std::vector<meta::Verdict>> MetaStore::verdicts_of(std::uint32_t volume) {
  return all<meta::Verdict>(verdict_prefix(volume));
}

Result<void> MetaStore::change_verdicts(std::uint32_t volume,
                                        const std::vector<meta::Verdict>& added,
                                        const std::vector<std::uint64_t>& gone) {
  rocksdb::WriteBatch batch;
  const std::string prefix = verdict_prefix(volume);
  for (const meta::Verdict& verdict : added) {
    batch.Put(prefix + hex_number(verdict.sequence()), verdict.SerializeAsString());
  }
  for (const std::uint64_t sequence : gone) batch.Delete(prefix + hex_number(sequence));
  return database_->write(batch, true);
}

Result<void> MetaStore::put_views(const std::vector<meta::View>& views) {
  rocksdb::WriteBatch batch;
  for (const meta::View& view : views) batch.Put(view_key(view.name()), view.SerializeAsString());
  return write(batch);
}
Result<void> MetaStore::remove_views(const std::vector<std::string>& names) {
  rocksdb::WriteBatch batch;
  for (const std::string& name : names) {
    batch.Delete(view_key(name));
    batch.Delete(reservations_key(unit_of_view(name)));
  }
  return write(batch);
}
Result<std::vector<meta::View>> MetaStore::views() { return all<meta::View>("view/"); }

Result<void> MetaStore::put_progress(std::uint32_t volume, const meta::Progress& progress,
                                     bool durable) {
  return put(progress_key(volume), progress, durable);
}

Result<meta::Progress> MetaStore::progress(std::uint32_t volume) {
  return get<meta::Progress>(progress_key(volume));
}

Result<void> MetaStore::put_releases(const std::vector<volume::VolumeRelease>& releases,
                                     const std::optional<meta::LogRelease>& log) {
  rocksdb::WriteBatch batch;
  if (log) batch.Put(kLogReleaseKey, log->SerializeAsString());
  for (const volume::VolumeRelease& given_up : releases) {
    const std::uint32_t id = given_up.volume.value;
    const Result<volume::VolumeRelease> before = release(id);
    if (!before) return before.error();
    const volume::Horizon& horizon = given_up.horizon;
    meta::Release value;
    value.set_horizon(horizon.moment.sequence.value);
    value.set_horizon_ns(horizon.moment.time.ns);
    value.set_last(std::max(horizon.last, before->horizon.last).value);
    value.set_frontier(std::max(horizon.frontier, before->horizon.frontier).value);
    value.set_given_up(std::max(horizon.given_up, before->horizon.given_up).value);
    value.set_based_everywhere(given_up.based_everywhere || before->based_everywhere);
    for (const index::KeptMoment& each : horizon.kept) {
      meta::Release::Kept& kept = *value.add_kept();
      kept.set_sequence(each.moment.sequence.value);
      kept.set_time_ns(each.moment.time.ns);
      kept.set_through_ns(each.through.ns);
    }
    batch.Put(release_key(id), value.SerializeAsString());
    for (const volume::BaseMap::Page& page : given_up.base_pages) {
      batch.Put(base_key(id, page.number), page.bits);
    }
  }
  return database_->write(batch, true);
}

Result<volume::VolumeRelease> MetaStore::release(std::uint32_t volume) {
  volume::VolumeRelease out;
  out.volume = VolumeId{volume};
  std::string value;
  const Result<bool> found = database_->get(release_key(volume), value);
  if (!found) return found.error();
  if (!*found) return out;
  meta::Release release;
  if (!release.ParseFromString(value)) {
    return Error{ErrorCode::kCorrupt,
                 "the node's store: the value of " + release_key(volume) + " cannot be read"};
  }
  out.horizon.moment = {SequenceNumber{release.horizon()}, VersionTime{release.horizon_ns()}};
  out.horizon.last = SequenceNumber{release.last()};
  out.horizon.frontier = SequenceNumber{release.frontier()};
  out.horizon.given_up = SequenceNumber{release.given_up()};
  for (const meta::Release::Kept& kept : release.kept()) {
    out.horizon.kept.push_back({{SequenceNumber{kept.sequence()}, VersionTime{kept.time_ns()}},
                                VersionTime{kept.through_ns()}});
  }
  out.based_everywhere = release.based_everywhere();
  return out;
}

Result<std::uint64_t> MetaStore::given_up(const std::string& log) {
  std::string value;
  const Result<bool> found = database_->get(kLogReleaseKey, value);
  if (!found) return found.error();
  if (!*found) return std::uint64_t{0};
  meta::LogRelease release;
  if (!release.ParseFromString(value)) {
    return Error{ErrorCode::kCorrupt, std::string("the node's store: the value of ") +
                                          kLogReleaseKey + " cannot be read"};
  }
  return release.log() == log ? release.ordinal() : 0;
}

Result<std::vector<std::uint64_t>> MetaStore::withdrawn(const std::string& log) {
  const Result<meta::Withdrawn> found = get<meta::Withdrawn>(kWithdrawnKey);
  if (!found) return found.error();
  if (found->log() != log) return std::vector<std::uint64_t>{};
  return std::vector<std::uint64_t>(found->ordinals().begin(), found->ordinals().end());
}

Result<void> MetaStore::add_withdrawn(const std::string& log,
                                      const std::vector<std::uint64_t>& ordinals) {
  const Result<std::vector<std::uint64_t>> before = withdrawn(log);
  if (!before) return before.error();
  const Result<std::uint64_t> given_up_below = given_up(log);
  if (!given_up_below) return given_up_below.error();
  std::set<std::uint64_t> all(before->begin(), before->end());
  all.insert(ordinals.begin(), ordinals.end());
  all.erase(all.begin(), all.lower_bound(*given_up_below));
  meta::Withdrawn value;
  value.set_log(log);
  for (const std::uint64_t ordinal : all) value.add_ordinals(ordinal);
  return put(kWithdrawnKey, value, true);
}

Result<meta::Promise> MetaStore::promise(std::uint32_t volume) {
  return get<meta::Promise>(promise_key(volume));
}

Result<void> MetaStore::raise_promise(std::uint32_t volume, Epoch epoch, VersionTime floor) {
  Result<meta::Promise> value = promise(volume);
  if (!value) return value.error();
  value->set_epoch(std::max(value->epoch(), epoch.value));
  value->set_floor_ns(std::max(value->floor_ns(), floor.ns));
  return put(promise_key(volume), *value, true);
}

std::string MetaStore::unit_of_volume(std::uint32_t id) { return volume_key(id); }
std::string MetaStore::unit_of_view(const std::string& name) { return view_key(name); }
Result<void> MetaStore::put_reservations(const std::string& unit,
                                         const meta::Reservations& reservations) {
  return put(reservations_key(unit), reservations, true);
}
Result<void> MetaStore::remove_reservations(const std::string& unit) {
  return remove(reservations_key(unit));
}
Result<meta::Reservations> MetaStore::reservations(const std::string& unit) {
  return get<meta::Reservations>(reservations_key(unit));
}

Result<void> MetaStore::put_index_file(const meta::IndexFile& file) {
  return put(kIndexFileKey, file, true);
}

Result<meta::IndexFile> MetaStore::index_file() {
  std::string value;
  const Result<bool> found = database_->get(kIndexFileKey, value);
  if (!found) return found.error();
  if (!*found) return meta::IndexFile{};
  meta::IndexFile file;
  // What cannot be read knows no file: the index is made again.
  if (!file.ParseFromString(value)) return meta::IndexFile{};
  return file;
}

Result<void> MetaStore::put_log_disk(const meta::LogDisk& disk) {
  return put(log_disk_key(disk.number()), disk, true);
}

Result<void> MetaStore::remove_log_disk(std::uint32_t number) {
  return remove(log_disk_key(number));
}

Result<std::vector<meta::LogDisk>> MetaStore::log_disks() {
  return all<meta::LogDisk>("log-disk/");
}

Result<void> MetaStore::put_headway(std::uint32_t volume, const volume::Headway::Change& change) {
  rocksdb::WriteBatch batch;
  const std::string prefix = headway_prefix(volume);
  if (change.anew) {
    if (Result<void> r = remove_all(prefix, batch); !r) return r;
  }
  for (const volume::Headway::Page& page : change.pages) {
    const std::string key = prefix + hex_number(page.number);
    if (page.bits.empty()) {
      batch.Delete(key);
    } else {
      batch.Put(key, page.bits);
    }
  }
  meta::Headway headway;
  headway.set_as_of(change.statement.as_of.value);
  headway.set_through(change.statement.through.value);
  headway.set_restored_bytes_all(change.statement.restored_bytes_all);
  batch.Put(headway_key(volume), headway.SerializeAsString());
  return database_->write(batch, false);
}

Result<volume::Headway::Kept> MetaStore::headway(std::uint32_t volume) {
  const Result<meta::Headway> headway = get<meta::Headway>(headway_key(volume));
  if (!headway) return headway.error();
  Result<std::vector<volume::Headway::Page>> left = pages(headway_prefix(volume));
  if (!left) return left.error();
  return volume::Headway::Kept{
      {{headway->as_of()}, {headway->through()}, headway->restored_bytes_all()}, *std::move(left)};
}

Result<std::vector<volume::BaseMap::Page>> MetaStore::base_pages(std::uint32_t volume) {
  return pages(base_prefix(volume));
}

Result<std::vector<volume::BaseMap::Page>> MetaStore::pages(const std::string& prefix) {
  std::vector<volume::BaseMap::Page> out;
  const Result<void> read =
      database_->each(prefix, [&](std::string_view key, std::string_view bits) -> Result<void> {
        const std::string_view number = key.substr(prefix.size());
        volume::BaseMap::Page page{0, std::string(bits)};
        const auto parsed =
            std::from_chars(number.data(), number.data() + number.size(), page.number, 16);
        if (parsed.ec != std::errc() || page.bits.size() != volume::BaseMap::kPageBlocks / 8) {
          return Error{ErrorCode::kCorrupt, fmt::format("the node's store: {} is damaged", key)};
        }
        out.push_back(std::move(page));
        return {};
      });
  if (!read) return read.error();
  return out;
}

Result<void> MetaStore::add_clock_step(const meta::ClockStep& step) {
  char key[40];
  std::snprintf(key, sizeof key, "clock-step/%020llu",
                static_cast<unsigned long long>(step.at_ns()));
  return put(key, step, false);
}
Result<std::vector<meta::ClockStep>> MetaStore::clock_steps() {
  return all<meta::ClockStep>("clock-step/");
}

}  // namespace mariner::node
