#include "server/manager/volume_directory.h"

#include <charconv>
#include <utility>

namespace mariner::manager {
namespace {

constexpr int kTriesMax = 8;  // with others creating volumes at the same time

std::string prefixed(std::string_view rest) { return std::string(kClusterPrefix).append(rest); }
std::string last_volume_key() { return prefixed("last-volume"); }

// The counter of volumes; nothing: it cannot be read.
std::optional<std::uint32_t> number_in(const std::optional<Entry>& entry) {
  if (!entry) return 0;
  std::uint32_t number = 0;
  const char* const end = entry->value.data() + entry->value.size();
  const auto [at, error] = std::from_chars(entry->value.data(), end, number);
  if (error != std::errc{} || at != end) return std::nullopt;
  return number;
}

VolumeRecord first_record(const meta::Volume& volume) {
  VolumeRecord record;
  record.volume = VolumeId{volume.id()};
  record.logger = {volume.cluster().logger()};
  for (const std::uint32_t node : volume.cluster().storages()) record.storages.push_back({node});
  record.coordinator = {targets_of(volume).front()};  // rather than another one
  return record;
}

}  // namespace

std::string definition_key(VolumeId volume) {
  return prefixed("definitions/" + std::to_string(volume.value));
}
std::string name_key(std::string_view name) { return prefixed("names/").append(name); }

std::vector<std::uint32_t> targets_of(const meta::Volume& volume) {
  const meta::Cluster& nodes = volume.cluster();
  const auto& named = nodes.targets().empty() ? nodes.storages() : nodes.targets();
  return {named.begin(), named.end()};
}

std::vector<meta::Volume> VolumeDirectory::volumes(std::vector<Error>* left_out) const {
  std::vector<meta::Volume> found;
  view_.visit(prefixed("definitions/"), [&](const Entry& entry) {
    meta::Volume volume;
    const bool good = volume.ParseFromString(entry.value) &&
                      entry.key == definition_key(VolumeId{volume.id()}) && volume.id() != 0 &&
                      volume.cluster().logger() != 0 && volume.cluster().storages_size() > 0;
    if (good) {
      found.push_back(std::move(volume));
    } else if (left_out != nullptr) {
      left_out->push_back(
          {ErrorCode::kCorrupt, "the cluster's entry " + entry.key + " cannot be read"});
    }
  });
  return found;
}

std::optional<VolumeRecord> VolumeDirectory::record(VolumeId volume) const {
  const Entry* const entry = view_.find(volume_key(volume));
  if (entry == nullptr) return std::nullopt;
  Result<VolumeRecord> record = decode_volume_record(volume, entry->value);
  if (!record) return std::nullopt;
  return *std::move(record);
}

void VolumeDirectory::create(meta::Volume volume, Created done) {
  try_create(std::move(volume), kTriesMax, std::move(done));
}

void VolumeDirectory::try_create(meta::Volume volume, int tries_left, Created done) {
  store_.get(last_volume_key(), [this, volume = std::move(volume), tries_left,
                                 done = std::move(done)](const Result<Reading>& last) mutable {
    if (!last) return done(last.error());
    const std::optional<std::uint32_t> number = number_in(last->entry);
    if (!number || *number >= INT32_MAX) {  // the upper half is for what a node has for itself
      return done(
          Error{ErrorCode::kCorrupt, "the cluster's entry " + last_volume_key() + " is no number"});
    }
    volume.set_id(*number + 1);
    Transaction transaction;
    transaction.compares = {{last_volume_key(), last->entry ? last->entry->revision : Revision{}},
                            {name_key(volume.name()), Revision{}}};
    transaction.puts = {{last_volume_key(), std::to_string(volume.id())},
                        {name_key(volume.name()), std::to_string(volume.id())},
                        {definition_key(VolumeId{volume.id()}), volume.SerializeAsString()},
                        {volume_key(VolumeId{volume.id()}), encode(first_record(volume))}};
    store_.commit(std::move(transaction), [this, volume, tries_left, done = std::move(done)](
                                              const Result<CommitAnswer>& answer) mutable {
      if (!answer) return done(answer.error());
      switch (answer->outcome) {
        case CommitOutcome::kApplied: return done(std::move(volume));
        case CommitOutcome::kUnknown:
          return find_out(std::move(volume), answer->why, std::move(done));
        case CommitOutcome::kNotApplied: break;
      }
      for (const Entry& entry : answer->present) {
        if (entry.key != name_key(volume.name())) continue;
        return done(Error{ErrorCode::kAlreadyExists,
                          "a volume named " + volume.name() + " exists already"});
      }
      if (tries_left == 0) {
        return done(
            Error{ErrorCode::kUnavailable, "others create volumes all the time; try again"});
      }
      try_create(std::move(volume), tries_left - 1, std::move(done));
    });
  });
}

// The answer was lost: whether the volume is there shows its identity.
void VolumeDirectory::find_out(meta::Volume volume, std::string why, Created done) {
  const std::string key = definition_key(VolumeId{volume.id()});
  store_.get(key, [volume = std::move(volume), why = std::move(why),
                   done = std::move(done)](const Result<Reading>& found) mutable {
    meta::Volume there;
    if (found && found->entry && there.ParseFromString(found->entry->value) &&
        there.uuid() == volume.uuid()) {
      return done(std::move(volume));
    }
    done(Error{ErrorCode::kUnavailable,
               "the cluster's store did not answer (" + why +
                   "): whether the volume was created, `mariner volume list` shows"});
  });
}

}  // namespace mariner::manager
