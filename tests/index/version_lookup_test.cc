#include "index/version_lookup.h"

#include <gtest/gtest.h>

#include "tests/support/index_rig.h"

namespace mariner::index {
namespace {

using logging::Record;
using logging::RecordType;

class VersionLookupTest : public ::testing::Test {
 protected:
  void before_image(BlockRange extent, std::uint64_t at, bool replaces = false) {
    Record record;
    record.type = RecordType::kBeforeImage;
    record.extent = extent;
    record.payload_blocks = static_cast<std::uint32_t>(extent.count.value);
    if (replaces) record.flags = logging::kReplaces;
    rig_.insert(record, {at, 1, 0, 1, 0});
  }
  // Of each block the place of its before-image; 0: none.
  std::vector<std::uint64_t> base_to_be(BlockRange range) {
    std::vector<std::uint64_t> out;
    for (const LocatedRun& run : rig_.answers().compute(
             [&](const VersionLookup& lookup) { return lookup.base_to_be(range); })) {
      const bool logged = run.source == LocatedRun::Source::kLog;
      out.insert(out.end(), run.range.count.value, logged ? run.location.batch_sector : 0);
    }
    return out;
  }

  test::ManualExecutor executor_;
  test::IndexRig rig_{executor_};
};

TEST_F(VersionLookupTest, BeforeImagesThatAreBeingForgottenAreNotInTheBaseToBe) {
  using Places = std::vector<std::uint64_t>;
  before_image({{1}, {2}}, 10);
  before_image({{2}, {2}}, 20);
  before_image({{1}, {1}}, 30, true);
  EXPECT_EQ(base_to_be({{0}, {5}}), (Places{0, 30, 10, 20, 0}));
  rig_.index().begin_forgetting({}, 1);
  EXPECT_TRUE(rig_.index().is_forgetting());
  EXPECT_EQ(base_to_be({{0}, {5}}), (Places{0, 30, 20, 20, 0}));
  EXPECT_EQ(rig_.answers().locate({{2}, {1}}, {0})[0].location.batch_sector, 10u)
      << "it is there yet";
  rig_.index().forget_through({}, 1);
  EXPECT_FALSE(rig_.index().is_forgetting());
  EXPECT_EQ(base_to_be({{0}, {5}}), (Places{0, 30, 20, 20, 0}));
}

}  // namespace
}  // namespace mariner::index
