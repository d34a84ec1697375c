#include "logging/log_disks.h"

#include <string>
#include <utility>

#include "proto/check.h"

namespace mariner::logging {

void LogDisks::add(std::uint8_t number, Entry entry) {
  const std::lock_guard lock(mutex_);
  CHECK(entries_[number].disk == nullptr && entry.disk != nullptr);
  entries_[number] = std::move(entry);
}

void LogDisks::remove(std::uint8_t number) {
  Entry gone;  // closed after the lock
  const std::lock_guard lock(mutex_);
  gone = std::exchange(entries_[number], Entry{});
}

Result<LogDisks::Entry> LogDisks::find(std::uint8_t number) const {
  const std::lock_guard lock(mutex_);
  const Entry& entry = entries_[number];
  if (entry.disk == nullptr) {
    return Error{ErrorCode::kUnavailable,
                 "log disk " + std::to_string(number) + ", which holds this, is not there"};
  }
  return entry;
}

}  // namespace mariner::logging
