#include "server/node/fair_share.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace mariner::node {

double fair_level(double room, std::span<const double> demands) {
  std::vector<double> rising(demands.begin(), demands.end());
  std::ranges::sort(rising);
  auto left = static_cast<double>(rising.size());
  for (const double demand : rising) {
    if (demand > room / left) return room / left;
    room -= demand;
    left -= 1;
  }
  return std::numeric_limits<double>::infinity();
}

}  // namespace mariner::node
