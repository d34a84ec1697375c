// What keeps room in a small log, with a keeper that may know nothing.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/node/local_keeper.h"
#include "server/node/log_space.h"
#include "tests/server/node/node_parts.h"

namespace mariner::node::testing {

// Marks and views are known, or not; and marks may be unreadable.
class UncertainKeeper final : public HistoryKeeper {
 public:
  explicit UncertainKeeper(HistoryKeeper& keeper) : keeper_(keeper) {}
  std::vector<VolumeId> volumes() const override { return keeper_.volumes(); }
  std::shared_ptr<volume::Reclaimable> find(VolumeId volume) override {
    return keeper_.find(volume);
  }
  std::optional<Window> window(VolumeId volume) const override { return keeper_.window(volume); }
  bool knows() const override { return known; }
  Result<std::vector<meta::Mark>> marks(VolumeId volume) const override {
    if (!readable) return Error{ErrorCode::kCorrupt, "a mark cannot be read"};
    if (!known) return std::vector<meta::Mark>{};
    return keeper_.marks(volume);
  }
  std::vector<meta::View> views(VolumeId volume) const override {
    return known ? keeper_.views(volume) : std::vector<meta::View>{};
  }
  std::vector<index::IndexMoment> clean_moments(VolumeId volume) const override {
    return keeper_.clean_moments(volume);
  }
  void drop_view(const std::string& name) override { keeper_.drop_view(name); }
  bool drop_mark(const meta::Mark& mark) override { return keeper_.drop_mark(mark); }

  bool known = true;
  bool readable = true;

 private:
  HistoryKeeper& keeper_;
};

// A log of four tracks, of which two are a reserve, so that room is always low.
class LogSpaceTest : public ::testing::Test {
 protected:
  explicit LogSpaceTest(std::uint64_t tracks = 4) : parts_(tracks) {
    parts_.create("db1");
    open();
  }
  ~LogSpaceTest() override { close(); }

  void open(OnFull on_full = OnFull::kStopWrites) {
    keeper_ = std::make_unique<LocalKeeper>(
        parts_.volumes(), parts_.views(), parts_.store(),
        [this](const std::string& name) { EXPECT_TRUE(parts_.views().unexpose(name)); });
    uncertain_ = std::make_unique<UncertainKeeper>(*keeper_);
    space_ = std::make_unique<LogSpace>(
        LogSpace::Parts{parts_.log_stack(), *uncertain_, parts_.store(), parts_.worker(),
                        parts_.executor(), parts_.log()},
        on_full);
  }
  void close() {
    space_->stop();
    parts_.run_until([this] { return space_->idle(); });
    space_.reset();
  }
  ServedVolume& volume() { return *parts_.volumes().find("db1"); }
  void write(std::uint64_t block, char byte) {
    parts_.write(*volume().volume->live_layer(), block, byte);
  }
  void mark(SequenceNumber at) {
    meta::Mark mark;
    mark.set_volume_id(volume().volume->id().value);
    mark.set_name("release");
    mark.set_sequence(at.value);
    mark.set_time_ns(parts_.answers(volume()).moment_of(at).time.ns);
    ASSERT_TRUE(parts_.store().put_mark(mark));
  }
  // The next write begins another track.
  void next_track() { parts_.log_stack().writer().leave_tracks(); }
  void look() {
    space_->check();
    bool later = false;
    parts_.executor().after(std::chrono::milliseconds(30), [&] { later = true; });
    parts_.run_until([&] { return later && space_->idle(); });
  }
  SequenceNumber oldest() { return volume().volume->index().oldest().sequence; }

  NodeParts parts_;
  std::unique_ptr<LocalKeeper> keeper_;
  std::unique_ptr<UncertainKeeper> uncertain_;
  std::unique_ptr<LogSpace> space_;
};

}  // namespace mariner::node::testing
