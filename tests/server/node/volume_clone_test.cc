// Cloning: server/node/volume_clone.cc.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tests/server/node/node_parts.h"

namespace mariner::node {
namespace {

class VolumeClone : public ::testing::Test {
 protected:
  // 'a' at block 0, and then 'b' at 0 and 'c' at 200.
  void SetUp() override {
    ServedVolume& source = parts_.create("db1");
    put("db1", 0, 'a');
    first_ = parts_.newest(source);
    put("db1", 0, 'b');
    put("db1", 200, 'c');
  }
  void put(const std::string& name, std::uint64_t block, char byte) {
    parts_.write(*live(name), block, byte);
  }
  char get(const std::string& name, std::uint64_t block) { return parts_.read(*live(name), block); }
  std::shared_ptr<volume::Layer> live(const std::string& name) {
    return parts_.volumes().find(name)->volume->live_layer();
  }
  // As the moment 0 of its own history has it: what it began with.
  char base(const std::string& name, std::uint64_t block) {
    const auto view = parts_.volumes().find(name)->volume->view_layer(SequenceNumber{0});
    return parts_.read(*view, block);
  }
  void begin(const std::string& name, SequenceNumber at, bool dry_run = false) {
    NewVolume wanted;
    wanted.name = name;
    wanted.window_s = 60;
    result_.reset();
    parts_.volumes().clone(
        wanted, *parts_.volumes().find("db1"), at, dry_run,
        [this](std::uint64_t done, std::uint64_t) { copied_ = done; },
        [this](Result<ServedVolume*> cloned) { result_ = std::move(cloned); });
  }
  Result<ServedVolume*> clone(const std::string& name, SequenceNumber at) {
    begin(name, at);
    parts_.run_until([this] { return result_.has_value(); });
    return *result_;
  }
  void drain(const std::string& name) {
    bool drained = false;
    parts_.volumes().find(name)->volume->storage()->drain(
        [&](const Result<void>& r) { drained = r.has_value(); });
    parts_.run_until([&] { return drained; });
  }
  void restart() {
    parts_.stop();
    parts_.start();
  }

  testing::NodeParts parts_;
  SequenceNumber first_;
  std::uint64_t copied_ = 0;
  std::optional<Result<ServedVolume*>> result_;
};

TEST_F(VolumeClone, IsWhatTheOtherOneWas) {
  meta::Volume& source = parts_.volumes().find("db1")->meta;
  source.add_acl("iqn.host");
  source.add_auth("host1");
  const Result<ServedVolume*> cloned = clone("db2", first_);
  ASSERT_TRUE(cloned) << to_string(cloned.error());
  EXPECT_EQ((*cloned)->meta.size_bytes(), testing::NodeParts::kVolumeBytes);
  EXPECT_EQ((*cloned)->meta.block_size(), source.block_size());
  EXPECT_EQ((*cloned)->meta.acl(0), "iqn.host") << "no way around it";
  EXPECT_EQ((*cloned)->meta.auth(0), "host1");
  EXPECT_NE((*cloned)->meta.uuid(), source.uuid());
  EXPECT_EQ(copied_, testing::NodeParts::kVolumeBytes);
  EXPECT_EQ(get("db2", 0), 'a');
  EXPECT_EQ(get("db2", 200), 0);
  EXPECT_EQ(get("db1", 0), 'b');
  EXPECT_EQ(get("db1", 200), 'c');
}

TEST_F(VolumeClone, HasAHistoryOfItsOwn) {
  ASSERT_TRUE(clone("db2", first_));
  put("db2", 0, 'x');
  put("db1", 0, 'y');
  drain("db2");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(get("db2", 0), 'x');
    EXPECT_EQ(base("db2", 0), 'a');
    EXPECT_EQ(get("db1", 0), 'y');
    EXPECT_EQ(base("db1", 0), 0);
    restart();
  }
  ASSERT_TRUE(parts_.remove("db1"));
  EXPECT_EQ(get("db2", 0), 'x');
  EXPECT_EQ(base("db2", 0), 'a');
}

TEST_F(VolumeClone, OfACloneIsOneToo) {
  ASSERT_TRUE(clone("db2", first_));
  put("db2", 1, 'x');
  NewVolume wanted;
  wanted.name = "db3";
  std::optional<bool> cloned;
  ServedVolume& source = *parts_.volumes().find("db2");
  parts_.volumes().clone(
      wanted, source, parts_.newest(source), false, [](std::uint64_t, std::uint64_t) {},
      [&](const Result<ServedVolume*>& r) { cloned = r.has_value(); });
  parts_.run_until([&] { return cloned.has_value(); });
  EXPECT_TRUE(*cloned);
  EXPECT_EQ(get("db3", 0), 'a');
  EXPECT_EQ(get("db3", 1), 'x');
}

TEST_F(VolumeClone, IsNotServedBeforeItIsWhole) {
  begin("db2", first_);
  EXPECT_EQ(parts_.volumes().find("db2")->volume, nullptr);
  EXPECT_EQ(parts_.volumes().find("db2")->meta.state(), meta::Volume::CLONING);
  EXPECT_FALSE(parts_.volumes().idle());
  EXPECT_EQ(parts_.volumes().find("db1")->volume->oldest_pinned(), first_);
  begin("db2", first_);
  EXPECT_EQ(result_->error().code, ErrorCode::kAlreadyExists) << "the name is taken";
  result_.reset();
  parts_.run_until([this] { return parts_.volumes().find("db2")->volume != nullptr; });
  EXPECT_FALSE(parts_.volumes().find("db1")->volume->oldest_pinned());
}

TEST_F(VolumeClone, ADryRunMakesNothing) {
  begin("db2", first_, true);
  EXPECT_TRUE(*result_);
  EXPECT_EQ(parts_.volumes().find("db2"), nullptr);
  begin("db1", first_, true);
  EXPECT_EQ(result_->error().code, ErrorCode::kAlreadyExists);
}

TEST_F(VolumeClone, AnInterruptedOneLeavesNothing) {
  meta::Volume meta = parts_.create("half").meta;
  meta.set_state(meta::Volume::CLONING);
  ASSERT_TRUE(parts_.store().put_volume(meta));
  restart();
  EXPECT_EQ(parts_.volumes().find("half"), nullptr);
  EXPECT_FALSE(parts_.has_file("images/" + std::to_string(meta.id()) + ".raw"));
  EXPECT_EQ(parts_.store().volumes()->size(), 1u);
}

TEST_F(VolumeClone, AMomentThatIsDroppedEndsIt) {
  begin("db2", first_);
  parts_.volumes().find("db1")->volume->logged().snapshots()->drop_all();
  parts_.run_until([this] { return result_.has_value(); });
  EXPECT_EQ(result_->error().code, ErrorCode::kOutsideWindow);
  EXPECT_EQ(parts_.volumes().find("db2"), nullptr);
  EXPECT_EQ(parts_.store().volumes()->size(), 1u);
}

TEST_F(VolumeClone, StoppingEndsIt) {
  begin("db2", first_);
  parts_.stop();
  ASSERT_TRUE(result_);
  EXPECT_FALSE(*result_);
  parts_.start();
  EXPECT_EQ(parts_.volumes().find("db2"), nullptr);
  EXPECT_EQ(parts_.store().volumes()->size(), 1u);
}

}  // namespace
}  // namespace mariner::node
