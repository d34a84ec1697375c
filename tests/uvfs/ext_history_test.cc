#include "uvfs/ext_history.h"

#include <gtest/gtest.h>

#include <vector>

#include "ifsck/ext_inode.h"
#include "ifsck/past_behind.h"
#include "tests/uvfs/made_writes.h"

namespace mariner::uvfs {
namespace {

using ifsck::InodeAt;
using Moments = std::vector<std::uint64_t>;

class ExtHistoryTest : public ::testing::Test {
 protected:
  Moments states(ObjectNumber number, const Stretch& stretch) {
    past_.emplace(made_.past());
    history_ = ExtHistory::open(*past_, stretch).value();
    EXPECT_TRUE(history_->load(std::span(&number, 1)).has_value());
    Moments all;
    for (const auto& each : history_->find(number)->states) all.push_back(each.from.value);
    return all;
  }

  Moments seen(ObjectNumber number) {
    Moments all;
    for (const auto& each : history_->find(number)->states) {
      if (each.seen) all.push_back(each.from.value);
    }
    return all;
  }

  MadeWrites made_{"-t ext4 -b 4096 -O ^has_journal"};
  std::optional<ifsck::TracePast> past_;
  std::unique_ptr<ExtHistory> history_;
};

TEST_F(ExtHistoryTest, AStateBeginsWhereSomethingIsSeenToChange) {
  const auto file = made_.volume.find("/a/b/sparse");
  const std::uint64_t data = made_.offset_of(made_.map_of(file).runs.front().physical);
  made_.put<std::uint16_t>(file, InodeAt::kMode, 0100600);  // 1
  made_.put<std::uint32_t>(file, InodeAt::kChanged, 9);     // 2: nobody sees that
  made_.put<std::uint8_t>(data + 1, 'x');                   // 3
  made_.put<std::uint8_t>(data + 1, 'x');                   // 4: as it was
  made_.put<std::uint32_t>(file, 16, 9);                    // 5: modified
  made_.put<std::uint16_t>(file, InodeAt::kLinks, 0);       // 6
  EXPECT_EQ(states(file, {{}, {6}}), (Moments{0, 1, 2, 3, 5, 6}));
  EXPECT_EQ(seen(file), (Moments{0, 1, 3, 5, 6}));
  const auto& found = history_->find(file)->states;
  EXPECT_FALSE(found[1].contents_changed);
  EXPECT_TRUE(found[3].contents_changed);
  EXPECT_FALSE(found[5].object.exists);
  EXPECT_EQ(found[3].time.ns, 3 * MadeWrites::kSecond);
  EXPECT_EQ(ifsck::ExtInode(history_->inode(file, {0})).mode(), 0100644);
  EXPECT_EQ(ifsck::ExtInode(history_->inode(file, {1})).mode(), 0100600);
}

TEST_F(ExtHistoryTest, NumbersThatCannotBeAreLeftOut) {
  const ObjectNumber none[] = {0, made_.volume.layout->inodes() + 1, ~ObjectNumber{0}};
  made_.put<std::uint8_t>(kBlockBytes * 11000, 1);
  states(EXT2_ROOT_INO, {{}, {1}});
  EXPECT_TRUE(history_->load(none).has_value());
  EXPECT_EQ(history_->find(0), nullptr);
  EXPECT_EQ(history_->find(none[1]), nullptr);
  EXPECT_EQ(history_->names(none[1]), nullptr);
  EXPECT_NE(history_->names(EXT2_ROOT_INO), nullptr);
}

TEST_F(ExtHistoryTest, AFileSystemThatWasMadeInTheStretchShortensIt) {
  const std::uint64_t made_at = SUPERBLOCK_OFFSET + offsetof(ext2_super_block, s_mkfs_time);
  const auto now = made_.volume.volume->fs()->super->s_mkfs_time;
  made_.put<std::uint32_t>(made_at, now - 1);  // 1: another one
  made_.put<std::uint32_t>(made_at, now);      // 2
  made_.put<std::uint16_t>(EXT2_ROOT_INO, InodeAt::kMode, 040700);
  EXPECT_EQ(states(EXT2_ROOT_INO, {{}, {3}}), (Moments{2, 3}));
  EXPECT_EQ(history_->stretch(), (Stretch{{2}, {3}}));
}

TEST_F(ExtHistoryTest, WithoutAFileSystemThatIsSaid) {
  made_.put<std::uint16_t>(SUPERBLOCK_OFFSET + offsetof(ext2_super_block, s_magic), 0);
  auto past = made_.past();
  EXPECT_EQ(ExtHistory::open(past, {{}, {1}}).error().code, ErrorCode::kNotFound);
}

TEST_F(ExtHistoryTest, HowMuchIsAskedForDoesNotGrowWithWhatIsAsked) {
  for (int i = 0; i < 300; ++i) {
    const std::string name = "/many/a file with a long name, number " + std::to_string(i);
    made_.put<std::uint16_t>(made_.volume.find(name.c_str()), InodeAt::kMode,
                             static_cast<std::uint16_t>(0100600 + i % 2));
  }
  class Counting final : public ifsck::PastBehind {
   public:
    using PastBehind::PastBehind;
    Result<void> read(std::span<const Question> questions, std::span<std::byte> to) override {
      ++asked;
      return PastBehind::read(questions, to);
    }
    Result<std::vector<Version>> versions(std::span<const Lbn> blocks, SequenceNumber from,
                                          SequenceNumber to) override {
      ++asked;
      return PastBehind::versions(blocks, from, to);
    }
    int asked = 0;
  };
  auto past = made_.past();
  Counting counting(past);
  const auto history = ExtHistory::open(counting, {{}, {300}}).value();
  std::vector<ObjectNumber> all;
  for (int i = 0; i < 300; ++i) {
    all.push_back(
        made_.volume.find(("/many/a file with a long name, number " + std::to_string(i)).c_str()));
  }
  ASSERT_TRUE(history->load(all).has_value());
  EXPECT_LT(counting.asked, 20);
}

}  // namespace
}  // namespace mariner::uvfs
