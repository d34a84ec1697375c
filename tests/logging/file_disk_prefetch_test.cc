// FileDisk::async_prefetch, against the kernel's page cache.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "logging/file_disk.h"
#include "tests/logging/log_testing.h"
#include "tests/logging/temporary_directory.h"

namespace mariner::logging {
namespace {

using mariner::test::ManualExecutor;
using Caching = FileDisk::Caching;

constexpr std::uint64_t kDiskBytes = 8u << 20;
constexpr std::uint64_t kLength = 3u << 20;

// Pages of the file's beginning that are in the page cache.
std::size_t pages_in_cache(const std::string& path, std::size_t length) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  void* const mapped = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, file, 0);
  std::vector<unsigned char> pages((length + 4095) / 4096);
  EXPECT_EQ(::mincore(mapped, length, pages.data()), 0);
  ::munmap(mapped, length);
  ::close(file);
  return static_cast<std::size_t>(
      std::ranges::count_if(pages, [](unsigned char page) { return (page & 1) != 0; }));
}

void drop_from_cache(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED), 0);
  ::close(file);
}

class FileDiskPrefetchTest : public ::testing::TestWithParam<Caching> {
 protected:
  void SetUp() override {
    auto ring = IoRing::create(executor_, {.entries = 16});
    ASSERT_TRUE(ring.has_value()) << to_string(ring.error());
    ring_ = std::move(*ring);
    ASSERT_TRUE(FileDisk::create(path_, GetParam(), kDiskBytes).has_value());
    auto disk = FileDisk::open(path_, GetParam(), ring_.get());
    ASSERT_TRUE(disk.has_value()) << to_string(disk.error());
    disk_ = std::move(*disk);
    const Payload bytes = test::payload_of(6, kLength / 4096);
    const ConstBytes part = bytes.bytes();
    ASSERT_TRUE(disk_->write(0, {&part, 1}, Durability::kDurable).has_value());
    ASSERT_TRUE(disk_->flush().has_value());
    drop_from_cache(path_);
  }
  // How often it completed.
  int prefetch(ByteRange range) {
    int ended = 0;
    disk_->async_prefetch(range, [&](const Result<void>& r) { ended += r ? 1 : 0; });
    do {
      executor_.run_ready();
      if (ring_->in_flight() > 0) ring_->wait();
    } while (ring_->in_flight() > 0 || !executor_.idle());
    return ended;
  }

  test::TemporaryDirectory directory_;
  const std::string path_ = directory_.file("disk");
  ManualExecutor executor_;
  std::unique_ptr<IoRing> ring_;
  std::unique_ptr<FileDisk> disk_;
};

INSTANTIATE_TEST_SUITE_P(Caching, FileDiskPrefetchTest,
                         ::testing::Values(Caching::kBuffered, Caching::kDirect));

TEST_P(FileDiskPrefetchTest, CompletesOnce) {
  EXPECT_EQ(prefetch({0, kLength}), 1);
  EXPECT_EQ(prefetch({kDiskBytes, 0}), 1) << "of nothing, too";
}

TEST_P(FileDiskPrefetchTest, BringsIntoThePageCacheWhereThereIsOne) {
  if (pages_in_cache(path_, kDiskBytes) > 0) GTEST_SKIP() << "this file system is memory";
  EXPECT_EQ(prefetch({0, kLength}), 1);
  if (GetParam() == Caching::kDirect) {
    EXPECT_EQ(pages_in_cache(path_, kDiskBytes), 0U);
    return;
  }
  // A small device takes less at once; and the kernel tells nobody when what is under way has come.
  constexpr std::uint64_t kSome = kLength / 4096 / 2;
  for (int i = 0; i < 5000 && pages_in_cache(path_, kLength) < kSome; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_GE(pages_in_cache(path_, kLength), kSome);
}

}  // namespace
}  // namespace mariner::logging
