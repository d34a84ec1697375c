#include "tests/powerdisk/power_disk.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <sstream>
#include <thread>

#include "proto/check.h"

namespace mariner::powerdisk {

PowerDisk::Running PowerDisk::enter() {
  // Looked at before locking too: a stream of readers would keep the cut from the lock.
  if (!power_.load()) return std::nullopt;
  std::shared_lock lock(gate_);
  if (!power_.load()) return std::nullopt;
  return lock;
}

std::shared_ptr<PowerFile> PowerDisk::attach(int fd, const std::string& name) {
  struct stat st {};
  CHECK(::fstat(fd, &st) == 0);
  const std::lock_guard lock(mutex_);
  auto& file = files_[st.st_ino];
  if (file == nullptr) {
    file = std::make_shared<PowerFile>(fd, name);
  } else {
    ::close(fd);
  }
  return file;
}

void PowerDisk::detach(const std::shared_ptr<PowerFile>& file) {
  constexpr long kHandleAndTable = 2;
  const std::lock_guard lock(mutex_);
  if (file.use_count() > kHandleAndTable || !file->clean()) return;
  std::erase_if(files_, [&](const auto& entry) { return entry.second == file; });
}

std::shared_ptr<PowerFile> PowerDisk::find(std::uint64_t inode) {
  const std::lock_guard lock(mutex_);
  const auto it = files_.find(inode);
  return it == files_.end() ? nullptr : it->second;
}

void PowerDisk::wait_for_flush() const {
  if (options_.flush_delay_us == 0) return;
  std::this_thread::sleep_for(std::chrono::microseconds(options_.flush_delay_us));
}

bool PowerDisk::lied_about(const PowerFile& file) {
  const std::lock_guard lock(mutex_);
  return !lie_.empty() && file.name().find(lie_) != std::string::npos;
}

void PowerDisk::destage_if_full(PowerFile& file) {
  // Each file has an equal share of the cache, which is simple and bounded.
  std::size_t files = 0;
  {
    const std::lock_guard lock(mutex_);
    files = files_.size();
  }
  if (file.unflushed_pages() * std::max<std::size_t>(files, 1) <= options_.cache_pages_max) return;
  if (lied_about(file)) return;
  ++destaged_files_;
  file.flush();
}

ssize_t PowerDisk::write(PowerFile& file, std::uint64_t offset, std::span<const std::byte> bytes,
                         bool durable) {
  WriteId id;
  {
    const Running running = enter();
    if (!running) return -EIO;
    destage_if_full(file);
    if (const int error = file.write(offset, bytes, write_ids_, &id); error != 0) return error;
  }
  const auto length = static_cast<ssize_t>(bytes.size());
  ++(durable ? durable_writes_ : volatile_writes_);
  if (!durable) return length;
  if (lied_about(file)) {
    ++lies_;
    return length;
  }
  wait_for_flush();
  const Running running = enter();
  if (!running) return -EIO;
  const int error = file.flush_write({offset, bytes.size()}, id);
  return error != 0 ? error : length;
}

int PowerDisk::zero(PowerFile& file, ByteRange range, bool grow) {
  const Running running = enter();
  if (!running) return -EIO;
  ++volatile_writes_;
  destage_if_full(file);
  return file.write_zeros(range, grow, write_ids_);
}

int PowerDisk::flush(PowerFile& file) {
  ++flushes_;
  if (lied_about(file)) {
    ++lies_;
    return enter() ? 0 : -EIO;
  }
  wait_for_flush();
  const Running running = enter();
  return running ? file.flush() : -EIO;
}

void PowerDisk::cut(const Fates& fates) {
  power_.store(false);
  const std::unique_lock alone(gate_);
  const std::lock_guard lock(mutex_);
  for (const auto& [inode, file] : files_) {
    pages_at_cut_ += file->unflushed_pages();
    survived_sectors_ += file->cut(fates);
  }
}

void PowerDisk::lie_about(std::string_view name) {
  const std::lock_guard lock(mutex_);
  lie_ = name;
  if (lie_.empty()) return;
  for (const auto& [inode, file] : files_) {
    if (file->name().find(lie_) != std::string::npos) file->flush();
  }
}

std::string PowerDisk::statistics() {
  std::uint64_t unflushed = 0;
  std::size_t files = 0;
  {
    const std::lock_guard lock(mutex_);
    files = files_.size();
    for (const auto& [inode, file] : files_) unflushed += file->unflushed_pages();
  }
  std::ostringstream out;
  out << "power " << (power_.load() ? "on" : "off") << "\nfiles " << files << "\nflushes "
      << flushes_ << "\ndurable_writes " << durable_writes_ << "\nvolatile_writes "
      << volatile_writes_ << "\nlies " << lies_ << "\ndestaged_files " << destaged_files_
      << "\nunflushed_pages " << unflushed << "\npages_at_cut " << pages_at_cut_
      << "\nsectors_survived_cut " << survived_sectors_ << '\n';
  return out.str();
}

}  // namespace mariner::powerdisk
