#include "server/node/cluster_volumes.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "server/node/identity.h"
#include "tests/server/node/cluster_node_fixture.h"

namespace mariner::node {
namespace {

using ::testing::HasSubstr;

constexpr const char* kSenseless = "makes no sense, and is left alone";

class ClusterVolumesTest : public testing::ClusterNodeFixture {
 protected:
  // What the shared store says of a good volume, which node 1 has.
  static meta::Volume good(std::uint32_t id, const std::string& name) {
    meta::Volume volume;
    volume.set_id(id);
    volume.set_name(name);
    volume.set_size_bytes(kVolumeBytes);
    volume.set_block_size(512);
    volume.set_window_s(3600);
    volume.set_uuid(new_uuid());
    volume.mutable_cluster()->set_logger(1);
    volume.mutable_cluster()->add_storages(1);
    return volume;
  }
  void define(std::uint32_t id, const std::string& bytes) {
    put(manager::definition_key(VolumeId{id}), bytes);
  }
  void define(const meta::Volume& volume) {
    manager::VolumeRecord record;
    record.volume = VolumeId{volume.id()};
    record.coordinator = {1};
    record.logger = {volume.cluster().logger()};
    record.storages = {{1}};
    put(manager::volume_key(VolumeId{volume.id()}), encode(record));
    define(volume.id(), volume.SerializeAsString());
  }
  // The node goes on: what comes after is told of, too.
  void expect_told(const std::string& what) {
    EXPECT_TRUE(eventually([&] { return told(what) == 1; })) << what;
  }
};

TEST_F(ClusterVolumesTest, AVolumeThatAnotherNodeCreatedIsJoined) {
  start();
  define(good(3, kVolume));
  ASSERT_TRUE(comes_to_serve());
  write(1, 'q');
  EXPECT_EQ(told("has a part in a new volume of the cluster"), 1u);
  stop();
  start();
  ASSERT_TRUE(comes_to_serve());
  EXPECT_EQ(read(1), 'q');
  EXPECT_EQ(told("has a part in a new volume of the cluster"), 1u) << "it was remembered";
}

TEST_F(ClusterVolumesTest, AVolumeOfOthersIsLeftToThem) {
  config().cluster.nodes.push_back({.id = 2, .name = "b", .addresses = {{"127.0.0.1", 1}}});
  start();
  meta::Volume others = good(1, "others");
  others.mutable_cluster()->set_logger(2);
  others.mutable_cluster()->set_storages(0, 2);
  define(others);
  define(good(2, kVolume));
  ASSERT_TRUE(comes_to_serve());
  EXPECT_EQ(node().show("others").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(node().replicas("others").replicas(0).node(), "b");
  EXPECT_EQ(told(kSenseless), 0u);
}

TEST_F(ClusterVolumesTest, ADefinitionThatMakesNoSenseIsToldOnceAndDoesNoHarm) {
  struct Case {
    const char* told;
    std::function<void(meta::Volume&)> change;
  };
  const std::vector<Case> cases{
      {"has a number that none is given", [](auto& v) { v.set_id(0x80000001); }},
      {"\\\"../x\\\" is not a volume's name", [](auto& v) { v.set_name("../x"); }},
      {"\\\"\\\" is not a volume's name", [](auto& v) { v.set_name(""); }},
      {"has 0 bytes", [](auto& v) { v.set_size_bytes(0); }},
      {"has 1048577 bytes", [](auto& v) { v.set_size_bytes(kVolumeBytes + 1); }},
      {"has 18446744073709547520 bytes", [](auto& v) { v.set_size_bytes(0xFFFFFFFFFFFFF000); }},
      {"has blocks of 0 bytes", [](auto& v) { v.set_block_size(0); }},
      {"has blocks of 1024 bytes", [](auto& v) { v.set_block_size(1024); }},
      {"has a uuid of 0 bytes", [](auto& v) { v.clear_uuid(); }},
      {"has a uuid of 17 bytes", [](auto& v) { v.mutable_uuid()->push_back('x'); }},
      {"is in a state", [](auto& v) { v.set_state(meta::Volume::DELETING); }},
      {"names node 9, which has no", [](auto& v) { v.mutable_cluster()->set_logger(9); }},
      {"names node 8, which has no", [](auto& v) { v.mutable_cluster()->add_storages(8); }},
      {"names node 1 as a storage node twice",
       [](auto& v) { v.mutable_cluster()->add_storages(1); }},
      {"has 3 storage nodes",
       [](auto& v) {
         v.mutable_cluster()->add_storages(1);
         v.mutable_cluster()->add_storages(1);
       }},
  };
  start();
  std::uint32_t id = 10;
  for (const Case& each : cases) {
    meta::Volume volume = good(id, "v" + std::to_string(id));
    each.change(volume);
    define(volume);
    expect_told(each.told);
    ++id;
  }
  define(id, "\xff\xff no message");
  expect_told("entry /mariner/definitions/" + std::to_string(id) + " cannot be read");
  EXPECT_EQ(told(kSenseless), cases.size() + 1);

  define(good(1, kVolume));
  ASSERT_TRUE(comes_to_serve());
  EXPECT_EQ(node().ask(&ClusterControl::volume_list)->volumes_size(), 1);
  stop();
  start();
  ASSERT_TRUE(comes_to_serve());
}

TEST_F(ClusterVolumesTest, ANameBelongsToOneVolume) {
  start();
  define(good(1, kVolume));
  ASSERT_TRUE(comes_to_serve());
  define(good(2, kVolume));
  expect_told("volume 2 of the cluster has the name of volume 1, db1");
  EXPECT_EQ(node().show(kVolume)->id(), 1u);
}

TEST_F(ClusterVolumesTest, AnotherVolumeOfItsNumberIsTold) {
  start();
  define(good(1, kVolume));
  ASSERT_TRUE(comes_to_serve());
  write(0, 'a');
  define(1, good(1, "other").SerializeAsString());
  expect_told("other, is not the one that this node has by that number, db1");
  EXPECT_EQ(read(0), 'a');
}

TEST_F(ClusterVolumesTest, ADefinitionThatIsMendedBegins) {
  start();
  meta::Volume volume = good(1, kVolume);
  volume.set_block_size(0);
  define(volume);
  expect_told("has blocks of 0 bytes");
  volume.set_block_size(512);
  define(volume);
  ASSERT_TRUE(comes_to_serve());
}

TEST_F(ClusterVolumesTest, ARoleThatThisNodeHasNotIsTold) {
  config().roles = {Role::kStorage};
  start();
  define(good(1, "logged"));
  expect_told("volume 1 of the cluster names node 1, this one, as its logger: it has not the role");
  config().roles = {Role::kLogger};
  stop();
  start();
  define(good(2, "stored"));
  expect_told("volume 2 of the cluster names node 1, this one, as a storage node: it has not");
}

TEST_F(ClusterVolumesTest, ANodeThatAKeptVolumeNeedsMustStayConfigured) {
  config().cluster.nodes.push_back({.id = 2, .name = "b", .addresses = {{"127.0.0.1", 1}}});
  start();
  meta::Volume volume = good(1, kVolume);
  volume.mutable_cluster()->set_logger(2);
  define(volume);
  ASSERT_TRUE(eventually([&] { return node().show(kVolume).has_value(); }));
  stop();
  config().cluster.nodes.pop_back();
  const std::string message = refusal();
  EXPECT_THAT(message, HasSubstr(path("state")));
  EXPECT_THAT(message, HasSubstr("volume 1 of the cluster names node 2"));
}

// A record that does not fit the definition.
TEST_F(ClusterVolumesTest, ARecordThatNamesOtherNodesIsNotCoordinated) {
  config().cluster.nodes.push_back({.id = 2, .name = "b", .addresses = {{"127.0.0.1", 1}}});
  start();
  meta::Volume elsewhere = good(1, "elsewhere");
  elsewhere.mutable_cluster()->set_logger(2);
  manager::VolumeRecord record{VolumeId{1}, {}, {1}, {1}, {{1}}};
  put(manager::volume_key(VolumeId{1}), encode(record));
  define(1, elsewhere.SerializeAsString());
  EXPECT_TRUE(eventually([&] { return told("as its logger, and its definition another") > 0; }));

  record = {VolumeId{2}, {}, {1}, {1}, {{2}}};
  put(manager::volume_key(VolumeId{2}), encode(record));
  define(2, good(2, "stranger").SerializeAsString());
  EXPECT_TRUE(eventually([&] { return told("does not name this node") > 0; }));

  record = {VolumeId{3}, {}, {1}, {9}, {{1}}};
  put(manager::volume_key(VolumeId{3}), encode(record));
  define(3, good(3, "unknown").SerializeAsString());
  EXPECT_TRUE(eventually([&] { return told("names node 9, which the configuration") > 0; }));

  put(manager::volume_key(VolumeId{4}), "no record");
  define(4, good(4, "garbage").SerializeAsString());
  EXPECT_TRUE(eventually([&] { return told("volumes/4 cannot be read") > 0; }));
  for (const char* name : {"elsewhere", "stranger", "unknown", "garbage"}) {
    EXPECT_FALSE(node().serves(name)) << name;
  }

  define(good(5, kVolume));
  ASSERT_TRUE(comes_to_serve());
}

TEST_F(ClusterVolumesTest, AnImageThatIsLostIsBuiltAnewFromTheHistory) {
  configure_volume(0, "a", {"a"});
  start();
  ASSERT_TRUE(comes_to_serve());
  for (std::uint64_t block = 0; block < 16; ++block) write(block, static_cast<char>('A' + block));
  stop();
  ASSERT_TRUE(std::filesystem::remove(path("state/images/1.raw")));
  start();
  ASSERT_TRUE(comes_to_serve());
  for (std::uint64_t block = 0; block < 16; ++block) {
    EXPECT_EQ(read(block), static_cast<char>('A' + block)) << block;
  }
  ASSERT_TRUE(eventually([&] { return node().show(kVolume)->unapplied_bytes() == 0; }));
  stop();
  std::ifstream image(path("state/images/1.raw"), std::ios::binary);
  for (std::uint64_t block = 0; block < 16; ++block) {
    image.seekg(static_cast<std::streamoff>(block * kBlockBytes));
    EXPECT_EQ(image.get(), 'A' + static_cast<int>(block)) << block;
  }
}

// As a node that was killed early: its image has some of what came since, maybe of what is zero
// now.
TEST_F(ClusterVolumesTest, AnImageOfWhichNothingWasDurableBeginsAnew) {
  configure_volume(0, "a", {"a"});
  start();
  ASSERT_TRUE(comes_to_serve());
  write(0, 'A');
  stop();
  {
    const auto store = MetaStore::open(path("state/store"));
    ASSERT_TRUE(store);
    ASSERT_TRUE((*store)->put_progress(1, meta::Progress{}, true));
    std::ofstream image(path("state/images/1.raw"), std::ios::binary | std::ios::in);
    image.seekp(3 * static_cast<std::streamoff>(kBlockBytes));
    image << std::string(kBlockBytes, 'j');
  }
  start();
  ASSERT_TRUE(comes_to_serve());
  EXPECT_EQ(read(0), 'A');
  EXPECT_EQ(read(3), '\0');
  ASSERT_TRUE(eventually([&] { return node().show(kVolume)->unapplied_bytes() == 0; }));
  EXPECT_EQ(read(0), 'A');
  EXPECT_EQ(read(3), '\0');
}

TEST_F(ClusterVolumesTest, AnImageThatIsTooShortIsRefused) {
  configure_volume(0, "a", {"a"});
  start();
  ASSERT_TRUE(comes_to_serve());
  write(0, 'A');
  ASSERT_TRUE(eventually([&] { return node().show(kVolume)->unapplied_bytes() == 0; }));
  stop();
  std::filesystem::resize_file(path("state/images/1.raw"), kBlockBytes);
  const std::string message = refusal();
  EXPECT_THAT(message, HasSubstr("images/1.raw: has 4096 bytes"));
}

}  // namespace
}  // namespace mariner::node
