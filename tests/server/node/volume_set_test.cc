#include "server/node/volume_set.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>

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
  // A sparse file: 'a' at its first block, a hole, 'z' at its end.
  std::string sparse_file(std::uint64_t bytes) {
    const std::string path = parts_.path("disk.raw");
    std::ofstream file(path);
    file << std::string(4096, 'a');
    file.seekp(static_cast<std::streamoff>(bytes) - 1);
    file << 'z';
    return path;
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

TEST_F(VolumeSetTest, ImportsASparseFile) {
  const std::uint64_t bytes = (12u << 20) + 512;
  Result<ServedVolume*> imported = parts_.import("old", sparse_file(bytes));
  ASSERT_TRUE(imported);
  EXPECT_EQ((*imported)->meta.size_bytes(), (12u << 20) + 4096u);
  EXPECT_LT((*imported)->image->allocated_bytes(), 9u << 20) << "the hole stays one";
  EXPECT_EQ(parts_.read(layer("old"), 0), 'a');
  EXPECT_EQ(parts_.read(layer("old"), 1000), 0);
  layer_ = parts_.volumes().find("old")->volume->live_layer();
  bool checked = false;
  layer_->read({bytes - 512, 512}, [&](const Result<PayloadSlice>& read) {
    EXPECT_EQ(read->bytes()[511], std::byte{'z'});
    checked = true;
  });
  parts_.run_until([&] { return checked; });
}

TEST_F(VolumeSetTest, TheBaseOfAnImportIsAMomentForEver) {
  ASSERT_TRUE(parts_.import("old", sparse_file(2u << 20)));
  parts_.write(layer("old"), 0, 'b');
  layer_.reset();
  bool drained = false;
  parts_.volumes().find("old")->volume->storage()->drain(
      [&](const Result<void>& r) { drained = r.has_value(); });
  parts_.run_until([&] { return drained; });
  for (int i = 0; i < 2; ++i) {
    auto base = parts_.volumes().find("old")->volume->view_layer(SequenceNumber{0});
    EXPECT_EQ(parts_.read(*base, 0), 'a');
    EXPECT_EQ(parts_.read(layer("old"), 0), 'b');
    base.reset();
    restart();
  }
}

TEST_F(VolumeSetTest, AnInterruptedImportLeavesNothing) {
  meta::Volume meta = parts_.create("half").meta;
  meta.set_state(meta::Volume::IMPORTING);
  ASSERT_TRUE(parts_.store().put_volume(meta));
  restart();
  EXPECT_EQ(parts_.volumes().find("half"), nullptr);
  EXPECT_FALSE(parts_.has_file("images/" + std::to_string(meta.id()) + ".raw"));
  EXPECT_TRUE(parts_.store().volumes()->empty());
}

TEST_F(VolumeSetTest, AFileThatShrinksDuringItsImportFailsItWhole) {
  const std::string path = parts_.path("disk.raw");
  std::ofstream(path) << std::string(9u << 20, 'a');
  NewVolume wanted;
  wanted.name = "old";
  std::optional<bool> imported;
  parts_.volumes().import(
      wanted, path, false,
      [&](std::uint64_t, std::uint64_t) { std::filesystem::resize_file(path, 4u << 20); },
      [&](const Result<ServedVolume*>& result) { imported = result.has_value(); });
  EXPECT_EQ(parts_.volumes().find("old")->volume, nullptr) << "listed, and not served yet";
  parts_.run_until([&] { return imported.has_value(); });
  EXPECT_FALSE(*imported);
  EXPECT_EQ(parts_.volumes().find("old"), nullptr);
  EXPECT_TRUE(parts_.store().volumes()->empty());
}

TEST_F(VolumeSetTest, StoppingEndsAnImport) {
  const std::string path = parts_.path("disk.raw");
  std::ofstream(path) << std::string(9u << 20, 'a');
  NewVolume wanted;
  wanted.name = "old";
  std::optional<ErrorCode> ended;
  parts_.volumes().import(
      wanted, path, false, [](std::uint64_t, std::uint64_t) {},
      [&](const Result<ServedVolume*>& result) { ended = result.error().code; });
  parts_.stop();
  EXPECT_EQ(ended, ErrorCode::kAborted);
  parts_.start();
  EXPECT_TRUE(parts_.store().volumes()->empty());
}

TEST_F(VolumeSetTest, ImportRefusesWhatIsNoDisk) {
  EXPECT_EQ(parts_.import("a", parts_.path("missing")).error().code, ErrorCode::kIo);
  EXPECT_EQ(parts_.import("a", "/dev/null").error().code, ErrorCode::kInvalidArgument);
  std::ofstream(parts_.path("empty")).flush();
  EXPECT_EQ(parts_.import("a", parts_.path("empty")).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(parts_.import("a", parts_.path(".")).error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(parts_.import("a", sparse_file(2u << 20), true)) << "a dry run";
  EXPECT_EQ(parts_.volumes().find("a"), nullptr);
}

}  // namespace
}  // namespace mariner::node
