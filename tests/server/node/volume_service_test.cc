// Volumes that lack what it takes to serve them, until it is there. The second part of
// volume_set_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "server/node/access.h"
#include "server/node/local_keeper.h"
#include "tests/server/node/node_parts.h"

namespace mariner::node {
namespace {

using ::testing::HasSubstr;

class VolumeServiceTest : public ::testing::Test {
 protected:
  VolumeServiceTest() {
    for (const char* name : {"db1", "db2"}) {
      parts_.create(name);
      parts_.write(*volume(name).volume->live_layer(), 3, 'x');
    }
  }
  ServedVolume& volume(const std::string& name) { return *parts_.volumes().find(name); }
  // The daemon is stopped, `change` made, and it is started again.
  template <typename Change>
  void restart(Change change) {
    const std::string image = volume("db1").image_path;
    parts_.stop();
    change(image);
    parts_.start();
  }
  void take_image_away() {
    restart([](const std::string& image) { std::filesystem::rename(image, image + ".away"); });
  }
  Result<std::shared_ptr<scsi::TargetDevice>> log_in(const std::string& name) {
    const Config config;
    const std::string path;
    const Accounts accounts;
    const Access access({config, path, accounts, parts_.volumes(), parts_.views(), parts_.store()});
    return access.open("iqn.2026-11.org.example:" + name, "iqn.2026-11.org.example:host");
  }

  testing::NodeParts parts_;
};

TEST_F(VolumeServiceTest, WithoutItsImageAVolumeIsNotServedAndTheOthersAre) {
  const SequenceNumber newest = parts_.newest(volume("db1"));
  take_image_away();
  EXPECT_TRUE(volume("db2").serves());
  EXPECT_EQ(parts_.read(*volume("db2").volume->live_layer(), 3), 'x');
  EXPECT_TRUE(log_in("db2"));

  ServedVolume& missing = volume("db1");
  EXPECT_FALSE(missing.serves());
  EXPECT_EQ(missing.image, nullptr);
  EXPECT_THAT(missing.failure->message, HasSubstr(missing.image_path));
  const auto refused = log_in("db1");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(refused.error().message, HasSubstr(missing.image_path));
  EXPECT_EQ(parts_.volumes().plan_resize("db1", 2u << 20).error().code, ErrorCode::kUnavailable);
  NewView view;
  view.at = {newest, VersionTime{1}};
  EXPECT_EQ(parts_.views().expose(missing, view).error().code, ErrorCode::kUnavailable);
}

TEST_F(VolumeServiceTest, TheLogKeepsItsHistoryMeanwhile) {
  const SequenceNumber newest = parts_.newest(volume("db1"));
  take_image_away();
  EXPECT_GE(parts_.newest(volume("db1")), newest);
  LocalKeeper keeper(parts_.volumes(), parts_.views(), parts_.store(), [](const std::string&) {});
  const VolumeId id{volume("db1").meta.id()};
  EXPECT_EQ(keeper.volumes().size(), 2u);
  ASSERT_NE(keeper.find(id), nullptr) << "it is nobody's records that are given up at once";
  EXPECT_TRUE(keeper.window(id).has_value());
}

TEST_F(VolumeServiceTest, AnImageThatIsTooShortIsNotTouched) {
  restart([](const std::string& image) {
    std::filesystem::copy_file(image, image + ".away");
    std::filesystem::resize_file(image, 4096);
  });
  EXPECT_FALSE(volume("db1").serves());
  EXPECT_THAT(volume("db1").failure->message, HasSubstr("has 4096 bytes"));
  EXPECT_EQ(std::filesystem::file_size(volume("db1").image_path), 4096u);
  std::filesystem::rename(volume("db1").image_path + ".away", volume("db1").image_path);
  parts_.run_until([&] { return volume("db1").serves(); });
  EXPECT_EQ(parts_.read(*volume("db1").volume->live_layer(), 3), 'x');
}

TEST_F(VolumeServiceTest, ItIsServedAgainWithItsViewsWhenTheImageIsThere) {
  NewView wanted;
  wanted.name = "lab";
  wanted.at = parts_.answers(volume("db1")).moment_of(parts_.newest(volume("db1")));
  wanted.writable = true;
  const Result<ServedView*> exposed = parts_.views().expose(volume("db1"), wanted);
  ASSERT_TRUE(exposed);
  parts_.write(*(*exposed)->overlay->live_layer(), 4, 'w');
  take_image_away();
  EXPECT_TRUE(parts_.views().find("lab")->failure.has_value());
  EXPECT_EQ(log_in("view:lab").error().code, ErrorCode::kUnavailable);

  std::filesystem::rename(volume("db1").image_path + ".away", volume("db1").image_path);
  parts_.run_until([&] { return volume("db1").serves(); });
  EXPECT_NE(volume("db1").image, nullptr);
  EXPECT_TRUE(log_in("db1"));
  EXPECT_TRUE(log_in("view:lab"));
  EXPECT_EQ(parts_.read(*volume("db1").volume->live_layer(), 3), 'x');
  const auto lab = parts_.views().find("lab")->overlay->live_layer();
  EXPECT_EQ(parts_.read(*lab, 3), 'x');
  EXPECT_EQ(parts_.read(*lab, 4), 'w');
  parts_.write(*volume("db1").volume->live_layer(), 3, 'y');
  EXPECT_EQ(parts_.read(*volume("db1").volume->live_layer(), 3), 'y');
}

TEST_F(VolumeServiceTest, ReservationsThatCannotBeReadKeepHostsOut) {
  const std::string unit = MetaStore::unit_of_volume(volume("db1").meta.id());
  meta::Reservations damaged;
  damaged.add_registrations()->mutable_nexus()->set_isid("short");
  ASSERT_TRUE(parts_.store().put_reservations(unit, damaged));
  restart([](const std::string&) {});
  EXPECT_FALSE(volume("db1").serves());
  EXPECT_NE(volume("db1").image, nullptr);
  EXPECT_EQ(log_in("db1").error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(volume("db2").serves());
  ASSERT_TRUE(parts_.store().remove_reservations(unit));
  parts_.run_until([&] { return volume("db1").serves(); });
  EXPECT_TRUE(log_in("db1"));
}

TEST_F(VolumeServiceTest, AVolumeThatIsNotServedCanBeRemoved) {
  take_image_away();
  EXPECT_TRUE(parts_.remove("db1"));
  EXPECT_EQ(parts_.volumes().find("db1"), nullptr);
  parts_.stop();
  parts_.start();
  EXPECT_TRUE(volume("db2").serves());
}

}  // namespace
}  // namespace mariner::node
