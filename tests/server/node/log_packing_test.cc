#include "server/node/log_packing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>

#include "proto/payload.h"
#include "server/node/event_loop.h"

namespace mariner::node {
namespace {

using ::testing::HasSubstr;

TEST(PackingOptions, AreWhatIsConfigured) {
  const logging::PackingOptions options =
      packing_options({.enabled = true, .after = std::chrono::minutes(3), .cpu_share = 0.5});
  EXPECT_TRUE(options.enabled);
  EXPECT_EQ(options.cold_after, std::chrono::minutes(3));
  EXPECT_EQ(options.cpu_share, 0.5);
}

class LogPackingTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kVolume = 7;

  LogPackingTest() {
    std::string name = (std::filesystem::temp_directory_path() / "mariner-log-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
    ring_ = *logging::IoRing::create(loop_);
    CHECK(loop_.wake_on(ring_->fd()).has_value());
    loop_.set_turn_hook([this] { ring_->reap(); });
  }
  ~LogPackingTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
    ::close(fd_);
  }

  void open(bool slots) {
    LogSettings settings;
    settings.paths = {directory_ + "/log"};
    settings.size_bytes = logging::kReservedBytes + 12 * std::uint64_t{logging::kTrackBytesMin};
    settings.track_bytes = logging::kTrackBytesMin;
    settings.slots = slots;
    auto stack = LogStack::open(
        settings, loop_, *ring_, [](const std::string&) { return LogStack::Known{}; },
        [](const logging::Record&, const logging::LogLocation&) {});
    ASSERT_TRUE(stack) << stack.error().message;
    stack_ = *std::move(stack);
    packing_ = std::make_unique<LogPacking>(*stack_, CompactConfig{.cpu_share = 1}, log_);
  }
  void close() {
    stack_->stop();
    EXPECT_TRUE(run_until([this] { return stack_->idle(); }));
    packing_.reset();
    stack_.reset();
  }
  // False when it takes too long.
  bool run_until(const std::function<bool()>& done) {
    const auto end = loop_.monotonic_time() + std::chrono::seconds(30);
    turn_again(end);
    loop_.run_until([&] { return done() || loop_.monotonic_time() > end; });
    return done();
  }
  // So that there are turns in which to look.
  void turn_again(std::chrono::nanoseconds end) {
    loop_.after(std::chrono::milliseconds(5), [this, end] {
      if (loop_.monotonic_time() < end) turn_again(end);
    });
  }
  // A write of 1 MiB that compresses well.
  void write() {
    Payload payload = Payload::zeroed(1u << 20);
    for (std::size_t i = 0; i < payload.size(); i += 64) payload.bytes()[i] = std::byte{1};
    logging::Record record;
    record.volume = VolumeId{kVolume};
    record.epoch = Epoch{1};
    record.sequence = SequenceNumber{++written_};
    record.time = VersionTime{written_};
    record.extent = {Lbn{0}, BlockCount{256}};
    record.payload_blocks = 256;
    bool done = false;
    stack_->writer().append(record, PayloadSlice{payload, 0, payload.size()},
                            logging::LogWriter::Urgency::kOrdinary,
                            [&done](const Result<logging::LoggedAt>& at) {
                              EXPECT_TRUE(at) << at.error().message;
                              done = true;
                            });
    ASSERT_TRUE(run_until([&done] { return done; }));
  }
  std::string told() {
    std::string all(static_cast<std::size_t>(::lseek(fd_, 0, SEEK_END)), ' ');
    EXPECT_EQ(::pread(fd_, all.data(), all.size(), 0), static_cast<ssize_t>(all.size()));
    return all;
  }

  const int fd_ = ::memfd_create("log", 0);
  std::string directory_;
  EventLoop loop_;
  std::unique_ptr<logging::IoRing> ring_;
  Log log_{{.fd = fd_}};
  std::unique_ptr<LogStack> stack_;
  std::unique_ptr<LogPacking> packing_;
  std::uint64_t written_ = 0;
};

TEST_F(LogPackingTest, CompactsWhatIsCompleteWhenItIsAsked) {
  open(true);
  stack_->start();
  for (int i = 0; i < 20; ++i) write();
  const std::uint64_t used = stack_->writer().used_bytes();
  EXPECT_EQ(stack_->writer().history_bytes(), used) << "nothing is compacted by itself";
  ASSERT_TRUE(packing_->compact_now());
  EXPECT_TRUE(packing_->compacting());
  ASSERT_TRUE(run_until([this] { return !packing_->compacting(); }));
  EXPECT_EQ(packing_->trouble(), "");
  EXPECT_EQ(stack_->writer().history_bytes(), used);
  EXPECT_LT(stack_->writer().used_bytes(), used - logging::kTrackBytesMin / 2);
  close();
}

TEST_F(LogPackingTest, ALogWithoutSlotsSaysWhatToDo) {
  open(false);
  const Result<void> refused = packing_->compact_now();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(refused.error().message, HasSubstr(directory_ + "/log"));
  EXPECT_THAT(refused.error().message, HasSubstr("add a new log disk"));
  EXPECT_FALSE(packing_->compacting());
  close();
}

TEST_F(LogPackingTest, WhatIsStoppedInTheMiddleIsSaid) {
  open(true);
  stack_->start();
  for (int i = 0; i < 20; ++i) write();
  ASSERT_TRUE(packing_->compact_now());
  stack_->stop();
  ASSERT_TRUE(run_until([this] { return stack_->idle(); }));
  EXPECT_FALSE(packing_->compacting());
  EXPECT_THAT(packing_->trouble(), HasSubstr("stopped"));
  close();
}

}  // namespace
}  // namespace mariner::node
