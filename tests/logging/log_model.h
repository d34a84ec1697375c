// What a crash test knows of a log: every record that was ever appended and what its writer was
// told. It judges what a recovery finds.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tests/logging/log_testing.h"

namespace mariner::logging::test {

// Blocks of the log disk.
struct BlockSpan {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
};

class LogModel {
 public:
  enum class State {
    kUnknown,       // appended, no answer yet
    kAcknowledged,  // durable: it was said, or a recovery has shown it
    kFailed,        // an error of the disk: may appear or not
    kRefused,       // kNoSpace before anything was written: must not appear
    kReleased,      // its track is being freed: may be there, and is whole then
    kGone,          // its track was freed: must not appear
  };

  // The number by which the model knows the record.
  std::size_t appended(const Record& record);
  void answered(std::size_t number, State state) { entries_[number].state = state; }
  void acknowledged(std::size_t number, const LogLocation& at);

  // The blocks are being freed, or have been: what was acknowledged there is no longer owed.
  void released(BlockSpan blocks, State state);

  // Compares with what a recovery found; what it found counts as acknowledged from here on, and
  // what it did not find is forgotten. Returns what is wrong, or nothing.
  std::string judge(LogRig& rig);

 private:
  struct Entry {
    Record record;
    State state = State::kUnknown;
    LogLocation at;
  };
  // What was appended of a volume, as a recovery is compared with it.
  struct Volume {
    std::vector<Entry*> entries;
    std::size_t next = 0;   // those before it have been found, or are known to be missing
    bool open_end = false;  // an unknown one is missing: only such may follow
  };
  void overtake(Volume& of, const Record& record) const;
  [[nodiscard]] std::string judge_back_pointers(const std::vector<Visited>& visited) const;

  std::vector<Entry> entries_;
  std::set<VolumeId> shortened_;  // whose oldest records were released
};

}  // namespace mariner::logging::test
