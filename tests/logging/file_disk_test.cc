#include "logging/file_disk.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>

#include "tests/logging/log_testing.h"
#include "tests/logging/submit_spy.h"
#include "tests/logging/temporary_directory.h"

namespace mariner::logging {
namespace {

using mariner::test::ManualExecutor;
using test::payload_of;
using Caching = FileDisk::Caching;

constexpr std::uint64_t kSize = 8u << 20;

struct Kind {
  Caching caching;
  DurableWay way;
};

class FileDiskTest : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    auto ring = IoRing::create(executor_, {.entries = 16});
    ASSERT_TRUE(ring.has_value()) << to_string(ring.error());
    ring_ = std::move(*ring);
    ASSERT_TRUE(FileDisk::create(path_, GetParam().caching, kSize).has_value());
    open();
  }
  void TearDown() override {
    drain();
    disk_.reset();
    ring_.reset();
  }
  void open() {
    auto disk = FileDisk::open(path_, GetParam().caching, ring_.get());
    ASSERT_TRUE(disk.has_value()) << to_string(disk.error());
    disk_ = std::move(*disk);
    disk_->set_durable_way(GetParam().way);
  }
  void drain() {
    do {
      executor_.run_ready();
      if (ring_->in_flight() > 0) ring_->wait();
    } while (ring_->in_flight() > 0 || !executor_.idle());
  }
  Result<void> async_write(std::uint64_t offset, std::vector<ConstBytes> parts) {
    std::optional<Result<void>> outcome;
    disk_->async_write(offset, std::move(parts), Durability::kDurable,
                       [&](Result<void> result) { outcome = std::move(result); });
    EXPECT_FALSE(outcome.has_value()) << "never before the call has returned";
    drain();
    return *outcome;
  }
  Result<void> async_read(std::uint64_t offset, std::span<std::byte> to) {
    std::optional<Result<void>> outcome;
    disk_->async_read(offset, to, [&](Result<void> result) { outcome = std::move(result); });
    drain();
    return *outcome;
  }
  bool holds(std::uint64_t offset, const Payload& expected) {
    Payload to = Payload::allocate(expected.size());
    const Result<void> result = disk_->read(offset, to.bytes());
    return result && std::ranges::equal(to.bytes(), expected.bytes());
  }

  test::TemporaryDirectory directory_;
  std::string path_ = directory_.file("log0");
  ManualExecutor executor_;
  std::unique_ptr<IoRing> ring_;
  std::unique_ptr<FileDisk> disk_;
};

INSTANTIATE_TEST_SUITE_P(Kind, FileDiskTest,
                         ::testing::Values(Kind{Caching::kDirect, DurableWay::kFua},
                                           Kind{Caching::kDirect, DurableWay::kFlush},
                                           Kind{Caching::kBuffered, DurableWay::kFua},
                                           Kind{Caching::kBuffered, DurableWay::kFlush}),
                         [](const auto& parameter) {
                           return std::string(parameter.param.caching == Caching::kDirect
                                                  ? "Direct"
                                                  : "Buffered") +
                                  (parameter.param.way == DurableWay::kFua ? "Fua" : "Flush");
                         });

TEST_P(FileDiskTest, HasItsSizeAndAlignment) {
  EXPECT_EQ(disk_->size_bytes(), kSize);
  if (GetParam().caching == Caching::kDirect) {
    // Which one depends on the device under the test's folder; that it is enough is tried below.
    EXPECT_TRUE(disk_->alignment() == 512 || disk_->alignment() == 4096) << disk_->alignment();
  } else {
    EXPECT_EQ(disk_->alignment(), 1u);
  }
  EXPECT_EQ(disk_->path(), path_);
  if (GetParam().caching == Caching::kDirect) {
    EXPECT_GE(disk_->allocated_bytes(), kSize);
  } else {
    EXPECT_LT(disk_->allocated_bytes(), kSize);
  }
}

TEST_P(FileDiskTest, IsForItsOwnerOnly) {
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_P(FileDiskTest, WhatIsWrittenPastTheCacheIsFoundWhicheverWayItIsRead) {
  const Payload before = payload_of(1, 4);
  const ConstBytes part = before.bytes();
  ASSERT_TRUE(disk_->write(0, {&part, 1}, Durability::kVolatile));
  ASSERT_TRUE(holds(0, before)) << "in the page cache, where there is one";
  const Payload after = payload_of(2, 2);
  const ConstBytes first = after.bytes().first(kBlockBytes);
  const ConstBytes second = after.bytes().last(kBlockBytes);
  ASSERT_TRUE(disk_->write_past_cache(
      std::vector<Disk::Write>{{kBlockBytes, {first, second}}, {kSize / 2, {second, first}}}));
  EXPECT_TRUE(holds(kBlockBytes, after));
  Payload to = Payload::allocate(after.size());
  ASSERT_TRUE(async_read(kBlockBytes, to.bytes()));
  EXPECT_TRUE(std::ranges::equal(to.bytes(), after.bytes()));
  if (disk_->try_read(kBlockBytes, to.bytes())) {
    EXPECT_TRUE(std::ranges::equal(to.bytes(), after.bytes()));
  }
  ASSERT_TRUE(disk_->read(kSize / 2, to.bytes()));
  EXPECT_TRUE(std::ranges::equal(to.bytes().first(kBlockBytes), second));
  EXPECT_TRUE(disk_->flush());
}

TEST_P(FileDiskTest, TellsWhatHasItsPlaceOnTheDevice) {
  const Payload bytes = payload_of(1, 4);
  const ConstBytes part = bytes.bytes();
  ASSERT_TRUE(disk_->write(8 * kBlockBytes, {&part, 1}, Durability::kVolatile));
  ASSERT_TRUE(disk_->flush());
  ASSERT_TRUE(disk_->write(12 * kBlockBytes, {&part, 1}, Durability::kVolatile));
  ASSERT_TRUE(disk_->flush());
  EXPECT_TRUE(disk_->has_place({8 * kBlockBytes, 8 * kBlockBytes}));
  EXPECT_TRUE(disk_->has_place({9 * kBlockBytes, kBlockBytes}));
  // (Space that was taken and never written to is no place: the first write there changes more.)
  EXPECT_FALSE(disk_->has_place({7 * kBlockBytes, 2 * kBlockBytes}));
  EXPECT_FALSE(disk_->has_place({15 * kBlockBytes, 2 * kBlockBytes}));
  EXPECT_FALSE(disk_->has_place({100 * kBlockBytes, kBlockBytes}));
}

TEST_P(FileDiskTest, WhatCannotGoPastTheCacheGoesThroughIt) {
  if (GetParam().caching == Caching::kDirect) return;  // there is none
  const Payload bytes = payload_of(3, 1);
  const ConstBytes odd = bytes.bytes().first(100);
  ASSERT_TRUE(disk_->write_past_cache(
      std::vector<Disk::Write>{{50, {odd}}, {kBlockBytes, {bytes.bytes()}}}));
  Payload to = Payload::allocate(kBlockBytes);
  ASSERT_TRUE(disk_->read(50, to.bytes().first(100)));
  EXPECT_TRUE(std::ranges::equal(to.bytes().first(100), odd));
  EXPECT_TRUE(holds(kBlockBytes, bytes));
}

TEST_P(FileDiskTest, ItsAlignmentIsEnough) {
  const std::uint32_t unit = disk_->alignment();
  Payload block = payload_of(1, 2);
  const ConstBytes part(block.data() + unit, unit);
  ASSERT_TRUE(disk_->write(3 * unit, {&part, 1}, Durability::kDurable).has_value());
  ASSERT_TRUE(async_write(5 * unit, {part}).has_value());
  Payload to = Payload::allocate(2 * kBlockBytes);
  for (const std::uint64_t at : {3 * unit, 5 * unit}) {
    ASSERT_TRUE(disk_->read(at, to.bytes().subspan(unit, unit)).has_value());
    EXPECT_TRUE(std::ranges::equal(to.bytes().subspan(unit, unit), part));
  }
}

TEST_P(FileDiskTest, ADurableWriteIsForcedOrFlushedAndAVolatileOneNeither) {
  const bool forced = GetParam().way == DurableWay::kFua;
  test::submit_spy().reset();
  const Payload a = payload_of(1, 1);
  ASSERT_TRUE(async_write(0, {a.bytes()}).has_value());
  EXPECT_EQ(test::submit_spy().forced_writes, forced ? 1u : 0u);
  EXPECT_EQ(test::submit_spy().linked_flushes, forced ? 0u : 1u);
  EXPECT_EQ(test::submit_spy().writes, 1u);
  disk_->async_write(0, {a.bytes()}, Durability::kVolatile, [](const Result<void>&) {});
  drain();
  EXPECT_EQ(test::submit_spy().forced_writes, forced ? 1u : 0u);
  EXPECT_EQ(test::submit_spy().linked_flushes, forced ? 0u : 1u);
  EXPECT_EQ(test::submit_spy().writes, 2u);
}

TEST_P(FileDiskTest, AnAsynchronousFlushIsOneOfTheDataAndTellsItsEnd) {
  const Payload a = payload_of(1, 1);
  disk_->async_write(0, {a.bytes()}, Durability::kVolatile, [](const Result<void>&) {});
  drain();
  test::submit_spy().reset();
  std::optional<Result<void>> outcome;
  disk_->async_flush([&](Result<void> result) { outcome = std::move(result); });
  EXPECT_FALSE(outcome.has_value()) << "never before the call has returned";
  drain();
  ASSERT_TRUE(outcome.has_value());
  EXPECT_TRUE(outcome->has_value());
  EXPECT_EQ(test::submit_spy().data_flushes, 1u);
  EXPECT_EQ(test::submit_spy().writes, 0u);
  EXPECT_TRUE(holds(0, a));
}

TEST_P(FileDiskTest, AFileIsNeverToldToForget) { EXPECT_FALSE(disk_->can_forget()); }

TEST_P(FileDiskTest, WritesPartsOneAfterAnother) {
  const Payload a = payload_of(1, 1);
  const Payload b = payload_of(2, 3);
  const ConstBytes parts[] = {a.bytes(), b.bytes()};
  ASSERT_TRUE(disk_->write(8192, parts, Durability::kDurable).has_value());
  EXPECT_TRUE(holds(8192, a));
  EXPECT_TRUE(holds(12288, b));
  disk_->start_writeback({8192, a.size() + b.size()});
  ASSERT_TRUE(disk_->wait_for_writeback({8192, a.size() + b.size()}).has_value());
  ASSERT_TRUE(disk_->flush().has_value());
  EXPECT_TRUE(holds(8192, a));
}

TEST_P(FileDiskTest, MorePartsThanOneCallTakes) {
  const Payload one = payload_of(1, 1);
  std::vector<ConstBytes> many;
  for (int i = 0; i < 1023; ++i) many.push_back(one.bytes());
  EXPECT_TRUE(disk_->write(0, many, Durability::kVolatile).has_value());
  many.push_back(one.bytes());
  many.push_back(one.bytes());
  EXPECT_TRUE(disk_->write(0, many, Durability::kVolatile).has_value()) << "1,025 parts";
  EXPECT_TRUE(holds(1024 * kBlockBytes, one));
}

TEST_P(FileDiskTest, AsynchronousCallsAgreeWithBlockingOnes) {
  const Payload a = payload_of(3, 2);
  const Payload b = payload_of(4, 1);
  ASSERT_TRUE(async_write(4096, {a.bytes(), b.bytes()}).has_value());
  EXPECT_TRUE(holds(4096, a));
  EXPECT_TRUE(holds(12288, b));
  Payload to = Payload::allocate(a.size());
  ASSERT_TRUE(async_read(4096, to.bytes()).has_value());
  EXPECT_TRUE(std::ranges::equal(to.bytes(), a.bytes()));
}

TEST_P(FileDiskTest, ManyAtOnce) {
  std::vector<Payload> payloads;
  int done = 0;
  for (std::uint64_t i = 0; i < 64; ++i) {
    payloads.push_back(payload_of(i, 1));
    disk_->async_write(i * kBlockBytes, {payloads.back().bytes()}, Durability::kVolatile,
                       [&](const Result<void>& result) { done += result.has_value() ? 1 : 0; });
  }
  drain();
  EXPECT_EQ(done, 64);
  for (std::uint64_t i = 0; i < 64; ++i) EXPECT_TRUE(holds(i * kBlockBytes, payloads[i]));
}

TEST_P(FileDiskTest, ReadingBehindTheEndIsAnErrorThatNamesThePlace) {
  Payload to = Payload::allocate(2 * kBlockBytes);
  for (const bool blocking : {true, false}) {
    const Result<void> result = blocking ? disk_->read(kSize - kBlockBytes, to.bytes())
                                         : async_read(kSize - kBlockBytes, to.bytes());
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, ErrorCode::kIo);
    EXPECT_NE(result.error().message.find(path_), std::string::npos);
  }
}

TEST_P(FileDiskTest, DiscardedRangesReadAsZeros) {
  const Payload a = payload_of(5, 4);
  const ConstBytes part = a.bytes();
  ASSERT_TRUE(disk_->write(0, {&part, 1}, Durability::kDurable).has_value());
  ASSERT_TRUE(disk_->discard({4096, 8192}).has_value());
  EXPECT_TRUE(holds(4096, Payload::zeroed(8192)));
  Payload first = Payload::allocate(4096);
  ASSERT_TRUE(disk_->read(0, first.bytes()).has_value());
  EXPECT_TRUE(std::ranges::equal(first.bytes(), a.bytes().first(4096)));
  EXPECT_EQ(disk_->size_bytes(), kSize);
}

TEST_P(FileDiskTest, IsLockedAgainstASecondOpening) {
  const auto second = FileDisk::open(path_, GetParam().caching, nullptr);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::kBusy);
  disk_.reset();
  open();
}

TEST_P(FileDiskTest, CreatesOnlyWhatIsNotThereAndOpensOnlyWhatIs) {
  EXPECT_EQ(FileDisk::create(path_, GetParam().caching, kSize).error().code,
            ErrorCode::kAlreadyExists);
  EXPECT_EQ(FileDisk::open(path_ + "x", GetParam().caching, nullptr).error().code,
            ErrorCode::kNotFound);
  EXPECT_EQ(FileDisk::create(directory_.file("no/such"), GetParam().caching, kSize).error().code,
            ErrorCode::kIo);
  EXPECT_FALSE(FileDisk::open("/dev/null", Caching::kBuffered, nullptr).has_value());
}

TEST_P(FileDiskTest, Resizes) {
  ASSERT_TRUE(disk_->resize(2 * kSize).has_value());
  EXPECT_EQ(disk_->size_bytes(), 2 * kSize);
  EXPECT_TRUE(holds(2 * kSize - 4096, Payload::zeroed(4096)));
  ASSERT_TRUE(disk_->resize(kSize).has_value());
  disk_.reset();
  open();
  EXPECT_EQ(disk_->size_bytes(), kSize);
}

TEST_P(FileDiskTest, TryReadGivesTheBytesOrNothing) {
  const Payload a = payload_of(6, 1);
  const ConstBytes part = a.bytes();
  ASSERT_TRUE(disk_->write(0, {&part, 1}, Durability::kVolatile).has_value());
  Payload to = Payload::allocate(4096);
  if (disk_->try_read(0, to.bytes())) {
    EXPECT_TRUE(std::ranges::equal(to.bytes(), a.bytes()));
  }
}

TEST_P(FileDiskTest, ALogLivesOnIt) {
  if (GetParam().caching == Caching::kBuffered) {
    ASSERT_TRUE(disk_->resize(kReservedBytes + 4 * test::kTrackBytes).has_value());
  } else {
    disk_.reset();
    path_ = directory_.file("log1");
    ASSERT_TRUE(FileDisk::create(path_, GetParam().caching, kReservedBytes + 4 * test::kTrackBytes)
                    .has_value());
    open();
  }
  const Result<Superblock> superblock = format_log(*disk_, test::log_id(), 0, test::kTrackBytes, 1);
  ASSERT_TRUE(superblock.has_value());
  const auto ignore = [](const Record&, const LogLocation&) {};
  {
    const LogDiskRef ref{*disk_, *superblock};
    const Result<Recovered> fresh = recover_log({&ref, 1}, 2, ignore);
    ASSERT_TRUE(fresh.has_value());
    LogDisk log_disk({*disk_, *superblock, fresh->disks[0].tracks}, fresh->disks[0].tail);
    LogWriter writer(executor_, fresh->next_ordinal, {});
    writer.add(log_disk);
    int done = 0;
    for (std::uint64_t i = 1; i <= 40; ++i) {
      writer.append(test::record_of(1, i, static_cast<std::uint32_t>(i)),
                    test::whole(payload_of(i, static_cast<std::uint32_t>(i))),
                    LogWriter::Urgency::kOrdinary,
                    [&](const Result<LoggedAt>& at) { done += at.has_value() ? 1 : 0; });
      if (i % 7 == 0) drain();
    }
    drain();
    EXPECT_EQ(done, 40);
  }
  std::uint64_t seen = 0;
  const LogDisks disks(*disk_, superblock->batch_format());
  const LogDiskRef ref{*disk_, *superblock};
  const Result<Recovered> found =
      recover_log({&ref, 1}, 2, [&](const Record& record, const LogLocation& at) {
        EXPECT_EQ(record.sequence.value, ++seen);
        Payload to = Payload::allocate(seen * kBlockBytes);
        EXPECT_TRUE(read_log_blocking(disks, {at, record.volume, record.sequence, 0, to.bytes()})
                        .has_value());
      });
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(seen, 40u);
  EXPECT_TRUE(found->damage.empty());
}

TEST(FileDisk, ADirectFileThatDoesNotFitIsNotLeftBehind) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.file("huge");
  EXPECT_FALSE(FileDisk::create(path, Caching::kDirect, std::uint64_t{1} << 62).has_value());
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
}

TEST(FileDisk, SyncsADirectory) {
  const test::TemporaryDirectory directory;
  EXPECT_TRUE(sync_directory_of(directory.file("anything")).has_value());
  EXPECT_FALSE(sync_directory_of(directory.file("no/such")).has_value());
}

// A file as a block device, where this process may make one.
class LoopDevice {
 public:
  LoopDevice(const std::string& path, std::uint32_t sector_bytes) {
    const int control = ::open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    for (int attempt = 0; control >= 0 && file >= 0 && fd_ < 0 && attempt < 8; ++attempt) {
      const int number = ::ioctl(control, LOOP_CTL_GET_FREE);
      if (number < 0) break;
      path_ = "/dev/loop" + std::to_string(number);
      fd_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
      loop_config config{};
      config.fd = static_cast<std::uint32_t>(file);
      config.block_size = sector_bytes;
      config.info.lo_flags = LO_FLAGS_AUTOCLEAR;  // gone with its last user
      if (fd_ >= 0 && ::ioctl(fd_, LOOP_CONFIGURE, &config) != 0) {
        ::close(fd_);  // somebody else was faster
        fd_ = -1;
      }
    }
    if (control >= 0) ::close(control);
    if (file >= 0) ::close(file);
  }
  ~LoopDevice() {
    if (fd_ >= 0) ::close(fd_);
  }
  LoopDevice(const LoopDevice&) = delete;
  LoopDevice& operator=(const LoopDevice&) = delete;

  [[nodiscard]] bool made() const { return fd_ >= 0; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  int fd_ = -1;
};

class BlockDeviceTest : public ::testing::TestWithParam<std::uint32_t> {};

INSTANTIATE_TEST_SUITE_P(Sector, BlockDeviceTest, ::testing::Values(512u, 4096u));

TEST_P(BlockDeviceTest, SaysItsSectorAndForgetsWhatItIsToldTo) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.file("backing");
  ASSERT_TRUE(FileDisk::create(path, Caching::kDirect, kSize).has_value());
  const LoopDevice device(path, GetParam());
  if (!device.made()) GTEST_SKIP() << "no right to make a loop device";
  const auto backing_bytes = [&] {
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return static_cast<std::uint64_t>(status.st_blocks) * 512;
  };

  ManualExecutor executor;
  const auto ring = IoRing::create(executor);
  ASSERT_TRUE(ring.has_value());
  auto opened = FileDisk::open(device.path(), Caching::kDirect, ring->get());
  ASSERT_TRUE(opened.has_value()) << to_string(opened.error());
  FileDisk& disk = **opened;
  EXPECT_EQ(disk.size_bytes(), kSize);
  EXPECT_EQ(disk.alignment(), GetParam());
  const Payload a = payload_of(1, 256);
  const ConstBytes part = a.bytes();
  ASSERT_TRUE(disk.write(1u << 20, {&part, 1}, Durability::kDurable).has_value());
  ASSERT_EQ(backing_bytes(), kSize);
  if (!disk.can_forget()) GTEST_SKIP() << "the file system under it punches no holes";

  std::optional<Result<void>> outcome;
  disk.async_forget({2u << 20, 4u << 20}, [&](Result<void> r) { outcome = std::move(r); });
  EXPECT_FALSE(outcome.has_value()) << "never before the call has returned";
  while (!outcome) executor.run_ready();
  EXPECT_TRUE(outcome->has_value());
  // (A file in many pieces has a block more, that says where they are.)
  EXPECT_LE(backing_bytes(), kSize - (4u << 20) + (64u << 10));
  Payload to = Payload::allocate(a.size());
  ASSERT_TRUE(disk.read(1u << 20, to.bytes()).has_value());
  EXPECT_TRUE(std::ranges::equal(to.bytes(), a.bytes())) << "its neighbour stays";
  // One that the device refuses, and another after that.
  outcome.reset();
  disk.async_forget({kSize, 4096}, [&](Result<void> r) { outcome = std::move(r); });
  while (!outcome) executor.run_ready();
  EXPECT_FALSE(outcome->has_value());
  outcome.reset();
  disk.async_forget({0, 4096}, [&](Result<void> r) { outcome = std::move(r); });
  while (!outcome) executor.run_ready();
  EXPECT_TRUE(outcome->has_value());
}

}  // namespace
}  // namespace mariner::logging
