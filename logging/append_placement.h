// Placement for files, virtual and solid-state disks: each batch right behind the one before.
//
// The time that a write takes is not modelled but learnt: a moving average of the last ones. It
// only serves to choose between disks.
#pragma once

#include "logging/placement.h"

namespace mariner::logging {

class AppendPlacement final : public Placement {
 public:
  struct Options {
    Time write_time{std::chrono::microseconds(100)};  // until the first one has been measured
  };

  explicit AppendPlacement(const Options& options) : write_time_(options.write_time) {}

  // Continues behind the last used sector: a hole before it is never filled.
  void start_track(SectorRange track, std::span<const SectorRange> used, Time now) override;
  [[nodiscard]] std::optional<Place> place(std::uint32_t sectors, Time now) const override;
  [[nodiscard]] std::uint32_t room() const override;
  void dispatched(SectorRange range, Time now) override;
  void completed(SectorRange range, Time now) override;
  // Only when it is full: on these disks going on costs nothing.
  [[nodiscard]] bool wants_next_track() const override { return room() == 0; }
  [[nodiscard]] bool moves_to_tracks() const override { return false; }
  [[nodiscard]] std::optional<Time> recalibration_due() const override { return std::nullopt; }
  [[nodiscard]] std::optional<std::uint64_t> recalibration_sector(Time /*now*/) const override {
    return std::nullopt;
  }

 private:
  // A write counts for at most so many usual ones, or so much.
  static constexpr int kOutlier = 4;
  static constexpr Time kOutlierMin = std::chrono::milliseconds(1);

  SectorRange track_;
  std::uint64_t next_ = 0;  // the first sector behind everything used
  Time write_time_;         // of one batch, as a moving average
  SectorRange last_;        // the batch dispatched last
  Time last_begun_{0};      // when the disk began with it, as far as one can tell
  bool in_flight_ = false;  // whether it has not completed yet
};

}  // namespace mariner::logging
