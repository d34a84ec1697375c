// Growing a volume: server/node/volume_resize.cc.
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "tests/server/node/node_parts.h"

namespace mariner::node {
namespace {

constexpr std::uint64_t kBefore = testing::NodeParts::kVolumeBytes;
constexpr std::uint64_t kAfter = 4 * kBefore;
constexpr std::uint64_t kBehind = kBefore / kBlockBytes;  // the first block behind the old end

class VolumeResize : public ::testing::Test {
 protected:
  volume::Layer& layer() {
    layer_ = parts_.volumes().find("db1")->volume->live_layer();
    return *layer_;
  }
  ServedVolume& served() { return *parts_.volumes().find("db1"); }
  void restart() {
    layer_.reset();
    parts_.stop();
    parts_.start();
  }
  void begin(std::uint64_t size_bytes) {
    parts_.volumes().resize("db1", size_bytes, [this](Result<ServedVolume*> resized) {
      results_.push_back(resized ? std::nullopt : std::optional(resized.error()));
    });
  }
  // Nothing, or what is wrong.
  std::optional<Error> resize(std::uint64_t size_bytes) {
    results_.clear();
    begin(size_bytes);
    parts_.run_until([&] { return !results_.empty(); });
    return results_.front();
  }
  [[nodiscard]] std::uint64_t image_bytes() { return std::filesystem::file_size(image()); }
  [[nodiscard]] std::string image() { return served().image_path; }
  [[nodiscard]] std::uint64_t stored_bytes() {
    return parts_.store().volumes()->front().size_bytes();
  }

  testing::NodeParts parts_;
  std::shared_ptr<volume::Layer> layer_;
  std::vector<std::optional<Error>> results_;
};

TEST_F(VolumeResize, GrowsWhileItIsWrittenAndStaysSo) {
  parts_.create("db1");
  parts_.write(layer(), kBehind - 1, 'a');
  results_.clear();
  begin(kAfter);
  parts_.write(layer(), 0, 'b');
  parts_.run_until([&] { return !results_.empty(); });
  ASSERT_FALSE(results_.front());
  EXPECT_EQ(layer().size_bytes(), kAfter);
  EXPECT_EQ(parts_.read(layer(), kBehind), 0);
  parts_.write(layer(), kAfter / kBlockBytes - 1, 'z');
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(served().meta.size_bytes(), kAfter);
    EXPECT_EQ(stored_bytes(), kAfter);
    EXPECT_EQ(image_bytes(), kAfter);
    EXPECT_EQ(layer().size_bytes(), kAfter);
    EXPECT_EQ(parts_.read(layer(), 0), 'b');
    EXPECT_EQ(parts_.read(layer(), kBehind - 1), 'a');
    EXPECT_EQ(parts_.read(layer(), kBehind), 0);
    EXPECT_EQ(parts_.read(layer(), kAfter / kBlockBytes - 1), 'z');
    restart();
  }
}

// The image is longer, and the store was not told.
TEST_F(VolumeResize, AfterACrashInTheMiddleItHasItsOldSizeAndGrowsAgain) {
  parts_.create("db1");
  parts_.write(layer(), 0, 'a');
  const std::string path = image();
  layer_.reset();
  parts_.stop();
  std::filesystem::resize_file(path, kAfter);
  parts_.start();
  EXPECT_EQ(layer().size_bytes(), kBefore);
  EXPECT_EQ(parts_.read(layer(), 0), 'a');
  ASSERT_FALSE(resize(2 * kBefore));
  EXPECT_EQ(layer().size_bytes(), 2 * kBefore);
  EXPECT_EQ(image_bytes(), kAfter) << "an image is never cut";
  EXPECT_EQ(parts_.read(layer(), kBehind), 0);
  parts_.write(layer(), kBehind, 'c');
  restart();
  EXPECT_EQ(layer().size_bytes(), 2 * kBefore);
  EXPECT_EQ(parts_.read(layer(), kBehind), 'c');
}

// The store was told, and nobody else.
TEST_F(VolumeResize, AfterACrashBehindTheStoreItHasItsNewSize) {
  meta::Volume meta = parts_.create("db1").meta;
  parts_.write(layer(), 0, 'a');
  std::filesystem::resize_file(image(), kAfter);
  meta.set_size_bytes(kAfter);
  ASSERT_TRUE(parts_.store().put_volume(meta));
  restart();
  EXPECT_EQ(layer().size_bytes(), kAfter);
  EXPECT_EQ(parts_.read(layer(), 0), 'a');
  EXPECT_EQ(parts_.read(layer(), kBehind), 0);
}

TEST_F(VolumeResize, NeverShrinksAndKnowsItsBounds) {
  parts_.create("db1");
  const auto refused = [this](std::uint64_t bytes) {
    const std::optional<Error> error = resize(bytes);
    return error ? error->code : ErrorCode{};
  };
  EXPECT_FALSE(resize(kAfter));
  EXPECT_FALSE(resize(kAfter)) << "it has that size";
  EXPECT_EQ(refused(kBefore), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused(kAfter - kBlockBytes), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused(0), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused((std::uint64_t{1} << 50) + 1), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused(UINT64_MAX), ErrorCode::kInvalidArgument);
  EXPECT_EQ(parts_.volumes().plan_resize("db1", kBefore).error().message.find("cannot shrink"),
            std::string("db1 has 4194304 bytes and ").size());
  EXPECT_EQ(parts_.volumes().plan_resize("db2", kAfter).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(parts_.volumes().plan_resize("db1", kAfter + 1)->size_bytes(), kAfter + kBlockBytes)
      << "whole blocks";
  EXPECT_EQ(image_bytes(), kAfter);
  EXPECT_EQ(stored_bytes(), kAfter);
}

TEST_F(VolumeResize, OfTwoAtOnceTheLargerOneStays) {
  parts_.create("db1");
  results_.clear();
  begin(kAfter);
  begin(2 * kBefore);
  parts_.run_until([&] { return results_.size() == 2; });
  EXPECT_FALSE(results_[0]);
  ASSERT_TRUE(results_[1]);
  EXPECT_EQ(results_[1]->code, ErrorCode::kBusy);
  EXPECT_EQ(layer().size_bytes(), kAfter);
  EXPECT_EQ(image_bytes(), kAfter);
}

TEST_F(VolumeResize, AVolumeThatIsDeletedMeanwhileIsGone) {
  parts_.create("db1");
  results_.clear();
  begin(kAfter);
  EXPECT_TRUE(parts_.remove("db1"));
  ASSERT_EQ(results_.size(), 1u) << "the removal waits for it";
  EXPECT_EQ(results_.front()->code, ErrorCode::kNotFound);
  EXPECT_TRUE(parts_.store().volumes()->empty());
}

TEST_F(VolumeResize, AStopWaitsForIt) {
  parts_.create("db1");
  results_.clear();
  begin(kAfter);
  restart();
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_FALSE(results_.front());
  EXPECT_EQ(layer().size_bytes(), kAfter);
  EXPECT_EQ(image_bytes(), kAfter);
}

TEST_F(VolumeResize, ViewsKeepTheirSizeAndLaterOnesHaveThePresentOne) {
  parts_.create("db1");
  parts_.write(layer(), 0, 'a');
  const SequenceNumber moment = parts_.newest(served());
  const auto expose = [&](const char* name, bool writable) {
    NewView view;
    view.name = name;
    view.at = parts_.answers(served()).moment_of(moment);
    view.writable = writable;
    ASSERT_TRUE(parts_.views().expose(served(), view));
  };
  expose("before", false);
  expose("before-w", true);
  ASSERT_FALSE(resize(kAfter));
  parts_.write(layer(), kBehind, 'b');
  expose("after", false);
  expose("after-w", true);
  // A LUN's size in blocks of 512 bytes, as READ CAPACITY (16) tells.
  const auto size_of = [&](const char* name) {
    const std::shared_ptr<scsi::Device> device = parts_.views().find(name)->device;
    const auto nexus = device->attach({{"iqn.2026-11.org.example:host", {}}});
    std::optional<std::uint64_t> bytes;
    for (int tries = 0; tries < 3 && !bytes; ++tries) {  // the first are told of the power on
      scsi::Command command;
      command.cdb = {0x9e, 0x10};
      command.cdb[13] = 32;
      command.unit_blocks = device->transfer_of(0, command.cdb).unit_blocks;
      command.nexus = nexus;
      device->execute(std::move(command), [&](const scsi::Response& response) {
        if (response.status != scsi::Status::kGood) return;
        bytes = 0;
        for (int i = 0; i < 8; ++i) {
          *bytes = *bytes << 8 | std::to_integer<std::uint64_t>(
                                     response.data_in.front().bytes()[static_cast<std::size_t>(i)]);
        }
        bytes = (*bytes + 1) * 512;
      });
    }
    return bytes.value_or(0);
  };
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(size_of("before"), kBefore);
    EXPECT_EQ(size_of("before-w"), kBefore);
    EXPECT_EQ(size_of("after"), kAfter);
    EXPECT_EQ(size_of("after-w"), kAfter);
    EXPECT_EQ(parts_.read(*parts_.views().find("after-w")->overlay->live_layer(), kBehind), 0);
    EXPECT_EQ(parts_.read(*parts_.views().find("after-w")->overlay->live_layer(), 0), 'a');
    restart();
  }
}

}  // namespace
}  // namespace mariner::node
