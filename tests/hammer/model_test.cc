#include "tests/hammer/model.h"

#include <gtest/gtest.h>

namespace mariner::hammer {
namespace {

Write acknowledged(std::uint64_t id, std::uint64_t first_cell, std::uint32_t cells) {
  return {.id = id, .first_cell = first_cell, .cells = cells, .outcome = Outcome::kAcknowledged};
}

TEST(Model, the_newest_write_in_effect_shows) {
  std::vector<Write> writes{acknowledged(1, 0, 16), acknowledged(2, 8, 8), acknowledged(3, 8, 8)};
  writes[2].outcome = Outcome::kAbsent;
  const State state = newest_state({0, 24}, writes);
  EXPECT_EQ(state.shown(7), &writes[0]);
  EXPECT_EQ(state.shown(8), &writes[1]);
  EXPECT_EQ(state.shown(16), nullptr);
}

TEST(Model, a_region_cuts_writes_at_its_edges) {
  const std::vector<Write> writes{acknowledged(1, 0, 100)};
  const State state = newest_state({40, 8}, writes);
  EXPECT_EQ(state.shown(40), &writes[0]);
  EXPECT_EQ(state.shown(47), &writes[0]);
}

TEST(Model, a_rollback_and_its_undo_are_moments_like_any_other) {
  const std::vector<Write> writes{acknowledged(1, 0, 8), acknowledged(2, 0, 8),
                                  acknowledged(3, 0, 8)};
  const std::vector<Settled> history{{1, &writes[0], 0},
                                     {2, &writes[1], 0},
                                     {3, nullptr, 1},  // back to 1
                                     {4, &writes[2], 0},
                                     {5, nullptr, 2}};  // undo: as at 2
  const auto shown = [&](std::uint64_t sequence) {
    return state_at({0, 8}, history, sequence).shown(0);
  };
  EXPECT_EQ(shown(0), nullptr);
  EXPECT_EQ(shown(1), &writes[0]);
  EXPECT_EQ(shown(2), &writes[1]);
  EXPECT_EQ(shown(3), &writes[0]);
  EXPECT_EQ(shown(4), &writes[2]);
  EXPECT_EQ(shown(5), &writes[1]);
}

}  // namespace
}  // namespace mariner::hammer
