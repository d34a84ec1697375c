#include "tests/sim/simulated_log.h"

#include <algorithm>
#include <utility>

#include "logging/rotational_placement.h"
#include "proto/check.h"

namespace mariner::test {

using logging::LogArray;
using logging::LogDiskRef;
using logging::LogShape;
using logging::Placement;
using logging::Recovered;
using logging::RotationalPlacement;
using logging::SectorRange;
using logging::Superblock;
using logging::Zone;

// The log's own placement. What it adds is to look at each track when it is left.
class SimulatedLog::WatchedPlacement final : public Placement {
 public:
  explicit WatchedPlacement(const RotationalPlacement::Options& options) : inner_(options) {}

  [[nodiscard]] double left_utilization() const { return left_utilization_; }  // their sum
  [[nodiscard]] std::size_t left_tracks() const { return left_tracks_; }
  [[nodiscard]] double utilization() const { return inner_.utilization(); }

  void start_track(SectorRange track, std::span<const SectorRange> used, Time now) override {
    if (inner_.utilization() > 0) {
      left_utilization_ += inner_.utilization();
      ++left_tracks_;
    }
    inner_.start_track(track, used, now);
  }
  [[nodiscard]] std::optional<Place> place(std::uint32_t sectors, Time now) const override {
    return inner_.place(sectors, now);
  }
  [[nodiscard]] std::uint32_t room() const override { return inner_.room(); }
  void dispatched(SectorRange range, Time now) override { inner_.dispatched(range, now); }
  void completed(SectorRange range, Time now) override { inner_.completed(range, now); }
  [[nodiscard]] bool wants_next_track() const override { return inner_.wants_next_track(); }
  [[nodiscard]] bool moves_to_tracks() const override { return inner_.moves_to_tracks(); }
  [[nodiscard]] std::optional<Time> recalibration_due() const override {
    return inner_.recalibration_due();
  }
  [[nodiscard]] std::optional<std::uint64_t> recalibration_sector(Time now) const override {
    return inner_.recalibration_sector(now);
  }

 private:
  RotationalPlacement inner_;
  double left_utilization_ = 0;
  std::size_t left_tracks_ = 0;
};

SimulatedLog::SimulatedLog(Executor& executor, const Options& options)
    : executor_(executor), options_(options) {
  for (std::size_t i = 0; i < options.disks; ++i) {
    const auto drive = SimulatedDrive::deskstar(options.seed * 1000 + i);
    disks_.push_back({std::make_shared<SimulatedDrive>(executor, drive), drive});
    CHECK_MSG(logging::format_log_disk(*disks_[i].drive, shape_of(i)).has_value(),
              "the shape does not fit the simulated drive");
  }
}

SimulatedLog::~SimulatedLog() = default;

// In its zone, from the first track behind the reserved area on.
LogShape SimulatedLog::shape_of(std::size_t disk) const {
  const logging::Geometry& geometry = disks_[disk].options.geometry;
  const Zone& zone = geometry.zones()[options_.zone];
  const std::uint64_t reserved =
      logging::reserved_blocks_for(logging::list_blocks_for(zone.tracks)) *
      (kBlockBytes / SimulatedDrive::kSectorBytes);
  std::uint64_t skipped = 0;
  if (zone.first_sector < reserved) {
    skipped = (reserved - zone.first_sector + zone.sectors_per_track - 1) / zone.sectors_per_track;
  }
  return {.log = {},
          .disk = static_cast<std::uint8_t>(disk),
          .track_bytes = std::uint64_t{zone.sectors_per_track} * SimulatedDrive::kSectorBytes,
          .created_ns = 1,
          .sector_bytes = SimulatedDrive::kSectorBytes,
          .first_sector = zone.first_sector + skipped * zone.sectors_per_track,
          .tracks = options_.tracks == 0 ? zone.tracks - skipped : options_.tracks,
          .rotation = geometry.rotation()};
}

std::unique_ptr<SimulatedLog::WatchedPlacement> SimulatedLog::placement_of(const Disk& disk) const {
  return std::make_unique<WatchedPlacement>(
      RotationalPlacement::Options{.rotation = disk.options.geometry.rotation(),
                                   .command_delay = disk.options.controller_delay,
                                   .look_ahead_sectors = options_.look_ahead_sectors,
                                   .track_skew = disk.options.track_skew(),
                                   .t_switch = options_.t_switch,
                                   .t_idle = options_.t_idle});
}

Result<Recovered> SimulatedLog::open(const logging::RecordVisitor& visit) {
  CHECK(log_ == nullptr);
  std::vector<Superblock> superblocks;
  for (const Disk& disk : disks_) {
    Result<Superblock> superblock = logging::read_superblock(*disk.drive);
    if (!superblock) return superblock.error();
    superblocks.push_back(*superblock);
  }
  std::vector<LogDiskRef> refs;
  for (std::size_t i = 0; i < disks_.size(); ++i)
    refs.push_back({*disks_[i].drive, superblocks[i]});
  Result<Recovered> recovered = logging::recover_log(refs, 0, visit);
  if (!recovered) return recovered;
  log_ = std::make_unique<LogArray>(executor_, recovered->next_ordinal, options_.writer);
  for (std::size_t i = 0; i < disks_.size(); ++i) {
    std::unique_ptr<WatchedPlacement> placement = placement_of(disks_[i]);
    disks_[i].placement = placement.get();
    log_->add(disks_[i].drive, superblocks[i], recovered->disks[i], std::move(placement));
  }
  log_->writer().set_full_gate([this] {
    return std::ranges::any_of(log_->members(), [](const auto& m) { return !m->recycler->idle(); });
  });
  return recovered;
}

void SimulatedLog::close() {
  CHECK(idle());
  log_.reset();
}

bool SimulatedLog::idle() const { return log_ == nullptr || log_->idle(); }

void SimulatedLog::recycle(std::size_t disk) {
  const LogArray::Member& member = *log_->members()[disk];
  if (!member.recycler->idle()) return;
  if (member.log_disk->free_tracks() > member.superblock.track_count / 4) return;
  const std::uint64_t oldest = std::min(member.log_disk->current_allocation(),
                                        member.tracks.oldest() + logging::kListPageTracks);
  if (oldest <= member.tracks.oldest()) return;
  // A failure leaves the tracks as they are.
  member.recycler->release(oldest, [](const Result<void>&) {});
}

void SimulatedLog::cut_power() {
  for (const Disk& disk : disks_) disk.drive->cut_power();
}

void SimulatedLog::restore_power() {
  for (const Disk& disk : disks_) disk.drive->restore_power();
}

double SimulatedLog::utilization() const {
  double left = 0;
  double present = 0;
  std::size_t tracks = 0;
  for (const Disk& disk : disks_) {
    left += disk.placement->left_utilization();
    tracks += disk.placement->left_tracks();
    present += disk.placement->utilization();
  }
  return tracks > 0 ? left / static_cast<double>(tracks)
                    : present / static_cast<double>(disks_.size());
}

}  // namespace mariner::test
