// The node's log, put together: disk, ring, writer, reader and initialiser, opened and recovered.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "logging/file_disk.h"
#include "logging/io_ring.h"
#include "logging/log_reader.h"
#include "logging/log_writer.h"
#include "logging/recovery.h"
#include "logging/track_initialiser.h"
#include "logging/track_recycler.h"
#include "logging/track_scrubber.h"
#include "proto/executor.h"
#include "proto/histogram.h"
#include "server/volume/reclaimer.h"
#include "server/volume/volume.h"

namespace mariner::node {

struct LogSettings {
  std::string path;              // a file, created when it is missing, or a block device
  std::uint64_t size_bytes = 0;  // of a file that is created
  std::uint64_t track_bytes = 0;
  // What may wait for the images, of which all may have to be logged again as before-images: room
  // for that is kept in reserve, as far as the log is large enough.
  std::uint64_t lag_bytes = 0;
};

class LogStack {
 public:
  // Opens or formats the log and visits every record in it. Blocking; before the event loop runs.
  static Result<std::unique_ptr<LogStack>> open(const LogSettings& settings, Executor& executor,
                                                logging::IoRing& ring,
                                                const logging::RecordVisitor& visit);
  ~LogStack();

  void start() { initialiser_->start(); }
  void stop();
  [[nodiscard]] bool idle() const;

  // Verifies old tracks from now on; 0: never.
  using ScrubReporter =
      UniqueFunction<void(const std::string& disk, const logging::TrackDamage& damage)>;
  void start_scrubbing(Executor& executor, std::uint64_t bytes_per_second, ScrubReporter report);
  // Null before start_scrubbing().
  [[nodiscard]] const logging::TrackScrubber* scrubber() const { return scrubber_.get(); }

  [[nodiscard]] volume::LogParts parts() { return {*disk_, superblock_.log, *writer_, *reader_}; }
  [[nodiscard]] const logging::LogWriter& writer() const { return *writer_; }
  [[nodiscard]] logging::LogWriter& writer() { return *writer_; }
  [[nodiscard]] std::uint32_t reserve_tracks() const { return reserve_tracks_; }
  [[nodiscard]] volume::Reclaimer::Parts reclaimer_parts(volume::Worker& worker,
                                                         Executor& executor) {
    return {*disk_, superblock_, recovered_->tracks, *writer_, *recycler_, worker, executor};
  }
  [[nodiscard]] const logging::Recovered& recovered() const { return *recovered_; }
  [[nodiscard]] const logging::Superblock& superblock() const { return superblock_; }
  [[nodiscard]] const DurationHistogram& commit_durations() const { return commit_durations_; }
  [[nodiscard]] const SizeHistogram& batch_bytes() const { return batch_bytes_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  LogStack() = default;

  std::string path_;
  std::unique_ptr<logging::FileDisk> disk_;
  logging::Superblock superblock_;
  std::optional<logging::Recovered> recovered_;
  std::unique_ptr<logging::LogWriter> writer_;
  std::unique_ptr<logging::LogReader> reader_;
  std::unique_ptr<logging::TrackInitialiser> initialiser_;
  std::unique_ptr<logging::TrackRecycler> recycler_;
  std::unique_ptr<logging::TrackScrubber> scrubber_;
  std::uint32_t reserve_tracks_ = 0;
  DurationHistogram commit_durations_;
  SizeHistogram batch_bytes_;
};

}  // namespace mariner::node
