// What the campaign knows of a log of several disks: every record that was ever appended and what
// its writer was told. It judges what a recovery finds, damage and all.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/logging/campaign_rig.h"

namespace mariner::logging::test {

class CampaignModel {
 public:
  enum class State {
    kUnknown,       // appended, no answer yet
    kAcknowledged,  // durable: it was said, or a recovery has shown it
    kFailed,        // an error, and no disk is left: may appear or not
    kWithdrawn,     // an error after it may have been given to a disk: must not appear
    kRefused,       // before it was given to a disk: must not appear
    kGivenUp,       // must not appear any more
    kForgotten,     // a recovery has not found it: must not appear any more
    kLost,          // damaged, and that was reported
  };
  // What a campaign counts.
  struct Counts {
    std::uint64_t acknowledged = 0;
    std::uint64_t visited = 0;
    std::uint64_t given_up = 0;
    std::uint64_t lost_reported = 0;  // in ranges that recovery has reported
    std::uint64_t lost_at_end = 0;    // with the last batches of a damaged disk: FORMAT.md 5
    std::uint64_t lost_at_front = 0;  // with the first batches of a damaged disk
    std::uint64_t replaced = 0;       // of a damaged disk, by an older batch of the same number
    std::uint64_t reads_refused = 0;  // kCorrupt for damaged bytes
    std::uint64_t other_copies = 0;   // of these, of which another copy is whole
    std::uint64_t damage_reports = 0;
    std::uint64_t reappeared = 0;  // that were not found before, in a damaged track
  };

  // A record with the payload payload_of(content).
  void appended(const Record& record, std::uint64_t content);
  void answered(std::uint64_t sequence, State state);
  void acknowledged(CampaignRig& rig, std::uint64_t sequence, const LogLocation& at);
  void given_up(const OldestRecords& oldest);
  // What a track holds is freed: nothing may be there that has not been given up.
  void freeing(const CampaignRig::Slot& slot, ByteRange track);

  // Compares with what a recovery found; what it found counts as acknowledged from here on.
  // Returns what is wrong, or nothing; that of freeing(), too.
  std::string judge(CampaignRig& rig);
  // Reads an acknowledged record, chosen by `choice`, as it stands.
  std::string read_any(CampaignRig& rig, std::uint64_t choice);

  // The records of which nobody heard when the last recovery came, in the order of their numbers.
  struct Repeat {
    Record record;
    std::uint64_t content = 0;
  };
  [[nodiscard]] const std::vector<Repeat>& unheard() const { return unheard_; }
  // Where a batch of an acknowledged record stands on the disk, by `choice`.
  [[nodiscard]] std::optional<ByteRange> any_batch(std::uint8_t disk, std::uint64_t choice) const;
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  struct Entry {
    Record record;
    std::uint64_t content = 0;
    State state = State::kUnknown;
    LogLocation at;
    BatchSpy::Batch batch;
    bool seen = false;
  };
  void place(CampaignRig& rig, Entry& entry, const LogLocation& at);
  std::string judge_visited(CampaignRig& rig, const Visited& visited);
  std::string judge_missing(CampaignRig& rig, Entry& entry);
  std::string verify(CampaignRig& rig, const Entry& entry, const LogLocation& at);

  std::map<std::uint64_t, Entry> entries_;  // by sequence number, which are unique in all volumes
  // Found on a damaged disk when nobody had been told of them, or found damaged.
  std::set<std::uint64_t> doubtful_;
  std::vector<Repeat> unheard_;
  std::string wrong_;
  Counts counts_;
};

}  // namespace mariner::logging::test
