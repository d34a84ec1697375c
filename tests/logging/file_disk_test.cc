#include "logging/file_disk.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>

#include "tests/logging/log_testing.h"
#include "tests/logging/temporary_directory.h"

namespace mariner::logging {
namespace {

using mariner::test::ManualExecutor;
using test::payload_of;
using Caching = FileDisk::Caching;

constexpr std::uint64_t kSize = 8u << 20;

class FileDiskTest : public ::testing::TestWithParam<Caching> {
 protected:
  void SetUp() override {
    auto ring = IoRing::create(executor_, 16);
    ASSERT_TRUE(ring.has_value()) << to_string(ring.error());
    ring_ = std::move(*ring);
    ASSERT_TRUE(FileDisk::create(path_, GetParam(), kSize).has_value());
    open();
  }
  void TearDown() override {
    drain();
    disk_.reset();
    ring_.reset();
  }
  void open() {
    auto disk = FileDisk::open(path_, GetParam(), ring_.get());
    ASSERT_TRUE(disk.has_value()) << to_string(disk.error());
    disk_ = std::move(*disk);
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

INSTANTIATE_TEST_SUITE_P(Caching, FileDiskTest,
                         ::testing::Values(Caching::kDirect, Caching::kBuffered),
                         [](const auto& parameter) {
                           return parameter.param == Caching::kDirect ? "Direct" : "Buffered";
                         });

TEST_P(FileDiskTest, HasItsSizeAndAlignment) {
  EXPECT_EQ(disk_->size_bytes(), kSize);
  EXPECT_EQ(disk_->alignment(), GetParam() == Caching::kDirect ? kBlockBytes : 1u);
  EXPECT_EQ(disk_->path(), path_);
  if (GetParam() == Caching::kDirect) {
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

TEST_P(FileDiskTest, WritesPartsOneAfterAnother) {
  const Payload a = payload_of(1, 1);
  const Payload b = payload_of(2, 3);
  const ConstBytes parts[] = {a.bytes(), b.bytes()};
  ASSERT_TRUE(disk_->write(8192, parts, Durability::kDurable).has_value());
  EXPECT_TRUE(holds(8192, a));
  EXPECT_TRUE(holds(12288, b));
  disk_->start_writeback({8192, a.size() + b.size()});
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
  const auto second = FileDisk::open(path_, GetParam(), nullptr);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::kBusy);
  disk_.reset();
  open();
}

TEST_P(FileDiskTest, CreatesOnlyWhatIsNotThereAndOpensOnlyWhatIs) {
  EXPECT_EQ(FileDisk::create(path_, GetParam(), kSize).error().code, ErrorCode::kAlreadyExists);
  EXPECT_EQ(FileDisk::open(path_ + "x", GetParam(), nullptr).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(FileDisk::create(directory_.file("no/such"), GetParam(), kSize).error().code,
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
  if (GetParam() == Caching::kBuffered) {
    ASSERT_TRUE(disk_->resize(kReservedBytes + 4 * test::kTrackBytes).has_value());
  } else {
    disk_.reset();
    path_ = directory_.file("log1");
    ASSERT_TRUE(
        FileDisk::create(path_, GetParam(), kReservedBytes + 4 * test::kTrackBytes).has_value());
    open();
  }
  const Result<Superblock> superblock = format_log(*disk_, test::log_id(), 0, test::kTrackBytes, 1);
  ASSERT_TRUE(superblock.has_value());
  const auto ignore = [](const Record&, const LogLocation&) {};
  {
    const Result<Recovered> fresh = recover_log(*disk_, *superblock, 2, ignore);
    ASSERT_TRUE(fresh.has_value());
    LogWriter writer(*disk_, executor_, *superblock, fresh->tracks, fresh->tail, {});
    int done = 0;
    for (std::uint64_t i = 1; i <= 40; ++i) {
      writer.append(test::record_of(1, i, static_cast<std::uint32_t>(i)),
                    test::whole(payload_of(i, static_cast<std::uint32_t>(i))),
                    LogWriter::Urgency::kOrdinary,
                    [&](const Result<LogLocation>& at) { done += at.has_value() ? 1 : 0; });
      if (i % 7 == 0) drain();
    }
    drain();
    EXPECT_EQ(done, 40);
  }
  std::uint64_t seen = 0;
  const Result<Recovered> found =
      recover_log(*disk_, *superblock, 2, [&](const Record& record, const LogLocation& at) {
        EXPECT_EQ(record.sequence.value, ++seen);
        Payload to = Payload::allocate(seen * kBlockBytes);
        EXPECT_TRUE(read_log_blocking(*disk_, superblock->log,
                                      {at, record.volume, record.sequence, 0, to.bytes()})
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

}  // namespace
}  // namespace mariner::logging
