// Looking at what a role wants done.
#pragma once

#include <cstddef>
#include <optional>
#include <type_traits>
#include <variant>
#include <vector>

namespace mariner::replication {

// The only action of a kind; nothing: there is none, or there are several.
template <typename T, typename Action>
std::optional<T> only(const std::vector<Action>& actions) {
  std::optional<T> found;
  for (const Action& action : actions) {
    const T* one = std::get_if<T>(&action);
    if (one == nullptr) continue;
    if (found) return std::nullopt;
    found = *one;
  }
  return found;
}

// The messages of a kind that are sent, whoever they are for.
template <typename T, typename Action>
std::vector<T> all_sent(const std::vector<Action>& actions) {
  std::vector<T> found;
  const auto take = [&](const auto& message) {
    if constexpr (std::is_same_v<std::decay_t<decltype(message)>, T>) found.push_back(message);
  };
  for (const Action& action : actions) {
    std::visit(
        [&](const auto& each) {
          if constexpr (requires { std::visit(take, each.message); }) {
            std::visit(take, each.message);
          }
        },
        action);
  }
  return found;
}

// The last of them.
template <typename T, typename Action>
std::optional<T> sent(const std::vector<Action>& actions) {
  const std::vector<T> found = all_sent<T>(actions);
  if (found.empty()) return std::nullopt;
  return found.back();
}

}  // namespace mariner::replication
