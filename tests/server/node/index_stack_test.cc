#include "server/node/index_stack.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/server/node/node_parts.h"

namespace mariner::node {
namespace {

class IndexStackTest : public ::testing::Test {
 protected:
  IndexStackTest() { parts_.create("db1"); }
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

  testing::NodeParts parts_;
  index::IndexSuperblock superblock_;
};

TEST_F(IndexStackTest, WhatWasCommittedIsNotTakenFromTheLogAgain) {
  const SequenceNumber first = write(3, 'a');
  write(3, 'b');
  commit();
  EXPECT_EQ(parts_.indexes().store().frontier(),
            parts_.log_stack().writer().ordinal_frontier() - 1);
  restart();
  EXPECT_GT(parts_.indexes().frontier(), 0u);
  EXPECT_EQ(parts_.indexes().store().statistics().modifications, 0u);
  EXPECT_EQ(read_at(first, 3), 'a');
}

TEST_F(IndexStackTest, AFileThatIsGoneIsMadeFromTheLog) {
  const SequenceNumber first = write(3, 'a');
  write(3, 'b');
  commit();
  parts_.stop();
  std::filesystem::remove(parts_.path("index"));
  parts_.start();
  EXPECT_EQ(parts_.indexes().frontier(), 0u);
  EXPECT_EQ(read_at(first, 3), 'a');
  EXPECT_EQ(parts_.read(*volume().volume->live_layer(), 3), 'b');
}

TEST_F(IndexStackTest, AFileThatIsDamagedAsAWholeIsMadeFromTheLog) {
  const SequenceNumber first = write(3, 'a');
  write(3, 'b');
  commit();
  parts_.stop();
  spoil(0, 2 * kBlockBytes);  // both copies of its superblock
  parts_.start();
  EXPECT_EQ(parts_.indexes().frontier(), 0u);
  EXPECT_EQ(read_at(first, 3), 'a');
}

TEST_F(IndexStackTest, AFileOfAnotherLogIsMadeAgain) {
  const SequenceNumber first = write(3, 'a');
  write(3, 'b');
  commit();
  meta::IndexFile other = *parts_.store().index_file();
  other.set_log("another log's id");
  ASSERT_TRUE(parts_.store().put_index_file(other));
  restart();
  EXPECT_EQ(parts_.indexes().frontier(), 0u);
  EXPECT_EQ(parts_.store().index_file()->log(), parts_.log_stack().id_bytes());
  EXPECT_EQ(read_at(first, 3), 'a');
}

TEST_F(IndexStackTest, ADeletedVolumeLeavesNothing) {
  const std::uint32_t before = parts_.indexes().store().allocated_blocks();
  parts_.create("db2");
  EXPECT_GT(parts_.indexes().store().allocated_blocks(), before);
  write(3, 'x', "db2");
  commit();
  ASSERT_TRUE(parts_.remove("db2"));
  parts_.run_until([&] { return parts_.indexes().store().allocated_blocks() == before; });
  write(3, 'a');
  commit();
  restart();
  EXPECT_EQ(parts_.indexes().store().allocated_blocks(), before);
}

TEST_F(IndexStackTest, WhatACheckpointKnowsOfVolumesThatAreGoneIsForgottenAtAStart) {
  const std::uint32_t before = parts_.indexes().store().allocated_blocks();
  parts_.create("db2");
  write(3, 'x', "db2");
  commit();
  const std::uint32_t id = volume("db2").meta.id();
  parts_.stop();
  auto store = MetaStore::open(parts_.path("store"));
  ASSERT_TRUE((*store)->remove_volume(id));  // as if a crash had come behind it
  store->reset();
  parts_.start();
  EXPECT_EQ(parts_.indexes().store().allocated_blocks(), before);
}

TEST_F(IndexStackTest, DamageThatAStartMeetsIsMendedByIt) {
  const SequenceNumber first = write(3, 'a');
  write(3, 'b');
  commit();
  parts_.stop();
  look_at_file();
  spoil_blocks();
  parts_.start();
  EXPECT_EQ(parts_.indexes().frontier(), 0u);
  EXPECT_EQ(parts_.indexes().damaged(), 0u);
  EXPECT_EQ(read_at(first, 3), 'a');
}

TEST_F(IndexStackTest, DamageIsAnErrorNotAWrongAnswerAndMendedByTheNextStart) {
  const SequenceNumber first = write(0, 'a');
  // More leaves than a start reads.
  for (std::uint64_t i = 0; i < 1'500; ++i) write(i % 256, 'b');
  commit();
  parts_.stop();
  look_at_file();
  parts_.start();
  spoil_blocks();
  std::optional<ErrorCode> code;
  {
    const auto view = volume().volume->view_layer(first);
    view->read({0, kBlockBytes}, [&](const Result<PayloadSlice>& r) {
      code = r ? ErrorCode::kAborted : r.error().code;
    });
    parts_.run_until([&] { return code.has_value(); });
  }
  EXPECT_EQ(code, ErrorCode::kCorrupt);
  EXPECT_GT(parts_.indexes().damaged(), 0u);
  EXPECT_EQ(log_lines_with("cannot use one of its blocks"), 1u);
  // Who asks again and again does not fill the daemon's log.
  for (std::uint32_t asked = 0; asked < 4 * IndexStack::kComplaintsMax; ++asked) {
    code.reset();
    const auto view = volume().volume->view_layer(first);
    view->read({0, kBlockBytes}, [&](const Result<PayloadSlice>& r) {
      code = r ? ErrorCode::kAborted : r.error().code;
    });
    parts_.run_until([&] { return code.has_value(); });
    EXPECT_EQ(code, ErrorCode::kCorrupt);
  }
  EXPECT_EQ(log_lines_with("cannot use one of its blocks"), IndexStack::kComplaintsMax);
  restart();
  EXPECT_EQ(parts_.indexes().frontier(), 0u);
  EXPECT_EQ(read_at(first, 0), 'a');
}

}  // namespace
}  // namespace mariner::node
