#include "server/node/node_log.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "server/node/processors.h"

namespace mariner::node {
namespace {

constexpr auto kProgress = std::chrono::seconds(2);

// Who looks keeps a lone processor from what is looked for.
bool polls(bool polling) { return polling && usable_processors() > 1; }

std::optional<logging::DurableWay> durable_way(LogDurability durability) {
  switch (durability) {
    case LogDurability::kFua: return logging::DurableWay::kFua;
    case LogDurability::kFlush: return logging::DurableWay::kFlush;
    case LogDurability::kAuto: break;
  }
  return std::nullopt;
}

}  // namespace

NodeLog::NodeLog(const Config& config, Parts parts, Progress progress)
    : log_config_(config.log),
      index_config_(config.index),
      state_dir_(config.server.state_dir),
      lag_bytes_(config.storage.lag_max.bytes),
      parts_(parts),
      progress_(std::move(progress)) {}

NodeLog::~NodeLog() = default;

Result<std::unique_ptr<NodeLog>> NodeLog::open(const Config& config, Parts parts,
                                               Progress progress) {
  std::unique_ptr<NodeLog> log(new NodeLog(config, parts, std::move(progress)));
  if (Result<void> r = log->open(); !r) return r.error();
  return log;
}

void NodeLog::set_polling(bool polling) { stack_->set_polls(polls(polling)); }

Result<void> NodeLog::open() {
  LogSettings settings;
  settings.paths = log_config_.disks;
  settings.size_bytes = log_config_.max_size.bytes / log_config_.disks.size();
  settings.track_bytes = log_config_.track_size.bytes;
  settings.t_wait = log_config_.t_wait;
  settings.polls = polls(log_config_.polling);
  settings.lock_wait = kLockWait;
  settings.durable_way = durable_way(log_config_.durability);
  settings.lag_bytes = lag_bytes_;
  const Result<std::vector<meta::LogDisk>> members = parts_.store.log_disks();
  if (!members) return members.error();
  for (const meta::LogDisk& disk : *members) {
    if (std::ranges::find(log_config_.lost, disk.path()) != log_config_.lost.end()) {
      parts_.log.error("a log disk was declared lost: what only it held is gone",
                       {{"disk", disk.path()}});
      if (Result<void> r = parts_.store.remove_log_disk(disk.number()); !r) return r;
      continue;
    }
    settings.members.push_back(
        {static_cast<std::uint8_t>(disk.number()), disk.path(), disk.draining(), {}});
  }
  for (const std::string& path : settings.paths) {
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::absolute(path).parent_path(), ignored);
  }
  std::uint64_t recovered_through = 0;
  std::uint64_t records = 0;
  progress_told_ = parts_.loop.monotonic_time();
  Result<std::unique_ptr<LogStack>> stack = LogStack::open(
      settings, parts_.loop, parts_.ring,
      [&](const std::string& id) -> Result<LogStack::Known> {
        const Result<std::uint64_t> given_up = parts_.store.given_up(id);
        if (!given_up) return given_up.error();
        if (Result<void> r = open_index(id, *given_up); !r) return r.error();
        indexes_->set_used_through([&recovered_through] { return recovered_through; });
        const Result<std::vector<std::uint64_t>> withdrawn = parts_.store.withdrawn(id);
        if (!withdrawn) return withdrawn.error();
        return LogStack::Known{*given_up, indexes_->store().last_number(), *withdrawn};
      },
      [&](const logging::Record& record, const logging::LogLocation& location) {
        // A checkpoint may come while this one is taken.
        recovered_through = std::min(record.ordinal, parts_.recovered.held_from()) - 1;
        parts_.recovered.record(record, location);
        tell_progress(++records);
      });
  if (!stack) {
    if (indexes_ != nullptr) indexes_->set_used_through(nullptr);
    return stack.error();
  }
  stack_ = std::move(*stack);
  report_damage();
  if (Result<void> r = withdraw_taken_back(); !r) return r;
  indexes_->set_used_through([this] { return stack_->writer().ordinal_frontier() - 1; });
  indexes_->start_repairs(stack_->array(), parts_.worker);
  for (const LogMember& member : stack_->members()) {
    parts_.log.info("log disk",
                    {{"path", member.path}, {"durability", to_string(member.durability)}});
  }
  stack_->writer().set_disk_observer([this](const logging::LogWriter::DiskReport& report) {
    const std::string path = stack_->path_of(report.disk);
    switch (report.state) {
      case logging::LogWriter::DiskState::kGood:
        return parts_.log.info("a log disk answers again", {{"disk", path}});
      case logging::LogWriter::DiskState::kHanging:
        return parts_.log.error("a log disk does not answer: its writes go to another one",
                                {{"disk", path}});
      case logging::LogWriter::DiskState::kFailed:
        return parts_.log.error(
            "a log disk has failed: its writes go to another one, if there is one",
            {{"disk", path}, {"error", to_string(report.error)}});
    }
  });
  return remember_disks();
}

void NodeLog::report_damage() {
  for (const logging::LogDamage& damage : stack_->recovered().damage) {
    parts_.log.error("the log is damaged: history is missing",
                     {{"disk", stack_->path_of(damage.disk)},
                      {"track", damage.track},
                      {"first_batch", damage.first_batch},
                      {"last_batch", damage.last_batch},
                      {"what", damage.what}});
  }
}

// From now on nobody finds them, whoever reads the log.
Result<void> NodeLog::withdraw_taken_back() {
  const std::vector<std::uint64_t> ordinals = parts_.recovered.taken_back();
  if (ordinals.empty()) return {};
  parts_.log.info("writes that were acknowledged to nobody are taken back",
                  {{"records", ordinals.size()}});
  logging::Withdrawn withdrawn = stack_->writer().withdrawn();
  for (const std::uint64_t ordinal : ordinals) withdrawn.add(ordinal);
  if (Result<void> r = parts_.store.add_withdrawn(stack_->id_bytes(), ordinals); !r) return r;
  stack_->writer().set_withdrawn(std::move(withdrawn));
  return {};
}

// Of a start that takes long.
void NodeLog::tell_progress(std::uint64_t records) {
  constexpr std::uint64_t kBetweenLooks = 16'384;  // at the clock
  if (records % kBetweenLooks != 0) return;
  const auto now = parts_.loop.monotonic_time();
  if (now - progress_told_ < kProgress) return;
  progress_told_ = now;
  parts_.log.info("recovering the log", {{"records", records}});
  if (progress_) progress_(records);
}

// Of the log of this identity, in the folder of the node's state unless it is said where.
Result<void> NodeLog::open_index(const std::string& log, std::uint64_t given_up) {
  IndexStack::Settings settings;
  settings.path = index_config_.file.empty() ? state_dir_ + "/index" : index_config_.file;
  settings.log = log;
  settings.memory_bytes = index_config_.memory.bytes;
  settings.replay_max = static_cast<std::uint64_t>(index_config_.replay_max);
  settings.durable_way = durable_way(log_config_.durability);
  settings.log_bytes = log_config_.max_size.bytes;
  settings.lock_wait = kLockWait;
  Result<void> opened;
  for (int tries = 0; tries < 2; ++tries) {  // the second time with a new file
    indexes_.reset();
    Result<std::unique_ptr<IndexStack>> stack =
        IndexStack::open(settings, {parts_.loop, parts_.ring, parts_.store, parts_.log});
    if (!stack) return stack.error();
    indexes_ = std::move(*stack);
    opened = parts_.recovered.open_indexes(*indexes_, given_up);
    if (opened || opened.error().code != ErrorCode::kCorrupt) break;
  }
  return opened;
}

Result<void> NodeLog::remember_disks() {
  for (const LogMember& member : stack_->members()) {
    meta::LogDisk disk;
    disk.set_number(member.number);
    disk.set_path(member.path);
    disk.set_draining(member.draining);
    if (Result<void> r = parts_.store.put_log_disk(disk); !r) return r;
  }
  return {};
}

// What is new comes in, what is gone is drained.
void NodeLog::change_disks(const std::vector<std::string>& paths) {
  const std::vector<LogMember> before = stack_->members();
  for (const std::string& path : paths) {
    if (std::ranges::find(before, path, &LogMember::path) != before.end()) continue;
    const Result<LogMember> added = stack_->add(path);
    if (!added) {
      parts_.log.error("a log disk cannot be added",
                       {{"disk", path}, {"error", to_string(added.error())}});
      continue;
    }
    parts_.log.info("a log disk was added", {{"disk", path}, {"number", added->number}});
  }
  for (const LogMember& member : before) {
    if (member.draining || std::ranges::find(paths, member.path) != paths.end()) continue;
    if (Result<void> r = stack_->drain(member.path); !r) {
      parts_.log.error("a log disk cannot be taken out",
                       {{"disk", member.path}, {"error", to_string(r.error())}});
      continue;
    }
    parts_.log.info(
        "a log disk takes no more records; it is needed until what it holds is given up",
        {{"disk", member.path}});
  }
  if (Result<void> r = remember_disks(); !r) {
    parts_.log.error("the disks of the log cannot be remembered",
                     {{"error", to_string(r.error())}});
  }
  log_config_.disks = paths;
}

void NodeLog::retire_disks() {
  for (const LogMember& member : stack_->retire()) {
    if (Result<void> r = parts_.store.remove_log_disk(member.number); !r) {
      parts_.log.error("the disks of the log cannot be remembered",
                       {{"error", to_string(r.error())}});
    }
    parts_.log.info("a log disk holds nothing any more and was let go", {{"disk", member.path}});
  }
}

}  // namespace mariner::node
