#include "ifsck/fast_commit.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/ifsck/made_fast_commits.h"

namespace mariner::ifsck {
namespace {

using Kind = FastOperation::Kind;

constexpr std::size_t kBlock = 1024;

std::vector<FastOperation> some() {
  FastOperation add{.kind = Kind::kAddRange, .inode = 12, .logical = 3, .count = 32768};
  add.physical = (FsBlock{5} << 32) | 7;
  FastOperation unwritten = add;
  unwritten.count = 32767;
  unwritten.unwritten = true;
  return {add,
          unwritten,
          {.kind = Kind::kDelRange, .inode = 12, .logical = 0xfffffffe, .count = 0xffffffff},
          {.kind = Kind::kCreate, .inode = 13, .parent = 2, .name = "a name"},
          {.kind = Kind::kLink, .inode = 13, .parent = 2, .name = std::string(255, 'l')},
          {.kind = Kind::kUnlink, .inode = 13, .parent = 2, .name = "u"},
          {.kind = Kind::kInode, .inode = 13, .bytes = std::vector<std::byte>(160, std::byte{9})}};
}

// Hands the bytes over block by block.
FastCommits read(std::span<const std::byte> bytes, std::uint32_t sequence = 7) {
  FastCommits commits(sequence);
  for (; !bytes.empty(); bytes = bytes.subspan(kBlock)) {
    const auto more = commits.add(bytes.first(kBlock));
    EXPECT_TRUE(more.has_value());
    if (!more || !*more) break;
  }
  return commits;
}

TEST(FastCommitTest, HasOperations) {
  FastBytes bytes(kBlock, 7);
  for (const FastOperation& each : some()) bytes.add(each);
  bytes.commit();
  FastCommits commits = read(bytes.bytes());
  EXPECT_EQ(commits.commits(), 1u);
  EXPECT_FALSE(commits.cut());
  EXPECT_EQ(commits.take_operations(), some());
}

TEST(FastCommitTest, EndsWithTheLastThatIsWhole) {
  FastBytes bytes(kBlock, 7);
  bytes.add(some()[3]);
  bytes.commit();
  bytes.add(some()[4]);
  bytes.commit(1);
  bytes.add(some()[5]);
  bytes.commit();
  FastCommits commits = read(bytes.bytes());
  EXPECT_EQ(commits.commits(), 1u);
  EXPECT_TRUE(commits.cut());
  EXPECT_EQ(commits.take_operations(), std::vector<FastOperation>{some()[3]});
}

TEST(FastCommitTest, IsOfOneTransaction) {
  FastBytes bytes(kBlock, 7);
  bytes.add(some()[3]);
  bytes.commit();
  FastCommits commits = read(bytes.bytes(), 8);
  EXPECT_EQ(commits.commits(), 0u);
  EXPECT_TRUE(commits.take_operations().empty());
}

TEST(FastCommitTest, MayHaveFeaturesThatAreNotKnown) {
  FastBytes bytes(kBlock, 7);
  auto whole = bytes.bytes();
  whole[4] = std::byte{1};
  EXPECT_EQ(FastCommits(7).add(whole).error().code, ErrorCode::kInvalidArgument);
}

TEST(FastCommitTest, EndsWhateverItSays) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    std::mt19937_64 random(seed);
    FastBytes bytes(kBlock, 7);
    for (const FastOperation& each : some()) bytes.add(each);
    bytes.commit();
    auto whole = bytes.bytes();
    for (auto i = random() % 3 + 1; i > 0; --i) {
      whole[8 + random() % (whole.size() - 8)] ^= static_cast<std::byte>(1u << random() % 8);
    }
    FastCommits commits(7);
    for (std::size_t at = 0; at < whole.size(); at += kBlock) {
      const auto more = commits.add(std::span(whole).subspan(at, kBlock));
      if (!more || !*more) break;
    }
    const auto operations = commits.take_operations();
    EXPECT_TRUE(operations.empty() || operations.size() == some().size()) << seed;
  }
}

}  // namespace
}  // namespace mariner::ifsck
