// The nearest of several words: what a misspelled key was meant to be.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace mariner {

// How many single characters must be inserted, removed, replaced or swapped with their neighbour
// to make `a` of `b` (optimal string alignment). Words longer than 64 characters are cut.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

// The word of `known` with the smallest distance from `word` (the first of several). Nothing if
// `known` is empty.
[[nodiscard]] std::optional<std::string> nearest(std::string_view word,
                                                 std::span<const std::string> known);

}  // namespace mariner
