// A node with a volume, whose index file a test can spoil.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/server/node/node_parts.h"

namespace mariner::node::testing {

class IndexStackFixture : public ::testing::Test {
 protected:
  IndexStackFixture() { parts_.create("db1"); }
  ServedVolume& volume(const std::string& name = "db1") { return *parts_.volumes().find(name); }
  SequenceNumber write(std::uint64_t block, char byte, const std::string& name = "db1") {
    parts_.write(*volume(name).volume->live_layer(), block, byte);
    return parts_.newest(volume(name));
  }
  char read_at(SequenceNumber at, std::uint64_t block) {
    return parts_.read(*volume().volume->view_layer(at), block);
  }
  void commit() {
    volume().volume->index().flush();
    bool done = false;
    parts_.indexes().store().commit_all([&](const Result<void>& r) { done = r.has_value(); });
    parts_.run_until([&] { return done; });
  }
  void restart() {
    parts_.stop();
    parts_.start();
  }
  // Between stop() and start().
  void spoil(std::uint64_t offset, std::size_t bytes) {
    const int file = ::open(parts_.path("index").c_str(), O_WRONLY | O_CLOEXEC);
    const std::vector<char> garbage(bytes, 'g');
    EXPECT_EQ(::pwrite(file, garbage.data(), bytes, static_cast<off_t>(offset)),
              static_cast<ssize_t>(bytes));
    ::close(file);
  }

  // Between stop() and start(): where the blocks stand.
  void look_at_file() {
    auto disk = logging::FileDisk::open(parts_.path("index"), logging::FileDisk::Caching::kBuffered,
                                        nullptr);
    superblock_ = *index::read_index_superblock(**disk);
  }
  // All leaves, both places of each.
  void spoil_blocks() {
    for (std::uint32_t block = 0; block < 64; ++block) {
      for (unsigned place = 0; place < 2; ++place) {
        spoil(superblock_.offset_of({block}, place) + 100, 100);
      }
    }
  }

  std::uint32_t log_lines_with(const std::string& text) {
    std::ifstream file(parts_.path("daemon.log"));
    std::uint32_t count = 0;
    for (std::string line; std::getline(file, line);) {
      count += line.find(text) != std::string::npos ? 1 : 0;
    }
    return count;
  }

  NodeParts parts_;
  index::IndexSuperblock superblock_;
};

}  // namespace mariner::node::testing
