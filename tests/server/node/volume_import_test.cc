// Importing: server/node/volume_import.cc.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "tests/server/node/node_parts.h"

namespace mariner::node {
namespace {

class VolumeImport : public ::testing::Test {
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

  testing::NodeParts parts_;
  std::shared_ptr<volume::Layer> layer_;
};

TEST_F(VolumeImport, ImportsASparseFile) {
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

TEST_F(VolumeImport, TheBaseOfAnImportIsAMomentForEver) {
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

TEST_F(VolumeImport, AnInterruptedImportLeavesNothing) {
  meta::Volume meta = parts_.create("half").meta;
  meta.set_state(meta::Volume::IMPORTING);
  ASSERT_TRUE(parts_.store().put_volume(meta));
  restart();
  EXPECT_EQ(parts_.volumes().find("half"), nullptr);
  EXPECT_FALSE(parts_.has_file("images/" + std::to_string(meta.id()) + ".raw"));
  EXPECT_TRUE(parts_.store().volumes()->empty());
}

TEST_F(VolumeImport, AFileThatShrinksDuringItsImportFailsItWhole) {
  const std::string path = parts_.path("disk.raw");
  std::ofstream(path) << std::string(9u << 20, 'a');
  NewVolume wanted;
  wanted.name = "old";
  std::optional<bool> imported;
  bool listed = false;  // and not served yet
  parts_.volumes().import(
      wanted, path, false,
      [&](std::uint64_t, std::uint64_t) {
        const ServedVolume* old = parts_.volumes().find("old");
        listed = old != nullptr && old->volume == nullptr;
        std::filesystem::resize_file(path, 4u << 20);
      },
      [&](const Result<ServedVolume*>& result) { imported = result.has_value(); });
  parts_.run_until([&] { return imported.has_value(); });
  EXPECT_TRUE(listed);
  EXPECT_FALSE(*imported);
  EXPECT_EQ(parts_.volumes().find("old"), nullptr);
  EXPECT_TRUE(parts_.store().volumes()->empty());
}

TEST_F(VolumeImport, StoppingEndsAnImport) {
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

TEST_F(VolumeImport, ImportRefusesWhatIsNoDisk) {
  EXPECT_EQ(parts_.import("a", parts_.path("missing")).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(parts_.import("a", "/dev/null").error().code, ErrorCode::kInvalidArgument);
  std::ofstream(parts_.path("empty")).flush();
  EXPECT_EQ(parts_.import("a", parts_.path("empty")).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(parts_.import("a", parts_.path(".")).error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(parts_.import("a", sparse_file(2u << 20), true)) << "a dry run";
  EXPECT_EQ(parts_.volumes().find("a"), nullptr);
}

}  // namespace
}  // namespace mariner::node
