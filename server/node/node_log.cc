// The node's log and index: opened, recovered, and their disks changed. See node.h.
#include <algorithm>
#include <filesystem>
#include <utility>

#include "server/node/node.h"

namespace mariner::node {
namespace {

constexpr auto kProgress = std::chrono::seconds(2);

std::optional<logging::DurableWay> durable_way(LogDurability durability) {
  switch (durability) {
    case LogDurability::kFua: return logging::DurableWay::kFua;
    case LogDurability::kFlush: return logging::DurableWay::kFlush;
    case LogDurability::kAuto: break;
  }
  return std::nullopt;
}

}  // namespace

Result<void> Node::open_log() {
  LogSettings settings;
  settings.paths = config_.log.disks;
  settings.size_bytes = config_.log.max_size.bytes / config_.log.disks.size();
  settings.track_bytes = config_.log.track_size.bytes;
  settings.t_wait = config_.log.t_wait;
  settings.polls = config_.log.polling;
  settings.lock_wait = kLockWait;
  settings.durable_way = durable_way(config_.log.durability);
  settings.lag_bytes = config_.storage.lag_max.bytes;
  const Result<std::vector<meta::LogDisk>> members = store_->log_disks();
  if (!members) return members.error();
  for (const meta::LogDisk& disk : *members) {
    if (std::ranges::find(config_.log.lost, disk.path()) != config_.log.lost.end()) {
      log_.error("a log disk was declared lost: what only it held is gone",
                 {{"disk", disk.path()}});
      if (Result<void> r = store_->remove_log_disk(disk.number()); !r) return r;
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
  progress_told_ = loop_.monotonic_time();
  Result<std::unique_ptr<LogStack>> stack = LogStack::open(
      settings, loop_, *ring_,
      [&](const std::string& id) -> Result<LogStack::Known> {
        const Result<std::uint64_t> given_up = store_->given_up(id);
        if (!given_up) return given_up.error();
        if (Result<void> r = open_index(id, *given_up); !r) return r.error();
        index_stack_->set_used_through([&recovered_through] { return recovered_through; });
        return LogStack::Known{*given_up, index_stack_->store().last_number()};
      },
      [&](const logging::Record& record, const logging::LogLocation& location) {
        recovered_through = record.ordinal - 1;  // a checkpoint may come while this one is taken
        volumes_->record(record, location);
        tell_progress(++records);
      });
  if (!stack) {
    if (index_stack_ != nullptr) index_stack_->set_used_through(nullptr);
    return stack.error();
  }
  log_stack_ = std::move(*stack);
  index_stack_->set_used_through([this] { return log_stack_->writer().ordinal_frontier() - 1; });
  index_stack_->start_repairs(log_stack_->array(), *worker_);
  for (const LogMember& member : log_stack_->members()) {
    log_.info("log disk", {{"path", member.path}, {"durability", to_string(member.durability)}});
  }
  log_stack_->writer().set_disk_observer([this](const logging::LogWriter::DiskReport& report) {
    const std::string path = log_stack_->path_of(report.disk);
    switch (report.state) {
      case logging::LogWriter::DiskState::kGood:
        return log_.info("a log disk answers again", {{"disk", path}});
      case logging::LogWriter::DiskState::kHanging:
        return log_.error("a log disk does not answer: its writes go to another one",
                          {{"disk", path}});
      case logging::LogWriter::DiskState::kFailed:
        return log_.error("a log disk has failed: its writes go to another one, if there is one",
                          {{"disk", path}, {"error", to_string(report.error)}});
    }
  });
  return remember_log_disks();
}

// Of a start that takes long.
void Node::tell_progress(std::uint64_t records) {
  constexpr std::uint64_t kBetweenLooks = 16'384;  // at the clock
  if (records % kBetweenLooks != 0) return;
  const auto now = loop_.monotonic_time();
  if (now - progress_told_ < kProgress) return;
  progress_told_ = now;
  log_.info("recovering the log", {{"records", records}});
  if (progress_) progress_(records);
}

// Of the log of this identity, in the folder of the node's state unless it is said where.
Result<void> Node::open_index(const std::string& log, std::uint64_t given_up) {
  IndexStack::Settings settings;
  settings.path =
      config_.index.file.empty() ? config_.server.state_dir + "/index" : config_.index.file;
  settings.log = log;
  settings.memory_bytes = config_.index.memory.bytes;
  settings.replay_max = static_cast<std::uint64_t>(config_.index.replay_max);
  settings.durable_way = durable_way(config_.log.durability);
  settings.log_bytes = config_.log.max_size.bytes;
  settings.lock_wait = kLockWait;
  Result<void> opened;
  for (int tries = 0; tries < 2; ++tries) {  // the second time with a new file
    index_stack_.reset();
    Result<std::unique_ptr<IndexStack>> stack =
        IndexStack::open(settings, {loop_, *ring_, *store_, log_});
    if (!stack) return stack.error();
    index_stack_ = std::move(*stack);
    opened = volumes_->open_indexes(*index_stack_, given_up);
    if (opened || opened.error().code != ErrorCode::kCorrupt) break;
  }
  return opened;
}

Result<void> Node::remember_log_disks() {
  for (const LogMember& member : log_stack_->members()) {
    meta::LogDisk disk;
    disk.set_number(member.number);
    disk.set_path(member.path);
    disk.set_draining(member.draining);
    if (Result<void> r = store_->put_log_disk(disk); !r) return r;
  }
  return {};
}

// What is new comes in, what is gone is drained.
void Node::change_log_disks(const std::vector<std::string>& paths) {
  const std::vector<LogMember> before = log_stack_->members();
  for (const std::string& path : paths) {
    if (std::ranges::find(before, path, &LogMember::path) != before.end()) continue;
    const Result<LogMember> added = log_stack_->add(path);
    if (!added) {
      log_.error("a log disk cannot be added",
                 {{"disk", path}, {"error", to_string(added.error())}});
      continue;
    }
    log_.info("a log disk was added", {{"disk", path}, {"number", added->number}});
  }
  for (const LogMember& member : before) {
    if (member.draining || std::ranges::find(paths, member.path) != paths.end()) continue;
    if (Result<void> r = log_stack_->drain(member.path); !r) {
      log_.error("a log disk cannot be taken out",
                 {{"disk", member.path}, {"error", to_string(r.error())}});
      continue;
    }
    log_.info("a log disk takes no more records; it is needed until what it holds is given up",
              {{"disk", member.path}});
  }
  if (Result<void> r = remember_log_disks(); !r) {
    log_.error("the disks of the log cannot be remembered", {{"error", to_string(r.error())}});
  }
  config_.log.disks = paths;
}

void Node::retire_log_disks() {
  for (const LogMember& member : log_stack_->retire()) {
    if (Result<void> r = store_->remove_log_disk(member.number); !r) {
      log_.error("the disks of the log cannot be remembered", {{"error", to_string(r.error())}});
    }
    log_.info("a log disk holds nothing any more and was let go", {{"disk", member.path}});
  }
}

}  // namespace mariner::node
