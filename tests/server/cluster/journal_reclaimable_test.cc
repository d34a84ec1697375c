#include "server/cluster/journal_reclaimable.h"

#include <gtest/gtest.h>

#include "tests/server/cluster/memory_promises.h"
#include "tests/server/volume/logged_rig.h"

namespace mariner::cluster {
namespace {

using test::LoggedRig;

class JournalReclaimableTest : public ::testing::Test {
 protected:
  ~JournalReclaimableTest() override {
    part_.close(Error{ErrorCode::kUnavailable, "closing"});
    rig_.executor.run_ready();
  }
  static volume::LoggedVolume::Options options(LoggedRig& rig) {
    volume::LoggedVolume::Options options;
    options.id = LoggedRig::kVolume;
    options.index = rig.index.shared();
    options.based_everywhere = true;
    return options;
  }
  std::uint64_t spare() { return journal_.spare_through()->value; }

  LoggedRig rig_{true};
  MemoryPromises promises_{rig_.executor};
  LoggerPart part_{options(rig_),
                   {LoggedRig::kVolume, {1}, {100}, {100}, {}, {40}},
                   {{rig_.disks, rig_.writer, rig_.log_reader}, rig_.executor, promises_}};
  SequenceNumber image_{60};
  JournalReclaimable journal_{part_, [this] { return image_; }};
};

TEST_F(JournalReclaimableTest, WhatTheImageHoldsMayGo) {
  EXPECT_EQ(spare(), 60u);
  image_ = {100};
  EXPECT_EQ(spare(), 100u);
  image_ = {500};
  EXPECT_EQ(spare(), 100u) << "it has no more";
  EXPECT_EQ(journal_.durable(), SequenceNumber{40}) << "of every image, that is another matter";
}

TEST_F(JournalReclaimableTest, WhatIsHeldStays) {
  image_ = {500};
  volume::History::Hold hold;
  part_.logged().history().hold(
      {80}, [&](Result<volume::History::Hold> held) { hold = *std::move(held); });
  EXPECT_EQ(spare(), 80u);
  image_ = {70};
  EXPECT_EQ(spare(), 70u);
  image_ = {500};
  hold.reset();
  EXPECT_EQ(spare(), 100u);
}

TEST_F(JournalReclaimableTest, NothingIsKeptInImagesForIt) {
  bool done = false;
  journal_.punch({{{0}, {1}}}, [&](const Result<void>& r) { done = r.has_value(); });
  EXPECT_TRUE(done);
  EXPECT_TRUE(journal_.has_image());
  EXPECT_EQ(&journal_.logged(), &part_.logged());
}

}  // namespace
}  // namespace mariner::cluster
