// Tests that make their histories from seeds: which ones run, and how a failure names its own.
//
// MARINER_TEST_SEED=N runs that one alone; MARINER_TEST_SEEDS=N so many, from
// MARINER_TEST_FIRST_SEED on. For tests that include gtest.
#pragma once

#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace mariner::test {

inline std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

struct SeedRange {
  std::uint64_t first = 1;
  std::uint64_t count = 0;
};
inline SeedRange seeds_to_run(std::uint64_t count) {
  const std::uint64_t only = number_from("MARINER_TEST_SEED", 0);
  if (only != 0) return {only, 1};
  return {number_from("MARINER_TEST_FIRST_SEED", 1), number_from("MARINER_TEST_SEEDS", count)};
}

// Runs test(seed) for `count` seeds, or those that were asked for, until one fails. What a failed
// CHECK leaves behind names its seed, too.
template <typename Test>
void for_seeds(std::uint64_t count, Test test) {
  static std::uint64_t running = 0;
  const auto tell = [](int) {
    std::fprintf(stderr, "MARINER_TEST_SEED=%llu crashes\n",
                 static_cast<unsigned long long>(running));
    std::signal(SIGABRT, SIG_DFL);
    std::abort();
  };
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS}) std::signal(signal, tell);
  const SeedRange seeds = seeds_to_run(count);
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    SCOPED_TRACE("MARINER_TEST_SEED=" + std::to_string(seed));
    running = seed;
    test(seed);
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace mariner::test
