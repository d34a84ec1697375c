#include "logging/batch_length.h"

namespace mariner::logging {

std::size_t batch_length(const Placement& placement, std::span<const std::uint32_t> batch_sectors,
                         Placement::Time now) {
  std::size_t best = 0;
  double best_rate = 0;
  for (std::size_t i = 0; i < batch_sectors.size(); ++i) {
    const auto place = placement.place(batch_sectors[i], now);
    if (!place) break;
    const double rate = batch_sectors[i] / static_cast<double>((place->done - now).count());
    if (rate < best_rate) continue;
    best = i + 1;
    best_rate = rate;
  }
  return best;
}

}  // namespace mariner::logging
