// What each gets of something that is not enough for all: equal shares, and what one does not need
// of its own goes to the others (max-min fairness). So nobody gets less than another who asked for
// no more, and who asks for no more than an equal share gets it all.
#pragma once

#include <span>

namespace mariner::node {

// The level up to which each demand is met; infinite where there is enough for all. Demands may be
// infinite. Neither room nor demands are negative.
[[nodiscard]] double fair_level(double room, std::span<const double> demands);

}  // namespace mariner::node
