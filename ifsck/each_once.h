// A list that is a set.
#pragma once

#include <algorithm>
#include <vector>

namespace mariner::ifsck {

// Ascending from then on, and each once.
template <typename T>
void sort_each_once(std::vector<T>& all) {
  std::ranges::sort(all);
  const auto repeated = std::ranges::unique(all);
  all.erase(repeated.begin(), repeated.end());
}

}  // namespace mariner::ifsck
