// A log, an index, a volume on them and, if asked for, a writable view on that: the production code
// over disks that lose power, with nothing else.
//
// crash() drops everything volatile and recovers from what the disks kept.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "index/index_file.h"
#include "logging/recovery.h"
#include "server/volume/reclaimer.h"
#include "server/volume/volume.h"
#include "tests/server/volume/delayed_history.h"
#include "tests/server/volume/inline_worker.h"
#include "tests/server/volume/kept_headway.h"
#include "tests/server/volume/stepped_executor.h"
#include "tests/server/volume/telling_disk.h"
#include "tests/support/faulty_disk.h"
#include "tests/support/index_answers.h"

namespace mariner::test {

class VolumeRig final : public volume::ReclaimerOwner {
 public:
  static constexpr VolumeId kVolume{7};
  static constexpr VolumeId kOverlay{8};

  // What storage and target ask about the past, in place of what is beside them.
  using Between = std::function<std::unique_ptr<volume::History>(Executor&, volume::History& past,
                                                                 std::uint64_t seed)>;

  struct Options {
    std::uint64_t seed = 1;
    std::uint64_t blocks = 16;
    std::uint64_t blocks_max = 16;  // that it may grow to; `blocks`, if that is more
    bool base_in_image = false;
    std::vector<std::byte> base;  // of an imported volume
    std::size_t log_disks = 1;
    std::chrono::nanoseconds log_delay_max{0};
    std::chrono::nanoseconds image_delay_max{0};
    std::chrono::nanoseconds index_delay_max{0};
    bool index_small = false;  // it commits all the time
    // Storage and target are far from the history; the seed is made from the one above.
    std::optional<DelayedHistory::Options> far_history;
    Between between;
    volume::Storage::Options storage;
    replication::WriteCoordinator::Limits limits;
  };

  explicit VolumeRig(Options options);
  ~VolumeRig() override;

  // Recovers the log and starts what it knows of.
  void start();
  // A writable view on the volume as of `at`, from now on across restarts.
  void add_overlay(SequenceNumber at);
  // The volume has more blocks from now on, also across restarts.
  void grow(std::uint64_t blocks);
  // Closes the volumes, waits until nothing is in flight, and destroys them.
  void stop();
  // The power goes, at once, and comes back. `loses_headway`: what was kept of that last is lost.
  void crash(bool loses_headway = false);

  [[nodiscard]] volume::Volume& volume() { return *volume_; }
  // Of the volume's index. Turns the executor.
  [[nodiscard]] IndexAnswers answers() { return answers_of(*volume_); }
  [[nodiscard]] IndexAnswers answers_of(volume::Volume& volume);
  [[nodiscard]] volume::Volume* overlay() { return overlay_.get(); }
  [[nodiscard]] SteppedExecutor& executor() { return executor_; }
  [[nodiscard]] ManualExecutor& manual() { return executor_.manual(); }
  [[nodiscard]] FaultyDisk& log_disk(std::size_t number = 0) { return *log_disks_[number]; }
  [[nodiscard]] InlineWorker& worker() { return worker_; }
  [[nodiscard]] FaultyDisk& image_disk() { return image_disk_; }
  [[nodiscard]] FaultyDisk& index_disk() { return index_disk_; }
  [[nodiscard]] index::Bosc& index_store() { return *index_store_; }
  // Commits what the index has, as a sweep would.
  void commit_index();
  [[nodiscard]] logging::LogWriter& writer() { return log_->writer(); }
  using Wish = volume::ReclaimerOwner::Wish;
  // Tries to give up the oldest track; moments from `keep(volume)` on stay, and what is wished for.
  // False while one is tried.
  bool reclaim(std::function<VersionTime(VolumeId)> keep, std::size_t tracks_max = 1,
               std::function<Wish(VolumeId)> wish = nullptr);
  [[nodiscard]] std::uint64_t tracks_freed() const { return tracks_freed_; }
  // What a node would remember durably: moments that were opened by time.
  void opened(VersionTime time) { floor_ = std::max(floor_, time); }
  // Blocks of the base that were overwritten in the image before they stood in the log.
  [[nodiscard]] std::uint64_t early_overwrites() const { return early_overwrites_; }
  [[nodiscard]] std::uint64_t apply_failures() const { return apply_failures_; }
  // Blocks that starts did not have to fetch again, because of the headway.
  [[nodiscard]] std::uint64_t resumed_blocks() const { return resumed_blocks_; }

 private:
  std::shared_ptr<volume::Reclaimable> find(VolumeId volume) override;
  VersionTime keep_from(VolumeId volume) override { return keep_(volume); }
  Wish to_keep(VolumeId volume) override { return wish_ ? wish_(volume) : Wish{}; }
  void store(std::vector<volume::VolumeRelease> releases, std::optional<std::uint64_t> ordinal,
             Done done) override;

  // What stands durably outside of the log about a volume.
  struct Kept {
    volume::Horizon horizon;
    std::map<std::uint64_t, volume::BaseMap::Page> pages;
  };

  void watch(ByteRange range);
  std::shared_ptr<volume::Volume> make(volume::VolumeOptions options,
                                       volume::VolumeHistory history);
  void make_volume(volume::VolumeHistory history);
  void make_overlay(volume::VolumeHistory history);
  void open_index();
  void find_unapplied(volume::VolumeHistory& history);
  void open_index_of(VolumeId volume);
  void learn(VolumeId volume);

  Options options_;
  SteppedExecutor executor_;
  InlineWorker worker_{executor_};
  std::vector<std::unique_ptr<FaultyDisk>> log_disks_;
  FaultyDisk image_disk_;
  FaultyDisk index_disk_;
  std::unique_ptr<index::Bosc> index_store_;
  std::map<VolumeId, std::shared_ptr<index::StoredIndex>> indexes_;
  std::uint64_t index_opened_ = 0;  // times
  std::uint64_t histories_ = 0;     // that were ever made
  std::unique_ptr<logging::LogArray> log_;
  std::uint64_t given_up_ = 0;  // the ordinal, as stored
  std::unique_ptr<volume::Reclaimer> reclaimer_;
  std::function<VersionTime(VolumeId)> keep_;
  std::function<Wish(VolumeId)> wish_;
  std::map<VolumeId, Kept> kept_;
  std::uint64_t tracks_freed_ = 0;
  bool powered_ = true;
  std::shared_ptr<volume::Volume> volume_;
  std::shared_ptr<volume::Volume> overlay_;
  std::optional<SequenceNumber> overlay_at_;
  std::uint64_t overlay_blocks_ = 0;
  Epoch epoch_{0};
  VersionTime floor_;
  SequenceNumber saved_frontier_;
  KeptHeadway headway_;
  KeptHeadway headway_before_;  // what it was before it was last kept
  std::uint64_t resumed_blocks_ = 0;
  std::uint64_t early_overwrites_ = 0;
  std::uint64_t apply_failures_ = 0;
};

}  // namespace mariner::test
