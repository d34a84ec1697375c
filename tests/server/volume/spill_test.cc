#include "server/volume/spill.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/logging/temporary_directory.h"
#include "tests/server/volume/inline_worker.h"
#include "tests/support/manual_executor.h"

namespace mariner::volume {
namespace {

using Kind = PendingContent::Kind;

constexpr VolumeId kVolume{7};
constexpr BlockCount kBlocks{4096};

Payload letters(const std::string& text) {
  Payload payload = Payload::allocate(text.size() * kBlockBytes);
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::memset(payload.data() + i * kBlockBytes, text[i], kBlockBytes);
  }
  return payload;
}

// Two blocks of a longer payload, a long hole, and a pattern.
Spill::Contents contents() {
  Spill::Contents all{{5}, {9}, {}};
  all.runs.push_back({{{3}, {2}}, {Kind::kMemory, false, letters("xab"), kBlockBytes, {}}});
  all.runs.push_back({{{5}, {3000}}, {}});
  all.runs.push_back({{{4000}, {96}}, {Kind::kMemory, true, letters("p"), 0, {}}});
  return all;
}

std::string text_of(const PendingTable::Run& run) {
  std::string text =
      std::to_string(run.range.first.value) + "+" + std::to_string(run.range.count.value) + ":";
  if (run.content.kind == Kind::kZero) return text + "0";
  const auto bytes = run.content.payload.bytes().subspan(run.content.offset);
  for (std::size_t at = 0; at < bytes.size(); at += kBlockBytes) {
    text += static_cast<char>(bytes[at]);
  }
  return run.content.repeated ? text + "*" : text;
}

class SpillTest : public ::testing::Test {
 protected:
  Result<void> write(Spill& spill, Spill::Contents all) {
    Result<void> result = Error{ErrorCode::kAborted, "nothing was said"};
    spill.write(std::move(all), [&](Result<void> r) { result = std::move(r); });
    executor_.run_ready();
    return result;
  }
  // The runs, or what is wrong.
  std::string read(VolumeId volume = kVolume) {
    const auto found = Spill(path_, volume, worker_).read(kBlocks);
    if (!found) return to_string(found.error());
    if (!*found) return "none";
    std::string text = std::to_string((*found)->durable.value) + " to " +
                       std::to_string((*found)->committed.value);
    for (const PendingTable::Run& run : (*found)->runs) text += " " + text_of(run);
    return text;
  }
  [[nodiscard]] std::string bytes() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void put(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }
  [[nodiscard]] bool leftover() const { return std::filesystem::exists(path_ + ".tmp"); }

  test::ManualExecutor executor_;
  test::InlineWorker worker_{executor_};
  logging::test::TemporaryDirectory folder_;
  const std::string path_ = folder_.file("7.spill");
  Spill spill_{path_, kVolume, worker_};
};

constexpr const char* kWritten = "5 to 9 3+2:ab 5+3000:0 4000+96:p*";

TEST_F(SpillTest, WhatIsWrittenIsRead) {
  EXPECT_EQ(read(), "none");
  ASSERT_TRUE(write(spill_, contents()));
  EXPECT_EQ(read(), kWritten);
  EXPECT_EQ(bytes().size(), 4u * kBlockBytes);
  EXPECT_FALSE(leftover());
  ASSERT_TRUE(write(spill_, {{8}, {9}, {}}));
  EXPECT_EQ(read(), "8 to 9");
}

// More runs than go into one write, and more than one block of them.
TEST_F(SpillTest, ManyRuns) {
  Spill::Contents all{{1}, {2}, {}};
  const Payload payload = letters("abcdefghijklmnopqrstuvwxyz");
  std::string expected = "1 to 2";
  for (std::uint64_t i = 0; i < 2000; ++i) {
    all.runs.push_back({{{2 * i}, {1}}, {Kind::kMemory, false, payload, i % 26 * kBlockBytes, {}}});
    expected += " " + std::to_string(2 * i) + "+1:" + static_cast<char>('a' + i % 26);
  }
  ASSERT_TRUE(write(spill_, std::move(all)));
  EXPECT_EQ(read(), expected);
}

TEST_F(SpillTest, ThePayloadIsNotCopied) {
  Spill::Contents all{{1}, {2}, {}};
  all.runs.push_back({{{0}, {3}}, {Kind::kMemory, false, letters("abc"), 0, {}}});
  const std::uint64_t before = Payload::total_bytes();
  ASSERT_TRUE(write(spill_, std::move(all)));
  EXPECT_LE(Payload::total_bytes(), before);
}

TEST_F(SpillTest, TornAnywhereItIsDamaged) {
  ASSERT_TRUE(write(spill_, contents()));
  const std::string whole = bytes();
  for (std::size_t at = 0; at < whole.size(); at += kBlockBytes) {
    put(whole.substr(0, at));
    EXPECT_TRUE(read().starts_with("corrupt: " + path_)) << "cut at " << at << ": " << read();
    std::string damaged = whole;
    damaged.replace(at, kBlockBytes, kBlockBytes, '\0');
    put(damaged);
    EXPECT_TRUE(read().starts_with("corrupt")) << "zeros at " << at << ": " << read();
    for (const std::size_t byte : {std::size_t{0}, std::size_t{70}, std::size_t{4095}}) {
      damaged = whole;
      damaged[at + byte] = static_cast<char>(damaged[at + byte] ^ 4);
      put(damaged);
      EXPECT_TRUE(read().starts_with("corrupt")) << "a bit at " << at + byte << ": " << read();
    }
  }
  put(whole + std::string(kBlockBytes, 'x'));
  EXPECT_EQ(read(), "corrupt: " + path_ + ": the size in bytes is 20480, 16384 was expected");
}

TEST_F(SpillTest, AFlippedBitInTheHeadIsAlwaysFound) {
  ASSERT_TRUE(write(spill_, contents()));
  const std::string whole = bytes();
  for (std::size_t bit = 0; bit < std::size_t{8} * 160; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    put(damaged);
    ASSERT_TRUE(read().starts_with("corrupt")) << "bit " << bit << ": " << read();
  }
}

TEST_F(SpillTest, AnotherVolumesFileSaysSo) {
  ASSERT_TRUE(write(spill_, contents()));
  EXPECT_EQ(read(VolumeId{8}), "corrupt: " + path_ + ": the volume is 7, 8 was expected");
  const auto found = spill_.read(BlockCount{4095});
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find("4095 blocks"), std::string::npos);
}

// A crash before the new file had its name.
TEST_F(SpillTest, WithoutTheRenameTheOldOneStands) {
  ASSERT_TRUE(write(spill_, contents()));
  std::ofstream(path_ + ".tmp", std::ios::binary) << "half of the next o";
  EXPECT_EQ(read(), kWritten);
  ASSERT_TRUE(write(spill_, {{8}, {9}, {}}));
  EXPECT_EQ(read(), "8 to 9");
  EXPECT_FALSE(leftover());
}

TEST_F(SpillTest, ARenameThatFailsIsToldAndLeavesNothing) {
  std::filesystem::create_directory(path_);
  const Result<void> written = write(spill_, contents());
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message.find("rename"), std::string::npos);
  EXPECT_FALSE(leftover());
}

TEST_F(SpillTest, AFileThatCannotBeMadeIsTold) {
  Spill nowhere(folder_.file("no/7.spill"), kVolume, worker_);
  EXPECT_FALSE(write(nowhere, contents()));
}

TEST_F(SpillTest, RemovedItIsNoMore) {
  ASSERT_TRUE(write(spill_, contents()));
  for (int times = 0; times < 2; ++times) {
    bool removed = false;
    spill_.remove([&](const Result<void>& r) { removed = r.has_value(); });
    executor_.run_ready();
    EXPECT_TRUE(removed);
    EXPECT_EQ(read(), "none");
  }
}

}  // namespace
}  // namespace mariner::volume
