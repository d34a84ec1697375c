#include "logging/batch_length.h"

namespace mariner::logging {

std::size_t batch_length(const Placement& placement, std::span<const std::uint32_t> request_sectors,
                         std::uint32_t overhead_sectors, Placement::Time now) {
  std::size_t best = 0;
  double best_rate = 0;
  std::uint32_t sectors = 0;
  for (std::size_t i = 0; i < request_sectors.size(); ++i) {
    sectors += request_sectors[i];
    const auto place = placement.place(sectors + overhead_sectors, now);
    if (!place) break;
    const double rate = sectors / static_cast<double>((place->done - now).count());
    if (rate < best_rate) continue;
    best = i + 1;
    best_rate = rate;
  }
  return best;
}

}  // namespace mariner::logging
