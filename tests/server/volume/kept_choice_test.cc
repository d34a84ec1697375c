#include "server/volume/kept_choice.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/server/volume/volume_rig.h"

namespace mariner::test {
namespace {

using index::KeptMoment;
using volume::is_in_use;
using volume::is_one_of;
using volume::KeepWish;
using volume::still_kept;

std::vector<std::uint64_t> numbers(const std::vector<KeptMoment>& kept) {
  std::vector<std::uint64_t> out;
  for (const KeptMoment& each : kept) out.push_back(each.moment.sequence.value);
  return out;
}

TEST(KeptChoice, ATimeMeansTheMomentBehindWhichNothingWasWrittenUntilThen) {
  const KeptMoment kept{{{5}, {500}}, {600}};
  EXPECT_TRUE(is_one_of(kept, {{500}}));
  EXPECT_TRUE(is_one_of(kept, {{100}, {600}, {900}}));
  EXPECT_FALSE(is_one_of(kept, {{100}, {499}, {601}}));
  EXPECT_FALSE(is_one_of(kept, {}));
}

TEST(KeptChoice, WhatIsWishedForOrInUseStays) {
  VolumeRig rig({});
  rig.start();
  volume::LoggedVolume& logged = rig.volume().logged();
  logged.index().set_kept(
      {{{{1}, {100}}, {150}}, {{{2}, {200}}, {250}}, {{{3}, {300}}, {350}}, {{{4}, {400}}, {450}}});
  EXPECT_TRUE(still_kept(logged, {}).empty());
  EXPECT_EQ(numbers(still_kept(logged, {.moments = {{{2}, {200}}}, .times = {{444}}})),
            (std::vector<std::uint64_t>{2, 4}));
  {
    const auto pin = rig.volume().pin({3});
    ASSERT_TRUE(pin) << "a kept moment can be opened";
    EXPECT_TRUE(is_in_use(logged, logged.index().kept()[2]));
    EXPECT_EQ(numbers(still_kept(logged, {})), (std::vector<std::uint64_t>{3}));
  }
  EXPECT_TRUE(still_kept(logged, {}).empty());
  rig.stop();
}

}  // namespace
}  // namespace mariner::test
