#include "logging/durability_probe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "logging/recovery.h"
#include "tests/logging/log_testing.h"
#include "tests/logging/temporary_directory.h"

namespace mariner::logging {
namespace {

using mariner::test::ManualExecutor;
using std::chrono::microseconds;
using std::chrono::nanoseconds;

// A device on which the `index`th write of either way takes a time of the test's choice.
struct Device {
  std::function<microseconds(std::uint32_t)> fua = [](std::uint32_t) { return microseconds(100); };
  std::function<microseconds(std::uint32_t)> flush = [](std::uint32_t) {
    return microseconds(100);
  };
  bool fua_works = true;
  bool flush_works = true;
  nanoseconds now{0};
  std::string order{};  // "f" fua, "l" flush

  DurableChoice measure() {
    DurableTrial trial;
    trial.write = [this](DurableWay way, std::uint32_t index) -> Result<void> {
      const bool is_fua = way == DurableWay::kFua;
      order += is_fua ? 'f' : 'l';
      now += is_fua ? fua(index) : flush(index);
      if (is_fua ? fua_works : flush_works) return {};
      return Error{ErrorCode::kIo, "cannot"};
    };
    trial.now = [this] { return now; };
    return measure_durable_ways(trial);
  }
};

TEST(DurabilityProbe, TheFasterWayIsTakenIfItIsClearlyFaster) {
  struct Case {
    int fua_us;
    int flush_us;
    DurableWay way;
  };
  for (const Case& c : {Case{100, 50, DurableWay::kFlush}, Case{50, 100, DurableWay::kFua},
                        Case{100, 100, DurableWay::kFua}, Case{100, 91, DurableWay::kFua},
                        Case{100, 89, DurableWay::kFlush}, Case{0, 0, DurableWay::kFua}}) {
    Device device;
    device.fua = [&](std::uint32_t) { return microseconds(c.fua_us); };
    device.flush = [&](std::uint32_t) { return microseconds(c.flush_us); };
    const DurableChoice choice = device.measure();
    EXPECT_EQ(choice.way, c.way) << c.fua_us << " " << c.flush_us;
    EXPECT_EQ(choice.writes, kTrialWritesMax);
    EXPECT_EQ(choice.fua, microseconds(c.fua_us));
    EXPECT_EQ(choice.flush, microseconds(c.flush_us));
    EXPECT_FALSE(choice.configured);
  }
}

TEST(DurabilityProbe, AFewSlowWritesDecideNothing) {
  Device device;
  device.flush = [](std::uint32_t index) { return microseconds(index % 3 == 0 ? 5000 : 10); };
  const DurableChoice choice = device.measure();
  EXPECT_EQ(choice.way, DurableWay::kFlush);
  EXPECT_EQ(choice.flush, microseconds(10));
}

TEST(DurabilityProbe, TheWaysAlternateAndEachGoesFirstAsOften) {
  Device device;
  device.measure();
  EXPECT_EQ(device.order.substr(0, 8), "fllffllf");
  EXPECT_EQ(device.order.size(), 2 * kTrialWritesMax);
}

TEST(DurabilityProbe, ASlowDiskEndsItInTime) {
  Device device;
  device.fua = [](std::uint32_t) { return microseconds(20'000); };
  device.flush = [](std::uint32_t) { return microseconds(10'000); };
  const DurableChoice choice = device.measure();
  EXPECT_EQ(choice.writes, 10u) << "300 ms of 30 ms each";
  EXPECT_EQ(choice.way, DurableWay::kFlush);
  EXPECT_EQ(device.now, kTrialTimeMax);
}

TEST(DurabilityProbe, ADiskTooSlowToTellGoesByFua) {
  Device device;
  device.fua = [](std::uint32_t) { return microseconds(200'000); };
  device.flush = [](std::uint32_t) { return microseconds(1'000); };
  const DurableChoice choice = device.measure();
  EXPECT_EQ(choice.way, DurableWay::kFua);
  EXPECT_EQ(choice.writes, 0u);
  EXPECT_EQ(choice.not_measured, "only 2 writes of each kind in 300 ms");
}

TEST(DurabilityProbe, AWayThatDoesNotWorkIsNotTaken) {
  Device no_fua{.fua_works = false};
  EXPECT_EQ(no_fua.measure().way, DurableWay::kFlush);
  Device no_flush{.flush_works = false};
  const DurableChoice choice = no_flush.measure();
  EXPECT_EQ(choice.way, DurableWay::kFua);
  EXPECT_EQ(choice.not_measured, "flush failed: cannot");
  Device neither{.fua_works = false, .flush_works = false};
  EXPECT_EQ(neither.measure().way, DurableWay::kFua);
  EXPECT_EQ(neither.order.size(), 2u);
}

TEST(DurabilityProbe, SaysWhatItFound) {
  DurableChoice choice;
  choice.way = DurableWay::kFlush;
  choice.writes = 32;
  choice.fua = nanoseconds(110'400);
  choice.flush = nanoseconds(89'600);
  EXPECT_EQ(
      to_string(choice),
      "a flush behind each write (flush), measured at start: fua 110 us, flush 90 us (medians "
      "of 32 writes of 8 KiB)");
  EXPECT_EQ(to_string(DurableChoice{.configured = true}),
            "each write forced to the medium (fua), as configured");
  EXPECT_EQ(to_string(DurableChoice{.not_measured = "no room"}),
            "each write forced to the medium (fua), not measured: no room");
}

class DurabilityProbeOnADisk : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string path = directory_.file("log0");
    ASSERT_TRUE(
        FileDisk::create(path, FileDisk::Caching::kDirect, kReservedBytes + 4 * test::kTrackBytes)
            .has_value());
    ring_ = *IoRing::create(executor_);
    disk_ = *FileDisk::open(path, FileDisk::Caching::kDirect, ring_.get());
    superblock_ = *format_log(*disk_, test::log_id(), 0, test::kTrackBytes, 1);
    // What every place holds is known, so that a write anywhere shows.
    const Payload filler = test::payload_of(1, (kReservedBlocks - 25));
    const ConstBytes part = filler.bytes();
    ASSERT_TRUE(disk_->write(25 * kBlockBytes, {&part, 1}, Durability::kDurable).has_value());
  }
  void TearDown() override {
    executor_.run_ready();
    disk_.reset();
    ring_.reset();
  }
  std::vector<std::byte> bytes() {
    Payload to = Payload::allocate(disk_->size_bytes());
    EXPECT_TRUE(disk_->read(0, to.bytes()).has_value());
    return {to.bytes().begin(), to.bytes().end()};
  }
  DurableChoice choose(std::optional<DurableWay> configured) {
    return choose_durable_way({*disk_, *ring_, executor_, superblock_}, configured);
  }

  test::TemporaryDirectory directory_;
  ManualExecutor executor_;
  std::unique_ptr<IoRing> ring_;
  std::unique_ptr<FileDisk> disk_;
  Superblock superblock_;
};

TEST_F(DurabilityProbeOnADisk, WritesToTheScratchAreaAlone) {
  const std::vector<std::byte> before = bytes();
  const DurableChoice choice = choose(std::nullopt);
  EXPECT_EQ(choice.writes, kTrialWritesMax) << choice.not_measured;
  EXPECT_EQ(choice.way, DurableWay::kFua) << "this clock stands: equally fast";
  const std::vector<std::byte> after = bytes();
  const ByteRange scratch{192 * kBlockBytes, 64 * kBlockBytes};
  ASSERT_EQ(superblock_.scratch(), scratch);
  for (std::uint64_t at = 0; at < before.size(); at += kBlockBytes) {
    const bool same = std::equal(before.begin() + static_cast<std::ptrdiff_t>(at),
                                 before.begin() + static_cast<std::ptrdiff_t>(at + kBlockBytes),
                                 after.begin() + static_cast<std::ptrdiff_t>(at));
    EXPECT_EQ(same, at < scratch.offset || at >= scratch.end()) << "block " << at / kBlockBytes;
  }
  EXPECT_EQ(ring_->in_flight(), 0u);
  const LogDiskRef ref{*disk_, superblock_};
  EXPECT_TRUE(recover_log({&ref, 1}, 0, [](const Record&, const LogLocation&) {}));
}

TEST_F(DurabilityProbeOnADisk, WhatIsConfiguredIsNotMeasured) {
  const std::vector<std::byte> before = bytes();
  for (const DurableWay way : {DurableWay::kFlush, DurableWay::kFua}) {
    const DurableChoice choice = choose(way);
    EXPECT_EQ(choice.way, way);
    EXPECT_TRUE(choice.configured);
    EXPECT_EQ(disk_->durable_way(), way);
  }
  EXPECT_EQ(bytes(), before);
}

TEST_F(DurabilityProbeOnADisk, ALogWithoutScratchIsNotMeasured) {
  const std::vector<std::byte> before = bytes();
  superblock_.track_count = 500 * 200;
  superblock_.list_blocks = list_blocks_for(superblock_.track_count);
  ASSERT_FALSE(superblock_.scratch().has_value());
  const DurableChoice choice = choose(std::nullopt);
  EXPECT_EQ(choice.way, DurableWay::kFua);
  EXPECT_EQ(choice.writes, 0u);
  EXPECT_FALSE(choice.not_measured.empty());
  EXPECT_EQ(bytes(), before);
}

}  // namespace
}  // namespace mariner::logging
