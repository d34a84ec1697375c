// A volume against a model that remembers every write: writes of every kind and alignment with
// some of them outstanding, rollbacks and their undoing, views of any moment that stay open, a
// writable view, a volume that grows, disks that fail, clocks that step back, restarts and power
// cuts. The model is as long as the volume may become, with zeros behind its end.
//
// Each once more with a history that is far away from storage and target (DelayedHistory): what
// they ask it is answered late, out of order, in parts, or not at all.
//
// Everything follows from a seed, which each failure prints. MARINER_SEED=n runs that one alone,
// MARINER_SEEDS=n so many.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/server/volume/volume_model_run.h"

namespace mariner::test {
namespace {

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

void run_seeds(Variant variant) {
  const bool one = std::getenv("MARINER_SEED") != nullptr;
  const std::uint64_t first = from_environment("MARINER_SEED", 1);
  const std::uint64_t count = from_environment("MARINER_SEEDS", one                   ? 1
                                                                : variant.far_history ? 2000
                                                                                      : 1500);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("MARINER_SEED=" + std::to_string(seed));
    VolumeModelRun run(seed, variant);
    run.execute();
    if (run.failed()) return;
  }
  std::printf("%llu tracks given up, %llu blocks not fetched again after a power cut\n",
              static_cast<unsigned long long>(VolumeModelRun::tracks_freed),
              static_cast<unsigned long long>(VolumeModelRun::resumed_blocks));
  if (count >= 100) {
    EXPECT_GT(VolumeModelRun::resumed_blocks, 0u);
  }
}

TEST(VolumeModel, ZeroBase) { run_seeds({}); }
TEST(VolumeModel, ImportedBase) { run_seeds({.base_in_image = true}); }
TEST(VolumeModel, ZeroBaseFarFromItsHistory) { run_seeds({.far_history = true}); }
TEST(VolumeModel, ImportedBaseFarFromItsHistory) {
  run_seeds({.base_in_image = true, .far_history = true});
}
TEST(VolumeModel, ZeroBaseWiredToItsHistory) { run_seeds({.wired = true}); }
TEST(VolumeModel, ImportedBaseWiredToItsHistory) {
  run_seeds({.base_in_image = true, .wired = true});
}

}  // namespace
}  // namespace mariner::test
