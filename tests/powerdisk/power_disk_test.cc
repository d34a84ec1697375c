#include "tests/powerdisk/power_disk.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "proto/bytes.h"

namespace mariner::powerdisk {
namespace {

class PowerDiskTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string path = std::filesystem::temp_directory_path() / "powerdisk-XXXXXX";
    ASSERT_NE(::mkdtemp(path.data()), nullptr);
    root_ = path;
    root_fd_ = ::open(path.c_str(), O_RDONLY | O_DIRECTORY);
  }
  void TearDown() override {
    ::close(root_fd_);
    std::filesystem::remove_all(root_);
  }
  std::shared_ptr<PowerFile> open(PowerDisk& disk, const std::string& name) {
    return disk.attach(::openat(root_fd_, name.c_str(), O_RDWR | O_CREAT, 0600), name);
  }
  std::string medium(const std::string& name) {
    std::ifstream in(root_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::filesystem::path root_;
  int root_fd_ = -1;
};

TEST_F(PowerDiskTest, after_a_cut_everything_fails) {
  PowerDisk disk({.root_fd = root_fd_});
  const auto file = open(disk, "a");
  EXPECT_EQ(disk.write(*file, 0, as_byte_span("abc"), false), 3);
  disk.cut(Fates(1));
  EXPECT_FALSE(disk.enter().has_value());
  EXPECT_EQ(disk.write(*file, 0, as_byte_span("abc"), true), -EIO);
  EXPECT_EQ(disk.flush(*file), -EIO);
  EXPECT_EQ(disk.zero(*file, {0, 512}, false), -EIO);
  EXPECT_NE(disk.statistics().find("power off"), std::string::npos);
}

TEST_F(PowerDiskTest, a_synchronous_write_survives_every_cut) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    PowerDisk disk({.root_fd = root_fd_});
    const auto file = open(disk, "a");
    const std::string text(1024, static_cast<char>('a' + seed % 26));
    EXPECT_EQ(disk.write(*file, 0, as_byte_span(text), true), 1024);
    EXPECT_EQ(disk.write(*file, 4096, as_byte_span("lost"), false), 4);
    disk.cut(Fates(seed));
    EXPECT_EQ(medium("a").substr(0, 1024), text) << "seed " << seed;
  }
}

TEST_F(PowerDiskTest, a_lie_loses_what_was_acknowledged_for_some_seed) {
  bool lost = false;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    PowerDisk disk({.root_fd = root_fd_});
    disk.lie_about("log");
    const auto file = open(disk, "log" + std::to_string(seed));
    EXPECT_EQ(disk.write(*file, 0, as_byte_span("precious"), true), 8);
    EXPECT_EQ(disk.flush(*file), 0);
    disk.cut(Fates(seed));
    lost |= medium("log" + std::to_string(seed)) != "precious";
  }
  EXPECT_TRUE(lost);
}

TEST_F(PowerDiskTest, a_cut_that_keeps_nothing_loses_all_but_what_was_flushed) {
  PowerDisk disk({.root_fd = root_fd_});
  const auto file = open(disk, "a");
  const std::string sector(512, 'f');
  EXPECT_EQ(disk.write(*file, 0, as_byte_span(sector), true), 512);
  for (std::uint64_t i = 1; i < 100; ++i) {
    EXPECT_EQ(disk.write(*file, i * 512, as_byte_span(sector), false), 512);
  }
  disk.cut(Fates::nothing_kept());
  EXPECT_EQ(medium("a"), sector);
}

TEST_F(PowerDiskTest, a_lie_loses_what_came_after_it_and_only_that) {
  PowerDisk disk({.root_fd = root_fd_, .cache_pages_max = 16});
  const auto file = open(disk, "log");
  const std::string page(4096, 'p');
  EXPECT_EQ(disk.write(*file, 0, as_byte_span(page), false), 4096);
  disk.lie_about("log");
  for (std::uint64_t i = 1; i < 100; ++i) {
    EXPECT_EQ(disk.write(*file, i * 4096, as_byte_span(page), true), 4096);
  }
  disk.cut(Fates::nothing_kept());
  EXPECT_EQ(medium("log"), page);
}

TEST_F(PowerDiskTest, an_unlinked_or_renamed_file_keeps_its_writes) {
  PowerDisk disk({.root_fd = root_fd_});
  const auto file = open(disk, "a");
  EXPECT_EQ(disk.write(*file, 0, as_byte_span("abc"), false), 3);
  std::filesystem::rename(root_ / "a", root_ / "b");
  EXPECT_EQ(open(disk, "b"), file);
  EXPECT_EQ(disk.flush(*file), 0);
  EXPECT_EQ(medium("b"), "abc");
}

TEST_F(PowerDiskTest, a_closed_file_is_forgotten_once_it_is_clean) {
  PowerDisk disk({.root_fd = root_fd_});
  auto file = open(disk, "a");
  EXPECT_EQ(disk.write(*file, 0, as_byte_span("abc"), false), 3);
  disk.detach(file);
  EXPECT_NE(disk.statistics().find("files 1"), std::string::npos);
  EXPECT_EQ(disk.flush(*file), 0);
  disk.detach(file);
  EXPECT_NE(disk.statistics().find("files 0"), std::string::npos);
}

TEST_F(PowerDiskTest, a_full_cache_destages) {
  PowerDisk disk({.root_fd = root_fd_, .cache_pages_max = 16});
  const auto file = open(disk, "a");
  const std::string page(4096, 'p');
  for (std::uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(disk.write(*file, i * 4096, as_byte_span(page), false), 4096);
    EXPECT_LE(file->unflushed_pages(), 17u);
  }
}

TEST_F(PowerDiskTest, writers_and_a_cut_at_once_lose_no_synchronous_write) {
  constexpr int kWriters = 4;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    PowerDisk disk({.root_fd = root_fd_, .flush_delay_us = 50});
    const std::string name = "f" + std::to_string(seed);
    const auto file = open(disk, name);
    std::array<std::atomic<int>, kWriters> acknowledged{};
    std::vector<std::thread> writers;
    for (int w = 0; w < kWriters; ++w) {
      writers.emplace_back([&, w] {
        for (int value = 1; value < 100'000; ++value) {
          std::string sector(512, '\0');
          std::memcpy(sector.data(), &value, sizeof value);
          if (disk.write(*file, static_cast<std::uint64_t>(w) * 512, as_byte_span(sector), true) <
              0) {
            return;
          }
          acknowledged[static_cast<std::size_t>(w)] = value;
        }
      });
    }
    constexpr int kAcknowledgedMin = 20;
    for (const auto& count : acknowledged) {
      while (count < kAcknowledgedMin) std::this_thread::yield();
    }
    disk.cut(Fates(seed));
    for (auto& writer : writers) writer.join();
    const std::string bytes = medium(name);
    for (std::size_t w = 0; w < kWriters; ++w) {
      int value = 0;
      std::memcpy(&value, bytes.data() + w * 512, sizeof value);
      EXPECT_GE(value, acknowledged[w]) << "seed " << seed;
      EXPECT_LE(value, acknowledged[w] + 1) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace mariner::powerdisk
