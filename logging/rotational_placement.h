// Placement for a rotating disk: each batch where the head is about to be.
//
// A completion tells which sector the head has just left, and when. From then on the disk turns at
// a speed that is known well enough for a while, so the sector under the head is known too
// (formula 4.1 of the dissertation). A batch goes to the first free gap that the head reaches with
// time enough for the command to get through the controller (`look_ahead_sectors`). A batch never
// wraps around the track's end. Several batches share a track, with holes between them, until the
// fragmentation metric (formula 4.2) says that the next track is the better place.
//
// The position is lost when a track is started that is not the next one on the disk, and after a
// long silence it is no longer exact: a recalibration read measures it again.
#pragma once

#include <vector>

#include "logging/placement.h"

namespace mariner::logging {

class RotationalPlacement final : public Placement {
 public:
  struct Options {
    Time rotation{0};  // of one revolution; required
    // From the dispatch of a command to the moment when the drive begins to look for its sector.
    Time command_delay{0};
    // From where the head is at that moment to the first sector that it can still reach in this
    // revolution: settling, and what the prediction may be wrong by. 22 on the paper's drive; too
    // few cost a revolution, too many only their own time.
    std::uint32_t look_ahead_sectors = 22;
    // How much later the sector of the same number comes by on the next track. Drives are laid out
    // so that this is just enough to get there.
    Time track_skew{std::chrono::microseconds(1200)};
    double t_switch = 12;                        // of formula 4.2
    Time t_idle{std::chrono::milliseconds(50)};  // 0: never recalibrate
  };

  explicit RotationalPlacement(const Options& options);

  void start_track(SectorRange track, std::span<const SectorRange> used, Time now) override;
  [[nodiscard]] std::optional<Place> place(std::uint32_t sectors, Time now) const override;
  [[nodiscard]] std::uint32_t room() const override;
  void dispatched(SectorRange range, Time now) override;
  void completed(SectorRange range, Time now) override;
  [[nodiscard]] bool wants_next_track() const override;
  [[nodiscard]] bool moves_to_tracks() const override { return true; }
  [[nodiscard]] std::optional<Time> recalibration_due() const override;
  [[nodiscard]] std::optional<std::uint64_t> recalibration_sector(Time now) const override;

  // What formula 4.2 is made of.
  [[nodiscard]] double fragmentation() const;  // infinite when the track is full
  [[nodiscard]] double utilization() const;    // used part of the track, 0 to 1

 private:
  // Sectors [begin, end), counted from the track's first.
  struct Extent {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  };
  // The first sector that a command can still reach, counted from the track's first, and when the
  // head gets there.
  struct Reach {
    std::uint32_t offset = 0;
    Time at{0};
  };
  struct InFlight {
    SectorRange range;
    Time done{0};  // as predicted
  };

  template <typename Visit>
  void each_gap(Visit visit) const;
  [[nodiscard]] Extent extent_of(SectorRange range) const;
  void occupy(SectorRange range);
  [[nodiscard]] Reach reach(Time now) const;
  [[nodiscard]] Time time_of(std::uint64_t sectors) const;  // that the head takes to pass them
  [[nodiscard]] Time end_of(Extent extent, Time now) const;

  const Options options_;
  SectorRange track_;
  std::vector<Extent>
      used_;  // ascending, no two touch: at most half as many as the track's sectors
  std::uint32_t used_sectors_ = 0;
  std::uint32_t writes_ = 0;           // ServicedReqNum of formula 4.2
  std::optional<Time> index_;          // a time at which the track's beginning was under the head
  bool switching_ = false;             // the head is not known to be on this track yet
  Time last_access_{0};                // t_idle counts from here
  std::optional<InFlight> in_flight_;  // the batch dispatched last
};

}  // namespace mariner::logging
