#include "server/node/index_stack.h"

#include <sys/random.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "proto/check.h"

namespace mariner::node {

using index::Bosc;
using index::StoredIndex;
using logging::FileDisk;

namespace {

constexpr std::uint64_t kFileBytesMin = 1ull << 30;
// Of the memory at least an eighth, and half of what is beyond that which queues and sweeps need in
// any case: reclaiming looks at all leaves again and again.
constexpr std::uint64_t kCacheShareMin = 8;
constexpr std::uint64_t kNotForTheCache = 192u << 20;
constexpr double kCommitAtContents = 0.25;

index::IndexFileId new_file_id() {
  index::IndexFileId id{};
  CHECK(::getrandom(id.data(), id.size(), 0) == static_cast<ssize_t>(id.size()));
  return id;
}

std::string bytes_of(const index::IndexFileId& id) {
  return {reinterpret_cast<const char*>(id.data()), id.size()};
}

}  // namespace

Result<std::unique_ptr<IndexStack>> IndexStack::open(const Settings& settings, Parts parts) {
  std::unique_ptr<IndexStack> stack(new IndexStack(settings, parts));
  if (Result<void> r = stack->open_file(); !r) return r.error();
  index::BoscOptions options;
  options.memory_bytes = settings.memory_bytes;
  const std::uint64_t memory = settings.memory_bytes;
  options.cache_bytes =
      std::max(memory / kCacheShareMin, (memory - std::min(memory, kNotForTheCache)) / 2);
  options.commit_threads = 1;
  options.replay_max = settings.replay_max;
  options.commit_at_contents = kCommitAtContents;
  auto store = Bosc::open(parts.loop, *stack->disk_, options);
  if (!store && store.error().code == ErrorCode::kCorrupt) {
    parts.log.error("the index file is damaged; it is made again from the log",
                    {{"file", settings.path}, {"error", to_string(store.error())}});
    if (Result<void> r = stack->format(); !r) return r.error();
    store = Bosc::open(parts.loop, *stack->disk_, options);
  }
  if (!store) return Error{store.error().code, settings.path + ": " + store.error().message};
  stack->store_ = *std::move(store);
  stack->frontier_at_start_ = stack->store_->frontier();
  stack->store_->on_checkpoint_begin([self = stack.get()] {
    self->flush();
    if (self->used_through_) self->store_->set_used_through(self->used_through_());
  });
  stack->store_->on_error([self = stack.get()](index::BlockAddress address, const Error& error) {
    self->failed(address, error);
  });
  return stack;
}

void IndexStack::complain(index::BlockAddress address, const Error& error) {
  const auto [write, untold] = complaints_.admit(parts_.loop.monotonic_time());
  if (untold > 0) {
    parts_.log.error("the index could not use blocks, more often than was told",
                     {{"file", settings_.path}, {"times", untold}});
  }
  if (!write) return;
  parts_.log.error(
      "the index cannot use one of its blocks",
      {{"file", settings_.path}, {"block", address.value}, {"error", to_string(error)}});
}

void IndexStack::failed(index::BlockAddress address, const Error& error) {
  complain(address, error);
  if (error.code != ErrorCode::kCorrupt) return;
  if (repair_ != nullptr) return repair_->damaged(address);
  // A start that cannot go on because of it begins with a new file.
  damaged_before_.insert(address);
  remember(false);
}

void IndexStack::leave_to_next_start() {
  is_damaged_ = true;
  parts_.log.error(
      "the index is damaged: what needs it cannot be read before it is made again, which the next "
      "start does",
      {{"file", settings_.path}});
  remember(false);
}

// Whether the next start may use the file.
void IndexStack::remember(bool usable) {
  if (Result<void> r = parts_.store.put_index_file(usable ? file_ : meta::IndexFile{}); !r) {
    parts_.log.error("the state of the index cannot be remembered",
                     {{"file", settings_.path}, {"error", to_string(r.error())}});
  }
}

void IndexStack::start_repairs(const logging::LogArray& log, volume::Worker& worker) {
  repair_ = std::make_unique<IndexRepair>(
      IndexRepair::Parts{*store_, volumes_, log, worker, parts_.loop, parts_.log},
      [this] { leave_to_next_start(); });
  if (damaged_before_.empty()) return;
  remember(true);
  for (const index::BlockAddress address : std::exchange(damaged_before_, {})) {
    repair_->damaged(address);
  }
}

// The file, of this log and large enough; otherwise a new one.
Result<void> IndexStack::open_file() {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::absolute(settings_.path).parent_path(),
                                      ignored);
  const std::uint64_t bytes = std::max(settings_.log_bytes, kFileBytesMin);
  const bool exists = std::filesystem::exists(settings_.path);
  if (!exists) {
    // Sparse: it takes what it needs.
    if (Result<void> r = FileDisk::create(settings_.path, FileDisk::Caching::kBuffered, bytes);
        !r) {
      return r;
    }
  }
  Result<std::unique_ptr<FileDisk>> disk =
      FileDisk::open(settings_.path, FileDisk::Caching::kDirect, &parts_.ring, settings_.lock_wait);
  if (!disk) return disk.error();
  disk_ = *std::move(disk);
  if (settings_.durable_way) disk_->set_durable_way(*settings_.durable_way);
  if (!exists) return format();
  const Result<bool> known = is_of_this_log();
  if (!known) return known.error();
  if (!*known) {
    parts_.log.warning("the index file is of another log, or none; it is made again",
                       {{"file", settings_.path}});
  } else if (disk_->size_bytes() < bytes) {
    parts_.log.info("the index file is too small for the log by now; it is made again",
                    {{"file", settings_.path}, {"bytes", bytes}});
    if (Result<void> r = disk_->resize(bytes); !r) return r;
  } else {
    return {};
  }
  return format();
}

Result<bool> IndexStack::is_of_this_log() {
  const Result<index::IndexSuperblock> superblock = index::read_index_superblock(*disk_);
  if (!superblock && superblock.error().code == ErrorCode::kCorrupt) return false;
  if (!superblock) return superblock.error();
  const Result<meta::IndexFile> known = parts_.store.index_file();
  if (!known) return known.error();
  file_ = *known;
  return known->log() == settings_.log && known->file() == bytes_of(superblock->file);
}

Result<void> IndexStack::format() {
  index::IndexShape shape;
  shape.file = new_file_id();
  const auto formatted = index::format_index_file(*disk_, shape);
  if (!formatted) {
    return Error{formatted.error().code, settings_.path + ": " + formatted.error().message};
  }
  file_.set_log(settings_.log);
  file_.set_file(bytes_of(shape.file));
  return parts_.store.put_index_file(file_);
}

IndexStack::~IndexStack() {
  if (store_ == nullptr) return;
  stop();
  if (!idle()) wait_until([this] { return idle(); });
  repair_.reset();
  store_.reset();  // before its functions
}

void IndexStack::stop() {
  if (std::exchange(stopping_, true)) return;
  stop_repairs();
  store_->drain([this] { drained_ = true; });
}

void IndexStack::flush() {
  for (const auto& [id, index] : volumes_) index->flush();
}

Result<std::shared_ptr<StoredIndex>> IndexStack::open_volume(VolumeId volume,
                                                             const volume::Horizon& horizon,
                                                             std::uint64_t given_up_ordinal) {
  auto opened = StoredIndex::open(*store_, volume);
  if (!opened) {
    return Error{opened.error().code, settings_.path + ": " + opened.error().message};
  }
  std::shared_ptr<StoredIndex> index = *std::move(opened);
  index->set_horizon(horizon.moment);
  index->set_stored_horizon(horizon.moment.sequence);
  index->set_kept(horizon.kept);
  index->forget_through(horizon.given_up, given_up_ordinal == 0 ? 0 : given_up_ordinal - 1);
  volumes_[volume] = index;
  return index;
}

Result<void> IndexStack::load() {
  store_->remove_others();
  std::size_t waiting = volumes_.size();
  Result<void> result;
  for (const auto& [id, index] : volumes_) {
    index->learn([&](const Result<void>& learnt) {
      if (!learnt && result) result = learnt;
      --waiting;
    });
  }
  wait_until([&] { return waiting == 0; });
  return result;
}

void IndexStack::wait_for_room() {
  if (store_->has_room()) return;
  bool room = false;
  store_->when_room([&] { room = true; });
  wait_until([&] { return room; });
}

void IndexStack::remove(VolumeId volume) {
  const auto found = volumes_.find(volume);
  if (found == volumes_.end()) return;
  found->second->flush();
  if (repair_ != nullptr) repair_->forget(volume);
  for (const index::FunctionId function : StoredIndex::functions_of(volume)) {
    // The last of them to go lets go of the index.
    store_->remove_function(function, [index = found->second] {});
  }
  volumes_.erase(found);
}

}  // namespace mariner::node
