#include "tests/bench/cleaner_bound.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace mariner::bench {
namespace {

constexpr int kHalvings = 200;

// Mean host writes between two writes of a block.
double mean_life(const HeatClass& blocks) { return blocks.blocks / blocks.writes; }

struct Choice {
  double room = 0;  // of the log that it takes beyond history
  double cost = 0;  // blocks appended again for a host write
};

// The least cost within the room, of choices that grow with `price` (of a block's room, in blocks
// appended for a host write): those at the two sides of the price at which all of it is taken,
// mixed.
template <typename ChoiceAt>
double least_cost(double room, ChoiceAt choice_at) {
  double low = 0, high = 1;  // the price: too low, so that too much is taken; and high enough
  if (choice_at(low).room <= room) return choice_at(low).cost;
  while (choice_at(high).room > room) {
    high *= 2;
    if (high > 1e12) return INFINITY;
  }
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (choice_at(middle).room > room ? low : high) = middle;
  }
  const Choice more = choice_at(low), less = choice_at(high);
  if (more.room - less.room < 1e-9) return less.cost;
  const double mixed = (room - less.room) / (more.room - less.room);
  return mixed * more.cost + (1 - mixed) * less.cost;
}

}  // namespace

// Versions that live for more than `limit` are dropped when the image holds them. By Little's law
// the current ones in the log are the rate of writes times their mean time there.
double amplification_of_oracle(std::span<const HeatClass> load, const CleanerRoom& room) {
  return 1 + least_cost(room.room, [&](double price) {
           const double limit = price == 0 ? INFINITY : 1 / price + room.lag;
           Choice all;
           for (const HeatClass& blocks : load) {
             const double life = mean_life(blocks);
             const double longer = std::exp(-limit / life);
             const double kept = longer == 0 ? life : life * (1 - longer) - limit * longer;
             all.room += blocks.writes * (kept + room.lag * longer);
             all.cost += blocks.writes * longer;
           }
           return all;
         });
}

// A class is in the log, or leaves it as soon as the image holds it, unless it is replaced before.
double amplification_without_tracks(std::span<const HeatClass> load, const CleanerRoom& room) {
  return 1 + least_cost(room.room, [&](double price) {
           Choice all;
           for (const HeatClass& blocks : load) {
             const double life = mean_life(blocks);
             const double longer = std::exp(-room.lag / life);
             const double dropped_room = life * (1 - longer);
             const bool is_dropped = longer + price * dropped_room < price * life;
             all.room += blocks.writes * (is_dropped ? dropped_room : life);
             all.cost += blocks.writes * (is_dropped ? longer : 0);
           }
           return all;
         });
}

// A version that stays takes room for the longer of x and its life, but not beyond the window and
// x: on average x + life * (1 - q) * exp(-x / life), q being exp(-window / life). It costs a block
// with probability exp(-x / life). At a price their weighted sum is least where that is price *
// life / (1 + price * life * (1 - q)).
double amplification_with_tracks(std::span<const HeatClass> load, const CleanerRoom& room) {
  return 1 + least_cost(room.room, [&](double price) {
           Choice all;
           for (const HeatClass& blocks : load) {
             const double life = mean_life(blocks);
             const double late = life * (1 - std::exp(-room.window / life));
             const double again = std::min(1.0, price * life / (1 + price * late));
             const double stays = again == 0 ? INFINITY : -life * std::log(again) + late * again;
             const bool is_dropped = again > 0 && 1 + price * room.lag < again + price * stays;
             all.room += blocks.writes * (is_dropped ? room.lag : stays);
             all.cost += blocks.writes * (is_dropped ? 1 : again);
           }
           return all;
         });
}

}  // namespace mariner::bench
