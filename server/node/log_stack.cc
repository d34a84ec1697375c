#include "server/node/log_stack.h"

#include <sys/random.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <utility>

#include "logging/fresh_disk.h"
#include "proto/check.h"

namespace mariner::node {

using logging::FileDisk;

namespace {

constexpr unsigned kRecoveryThreads = 4;

logging::LogId new_log_id() {
  logging::LogId id{};
  CHECK(::getrandom(id.data(), id.size(), 0) == static_cast<ssize_t>(id.size()));
  return id;
}

// A log file appears under its name only when it is formatted: created and formatted beside it,
// then renamed, so that a crash in between leaves nothing half-made.
Result<void> create_log_file(const std::string& path, const logging::LogId& id, std::uint8_t number,
                             const LogSettings& settings, std::uint64_t now_ns) {
  const std::string fresh = path + ".new";
  std::error_code ignored;
  std::filesystem::remove(fresh, ignored);
  if (Result<void> r = FileDisk::create(fresh, FileDisk::Caching::kDirect, settings.size_bytes);
      !r) {
    return r;
  }
  Result<std::unique_ptr<FileDisk>> disk =
      FileDisk::open(fresh, FileDisk::Caching::kDirect, nullptr);
  if (!disk) return disk.error();
  Result<logging::Superblock> formatted =
      logging::format_log(**disk, id, number, settings.track_bytes, now_ns, settings.slots);
  if (!formatted) return formatted.error();
  if (Result<void> r = (*disk)->flush(); !r) return r;
  std::error_code error;
  std::filesystem::rename(fresh, path, error);
  if (error) return errno_error(error.value(), path + ": rename");
  return logging::sync_directory_of(path);
}

}  // namespace

std::uint8_t LogStack::free_number() const {
  // A number that any record may still name is not given again as long as its disk is known.
  unsigned number = 0;
  while (std::ranges::any_of(members_, [&](const LogMember& m) { return m.number == number; })) {
    ++number;
  }
  CHECK(number < logging::kLogDisksMax);
  return static_cast<std::uint8_t>(number);
}

// Nothing: there is no log there yet.
Result<std::optional<LogStack::Opened>> LogStack::open_existing(const std::string& path) {
  if (!std::filesystem::exists(path)) return std::optional<Opened>{};
  Result<std::unique_ptr<FileDisk>> disk =
      FileDisk::open(path, FileDisk::Caching::kDirect, &ring_, settings_.lock_wait);
  if (!disk) return disk.error();
  const Result<logging::Superblock> superblock = logging::read_superblock(**disk);
  if (!superblock && superblock.error().code == ErrorCode::kNotFound) {
    // A fresh block device. A file is formatted before it gets its name, so zeros there are damage.
    if (std::filesystem::is_block_file(path)) return std::optional<Opened>{};
    return Error{ErrorCode::kCorrupt,
                 path +
                     ": expected a log, found zeros where its superblock stands; "
                     "restore it, or remove the file to begin a new log"};
  }
  if (!superblock) {
    return Error{superblock.error().code, path + ": " + superblock.error().message};
  }
  if (superblock->rotates()) {
    return Error{ErrorCode::kUnavailable,
                 path +
                     ": was formatted for a rotating disk, which this version serves in "
                     "simulations only"};
  }
  Opened opened{{superblock->disk, path, false}, *std::move(disk), *superblock};
  if (superblock->has_slots()) {
    auto slotted = logging::SlottedDisk::open(opened.disk, *superblock, executor_);
    if (!slotted) return Error{slotted.error().code, path + ": " + slotted.error().message};
    opened.slotted = *std::move(slotted);
  }
  return std::optional<Opened>(std::move(opened));
}

Result<LogStack::Opened> LogStack::make_new(const std::string& path) {
  if (members_.size() == logging::kLogDisksMax) {
    return Error{ErrorCode::kLimit, path + ": a log has at most 256 disks"};
  }
  const std::uint8_t number = free_number();
  const std::uint64_t now_ns = executor_.wall_time().ns;
  const logging::LogId id = id_ ? *id_ : new_log_id();
  if (std::filesystem::exists(path)) {
    Result<std::unique_ptr<FileDisk>> disk =
        FileDisk::open(path, FileDisk::Caching::kDirect, nullptr);
    if (!disk) return disk.error();
    if (Result<void> r = logging::check_fresh(**disk, path); !r) return r.error();
    const auto formatted =
        logging::format_log(**disk, id, number, settings_.track_bytes, now_ns, settings_.slots);
    if (!formatted) return Error{formatted.error().code, path + ": " + formatted.error().message};
  } else if (Result<void> r = create_log_file(path, id, number, settings_, now_ns); !r) {
    return r.error();
  }
  Result<std::optional<Opened>> opened = open_existing(path);
  if (!opened) return opened.error();
  CHECK(opened->has_value());
  id_ = id;
  members_.push_back((*opened)->member);
  return **std::move(opened);
}

// The members first, so that what is new gets their identity.
Result<void> LogStack::open_all(std::vector<Opened>& disks) {
  std::vector<std::string> fresh;
  std::vector<LogMember> wanted = settings_.members;
  for (const std::string& path : settings_.paths) {
    const auto known = std::ranges::find(wanted, path, &LogMember::path);
    if (known == wanted.end()) {
      wanted.push_back({0, path, false});
    } else {
      known->draining = false;
    }
  }
  for (LogMember& member : wanted) {
    const bool configured =
        std::ranges::find(settings_.paths, member.path) != settings_.paths.end();
    const bool known = std::ranges::find(settings_.members, member.path, &LogMember::path) !=
                       settings_.members.end();
    Result<std::optional<Opened>> opened = open_existing(member.path);
    if (!opened) return opened.error();
    if (!*opened && known) {
      return Error{
          ErrorCode::kUnavailable,
          "log disk " + std::to_string(member.number) + ", " + member.path +
              ", is missing, and with it history and perhaps writes that are not in an "
              "image yet; bring it back, or, if it is lost for good, name it in [log] lost"};
    }
    if (!*opened) {
      fresh.push_back(member.path);
      continue;
    }
    Opened& disk = **opened;
    if (id_ && disk.superblock.log != *id_) {
      return Error{ErrorCode::kInvalidArgument, member.path + ": belongs to another log than " +
                                                    members_.front().path +
                                                    "; every log has disks of its own"};
    }
    if (std::ranges::any_of(members_,
                            [&](const LogMember& m) { return m.number == disk.member.number; })) {
      return Error{ErrorCode::kInvalidArgument, member.path + ": is log disk " +
                                                    std::to_string(disk.member.number) +
                                                    ", as another one is already: a copy of it?"};
    }
    id_ = disk.superblock.log;
    disk.member.draining = !configured;
    members_.push_back(disk.member);
    disks.push_back(std::move(disk));
  }
  for (const std::string& path : fresh) {
    Result<Opened> made = make_new(path);
    if (!made) return made.error();
    disks.push_back(*std::move(made));
  }
  return {};
}

void LogStack::add_to_array(Opened disk, logging::RecoveredDisk recovered) {
  if (disk.slotted) {
    array_->add_slotted(disk.slotted, disk.slotted, disk.superblock, std::move(recovered));
  } else {
    array_->add(std::move(disk.disk), disk.superblock, std::move(recovered));
  }
}

void LogStack::set_up(std::vector<Opened> disks, std::uint64_t used_through) {
  std::uint64_t tracks = 0;
  std::uint64_t track_bytes = UINT64_MAX;
  for (const Opened& disk : disks) {
    tracks += disk.superblock.place_count();
    track_bytes = std::min(track_bytes, disk.superblock.track_bytes());
  }
  logging::LogWriter::Options options;
  options.reserve_tracks = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
      settings_.lag_bytes / track_bytes + 2, 2, std::max<std::uint64_t>(2, tracks / 8)));
  options.t_wait = settings_.t_wait;
  array_ = std::make_unique<logging::LogArray>(
      executor_, std::max({recovered_.next_ordinal, given_up_, used_through + 1}), options);
  array_->writer().set_withdrawn(recovered_.withdrawn);
  array_->writer().set_observer([this](const logging::LogWriter::BatchReport& batch) {
    commit_durations_.observe(static_cast<std::uint64_t>(batch.duration.count()));
    batch_bytes_.observe(batch.bytes);
    patience_.batch_done(batch.records, batch.bytes, batch.duration);
    const std::uint64_t free = std::exchange(free_tracks_, array_->writer().free_tracks());
    if (free_tracks_ < free && less_room_) less_room_();
  });
  for (std::size_t i = 0; i < disks.size(); ++i) {
    add_to_array(std::move(disks[i]), std::move(recovered_.disks[i]));
  }
  for (const LogMember& member : members_) {
    if (member.draining) array_->drain(member.number, [](const Result<void>&) {});
  }
  recovered_.disks.clear();
}

Result<std::unique_ptr<LogStack>> LogStack::open(const LogSettings& settings, Executor& executor,
                                                 logging::IoRing& ring, const Ask& ask,
                                                 const logging::RecordVisitor& visit) {
  std::unique_ptr<LogStack> stack(new LogStack(settings, executor, ring));
  std::vector<Opened> disks;
  if (Result<void> r = stack->open_all(disks); !r) return r.error();
  for (std::size_t i = 0; i < disks.size(); ++i) {
    // Nothing else is under way in the ring yet.
    stack->members_[i].durability = logging::choose_durable_way(
        {*disks[i].disk, ring, executor, disks[i].superblock}, settings.durable_way);
  }
  const Result<Known> known = ask(stack->id_bytes());
  if (!known) return known.error();
  stack->given_up_ = known->given_up;
  logging::Withdrawn withdrawn;
  for (const std::uint64_t ordinal : known->withdrawn) withdrawn.add(ordinal);
  std::vector<logging::LogDiskRef> refs;
  for (const Opened& disk : disks) refs.push_back({disk.tracks(), disk.superblock});
  Result<logging::Recovered> recovered = logging::recover_log(
      refs, kRecoveryThreads,
      [&](const logging::Record& record, const logging::LogLocation& location) {
        if (record.ordinal < known->given_up || withdrawn.contains(record.ordinal)) return;
        visit(record, location);
      });
  if (!recovered) {
    return Error{recovered.error().code, stack->paths() + ": " + recovered.error().message};
  }
  stack->recovered_ = *std::move(recovered);
  for (const std::uint64_t ordinal : known->withdrawn) stack->recovered_.withdrawn.add(ordinal);
  stack->set_up(std::move(disks), known->used_through);
  return stack;
}

LogStack::~LogStack() = default;

Result<LogMember> LogStack::add(const std::string& path) {
  settings_.lock_wait = {};  // hosts do not wait for whoever has it
  Result<std::optional<Opened>> found = open_existing(path);
  if (!found) return found.error();
  if (*found) {
    return Error{ErrorCode::kAlreadyExists,
                 path + ": holds a log already; what it holds is read at the next start"};
  }
  Result<Opened> made = make_new(path);
  if (!made) return made.error();
  // With writes under way nothing can be measured: at the next start.
  LogMember& member = members_.back();
  member.durability.way = settings_.durable_way.value_or(members_.front().durability.way);
  member.durability.configured = settings_.durable_way.has_value();
  member.durability.not_measured = "it was added at run time; the next start measures it";
  made->disk->set_durable_way(member.durability.way);
  logging::RecoveredDisk empty{{}, logging::TrackList(made->superblock)};
  const LogMember added = made->member;
  add_to_array(*std::move(made), std::move(empty));
  return added;
}

Result<void> LogStack::drain(const std::string& path) {
  const auto member = std::ranges::find(members_, path, &LogMember::path);
  CHECK(member != members_.end());
  auto refused = std::make_shared<Result<void>>();  // it may be told later, and then it is done
  array_->drain(member->number, [refused](Result<void> result) { *refused = std::move(result); });
  if (*refused) member->draining = true;
  return *refused;
}

std::vector<LogMember> LogStack::retire() {
  std::vector<LogMember> gone;
  for (const LogMember& member : members_) {
    if (member.draining && array_->is_empty(member.number)) gone.push_back(member);
  }
  for (const LogMember& member : gone) {
    array_->remove(member.number);
    std::erase_if(members_, [&](const LogMember& m) { return m.number == member.number; });
  }
  return gone;
}

std::uint64_t LogStack::track_count() const {
  std::uint64_t tracks = 0;
  for (const LogMember& member : members_) {
    if (!member.draining) tracks += array_->find(member.number)->superblock.place_count();
  }
  return tracks;
}

bool LogStack::draining() const {
  return std::ranges::any_of(members_, [](const LogMember& member) { return member.draining; });
}

std::string LogStack::id_bytes() const {
  CHECK(id_.has_value());
  return {reinterpret_cast<const char*>(id_->data()), id_->size()};
}

std::string LogStack::path_of(std::uint8_t number) const {
  const auto member = std::ranges::find(members_, number, &LogMember::number);
  return member == members_.end() ? "log disk " + std::to_string(number) : member->path;
}

std::string LogStack::paths() const {
  std::string out;
  for (const LogMember& member : members_) out += (out.empty() ? "" : ", ") + member.path;
  return out;
}

}  // namespace mariner::node
