#include "server/node/volume_set.h"

#include <gtest/gtest.h>

#include "tests/server/node/node_parts.h"

namespace mariner::node {
namespace {

class VolumeSetTest : public ::testing::Test {
 protected:
  volume::Layer& layer(const std::string& name) {
    layer_ = parts_.volumes().find(name)->volume->live_layer();
    return *layer_;
  }
  void restart() {
    layer_.reset();
    parts_.stop();
    parts_.start();
  }
  static ErrorCode refusal(const Result<meta::Volume>& result) { return result.error().code; }

  testing::NodeParts parts_;
  std::shared_ptr<volume::Layer> layer_;
};

TEST_F(VolumeSetTest, WhatWasWrittenIsThereAfterARestart) {
  parts_.create("db1");
  parts_.write(layer("db1"), 3, 'x');
  const std::string serial = parts_.volumes().find("db1")->identity.serial;
  restart();
  EXPECT_EQ(parts_.read(layer("db1"), 3), 'x');
  EXPECT_EQ(parts_.read(layer("db1"), 4), 0);
  EXPECT_EQ(parts_.volumes().find("db1")->identity.serial, serial);
  EXPECT_EQ(parts_.volumes().find_target("iqn.2026-11.org.example:db1"),
            parts_.volumes().find("db1"));
  EXPECT_EQ(parts_.volumes().find_target("iqn.2026-11.org.example:db2"), nullptr);
}

TEST_F(VolumeSetTest, NumbersOfACrashAreNeverUsedAgain) {
  parts_.create("db1");
  parts_.write(layer("db1"), 0, 'x');
  const SequenceNumber before = parts_.newest(*parts_.volumes().find("db1"));
  restart();
  parts_.write(layer("db1"), 0, 'y');
  EXPECT_GT(parts_.newest(*parts_.volumes().find("db1")).value,
            before.value + volume::Volume::kVoidMargin);
}

TEST_F(VolumeSetTest, RefusesWhatItCannotMake) {
  parts_.create("db1");
  NewVolume wanted;
  wanted.name = "db2";
  wanted.size_bytes = 1u << 20;
  EXPECT_TRUE(parts_.volumes().plan(wanted));
  wanted.name = "db1";
  EXPECT_EQ(refusal(parts_.volumes().plan(wanted)), ErrorCode::kAlreadyExists);
  wanted.name = "Not A Name";
  EXPECT_EQ(refusal(parts_.volumes().plan(wanted)), ErrorCode::kInvalidArgument);
  wanted.name = "db2";
  wanted.block_size = 1024;
  EXPECT_EQ(refusal(parts_.volumes().plan(wanted)), ErrorCode::kInvalidArgument);
  wanted.block_size = 4096;
  wanted.size_bytes = (1u << 20) - 1;
  EXPECT_EQ(refusal(parts_.volumes().plan(wanted)), ErrorCode::kInvalidArgument);
  wanted.size_bytes = (1u << 20) + 1;
  EXPECT_EQ(parts_.volumes().plan(wanted)->size_bytes(), (1u << 20) + 4096u) << "whole blocks";
}

TEST_F(VolumeSetTest, ARemovedVolumeLeavesNothingAndItsNameIsFree) {
  const std::uint32_t id = parts_.create("db1").meta.id();
  parts_.write(layer("db1"), 0, 'x');
  layer_.reset();
  const std::string image = "images/" + std::to_string(id) + ".raw";
  EXPECT_TRUE(parts_.has_file(image));
  EXPECT_TRUE(parts_.remove("db1"));
  EXPECT_FALSE(parts_.has_file(image));
  EXPECT_FALSE(parts_.remove("db1"));
  EXPECT_NE(parts_.create("db1").meta.id(), id);
  EXPECT_EQ(parts_.read(layer("db1"), 0), 0);
  restart();
  EXPECT_EQ(parts_.read(layer("db1"), 0), 0) << "records of the old volume are not its own";
}

TEST_F(VolumeSetTest, RemovalWaitsForWhoeverStillReads) {
  parts_.create("db1");
  parts_.write(layer("db1"), 0, 'x');
  bool removed = false;
  parts_.volumes().remove("db1", [&](const Result<void>& r) { removed = r.has_value(); });
  for (int i = 0; i < 20; ++i) {
    bool slept = false;
    parts_.executor().after(std::chrono::milliseconds(1), [&] { slept = true; });
    parts_.run_until([&] { return slept; });
  }
  EXPECT_FALSE(removed);
  EXPECT_EQ(parts_.read(*layer_, 0), 'x');
  layer_.reset();
  parts_.run_until([&] { return removed; });
}

TEST_F(VolumeSetTest, AnInterruptedRemovalIsFinishedAtTheNextStart) {
  meta::Volume meta = parts_.create("db1").meta;
  meta.set_state(meta::Volume::DELETING);
  ASSERT_TRUE(parts_.store().put_volume(meta));
  restart();
  EXPECT_EQ(parts_.volumes().find("db1"), nullptr);
  EXPECT_FALSE(parts_.has_file("images/" + std::to_string(meta.id()) + ".raw"));
}

}  // namespace
}  // namespace mariner::node
