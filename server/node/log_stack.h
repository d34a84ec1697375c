// The node's log: its disks opened, or made, and recovered.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "logging/durability_probe.h"
#include "logging/file_disk.h"
#include "logging/io_ring.h"
#include "logging/log_array.h"
#include "logging/recovery.h"
#include "proto/executor.h"
#include "proto/histogram.h"
#include "proto/unique_function.h"
#include "server/node/patience.h"
#include "server/volume/volume.h"
#include "server/web/metrics.h"

namespace mariner::node {

// A disk of the log as the node remembers it.
struct LogMember {
  std::uint8_t number = 0;
  std::string path;
  bool draining = false;  // takes no new records
  logging::DurableChoice durability;
};

struct LogSettings {
  // Files, created when they are missing, or block devices.
  std::vector<std::string> paths;
  // What the log consisted of so far; of a new one, nothing.
  std::vector<LogMember> members;
  std::chrono::milliseconds lock_wait{0};  // for what a killed process has left under way
  std::uint64_t size_bytes = 0;            // of a file that is created
  std::uint64_t track_bytes = 0;
  std::chrono::nanoseconds t_wait{0};
  bool polls = false;  // as [log] polling
  // What may wait for the images, of which all may have to be logged again as before-images: room
  // for that is kept in reserve, as far as the log is large enough.
  std::uint64_t lag_bytes = 0;
  // How writes are made durable; without it the faster way, measured when the log is opened.
  std::optional<logging::DurableWay> durable_way{};
  // Disks that are formatted get slots, so that their tracks can be packed.
  bool slots = true;
};

class LogStack {
 public:
  // What others know of the log of this identity (LogId's bytes).
  struct Known {
    std::uint64_t given_up = 0;              // every record below this ordinal
    std::uint64_t used_through = 0;          // no record gets this ordinal or a lower one any more
    std::vector<std::uint64_t> withdrawn{};  // ordinals of records that are not there
  };
  using Ask = std::function<Result<Known>(const std::string& id_bytes)>;

  // Opens the members and the paths, formats what is new, asks once what is known, and visits every
  // record that has not been given up. A member that is not among the paths is drained.
  // kUnavailable when a member is missing. Blocking; before the event loop runs.
  static Result<std::unique_ptr<LogStack>> open(const LogSettings& settings, Executor& executor,
                                                logging::IoRing& ring, const Ask& ask,
                                                const logging::RecordVisitor& visit);
  ~LogStack();

  void start() { array_->start(); }
  void stop() { array_->stop(); }
  [[nodiscard]] bool idle() const { return array_->idle(); }

  // Adds a disk at run time. Blocking, shortly: a file is created and formatted.
  Result<LogMember> add(const std::string& path);
  // No more records go to the disk at `path`. kBusy for the last one.
  Result<void> drain(const std::string& path);
  // Lets go of drained disks that hold nothing any more; returns them.
  std::vector<LogMember> retire();

  [[nodiscard]] volume::LogParts parts() {
    return {array_->disks(), array_->writer(), array_->reader()};
  }
  [[nodiscard]] logging::LogArray& array() { return *array_; }
  [[nodiscard]] const logging::LogArray& array() const { return *array_; }
  [[nodiscard]] const logging::LogWriter& writer() const { return array_->writer(); }
  [[nodiscard]] logging::LogWriter& writer() { return array_->writer(); }
  [[nodiscard]] std::uint64_t given_up() const { return given_up_; }
  [[nodiscard]] const logging::Recovered& recovered() const { return recovered_; }
  // Of the disks that are written to.
  [[nodiscard]] std::uint64_t track_count() const;
  [[nodiscard]] std::string id_bytes() const;
  [[nodiscard]] const std::vector<LogMember>& members() const { return members_; }
  // A disk is being emptied.
  [[nodiscard]] bool draining() const;
  [[nodiscard]] const DurationHistogram& commit_durations() const { return commit_durations_; }
  // Told when a track has been begun, after its first batch: who looks for room once in a while
  // hears of it too late when much is written.
  void set_less_room(UniqueFunction<void()> less_room) {
    free_tracks_ = writer().free_tracks();
    less_room_ = std::move(less_room);
  }
  void set_polls(bool polls) { patience_.set_polls(polls); }
  // Whether the log writes, and when the event loop should look for the end of that.
  [[nodiscard]] Outlook outlook(std::chrono::nanoseconds now) {
    return patience_.outlook(now, !array_->writer().idle());
  }
  [[nodiscard]] const SizeHistogram& batch_bytes() const { return batch_bytes_; }
  [[nodiscard]] web::LogPayloadMetrics payloads() const {
    const logging::LogWriter::Payloads& of = writer().payloads();
    return {of.written, of.before_images, of.moved, of.kept, packed_bytes_};
  }
  // A pack of so many bytes was written.
  void count_packed(std::uint64_t bytes) { packed_bytes_ += bytes; }
  [[nodiscard]] std::string path_of(std::uint8_t number) const;
  // All of them, for messages.
  [[nodiscard]] std::string paths() const;

 private:
  struct Opened {
    LogMember member;
    std::shared_ptr<logging::FileDisk> disk;
    logging::Superblock superblock;
    std::shared_ptr<logging::SlottedDisk> slotted{};  // null: it has no slots

    [[nodiscard]] logging::Disk& tracks() const {
      return slotted ? static_cast<logging::Disk&>(*slotted) : *disk;
    }
  };

  LogStack(LogSettings settings, Executor& executor, logging::IoRing& ring)
      : settings_(std::move(settings)),
        executor_(executor),
        ring_(ring),
        patience_(settings_.polls) {}
  Result<std::optional<Opened>> open_existing(const std::string& path);
  Result<Opened> make_new(const std::string& path);
  Result<void> open_all(std::vector<Opened>& disks);
  [[nodiscard]] std::uint8_t free_number() const;
  void set_up(std::vector<Opened> disks, std::uint64_t used_through);
  void add_to_array(Opened disk, logging::RecoveredDisk recovered);

  LogSettings settings_;
  Executor& executor_;
  logging::IoRing& ring_;
  std::optional<logging::LogId> id_;
  std::vector<LogMember> members_;
  UniqueFunction<void()> less_room_;
  std::uint64_t free_tracks_ = 0;  // after the last batch
  logging::Recovered recovered_;
  std::uint64_t given_up_ = 0;
  std::unique_ptr<logging::LogArray> array_;
  Patience patience_;
  DurationHistogram commit_durations_;
  SizeHistogram batch_bytes_;
  std::uint64_t packed_bytes_ = 0;
};

}  // namespace mariner::node
