#include "uvfs/logged_transaction.h"

#include <gtest/gtest.h>

#include <array>

#include "ifsck/journal_log.h"
#include "tests/uvfs/made_journal_history.h"

namespace mariner::uvfs {
namespace {

using Kind = JournalHead::Kind;

class LoggedTransactionTest : public ::testing::Test {
 protected:
  // What is in the journal, in the memory of a view.
  class Made : public ifsck::Past {
   public:
    explicit Made(ifsck::View& view) : view_(view) {}
    [[nodiscard]] std::uint64_t size_bytes() const override { return view_.size_bytes(); }
    Result<Reach> reach() override { return Reach{}; }
    Result<SequenceNumber> moment_of(VersionTime) override { return SequenceNumber{}; }
    Result<VersionTime> time_of(SequenceNumber) override { return VersionTime{}; }
    Result<void> read(std::span<const Question> questions, std::span<std::byte> to) override {
      for (std::size_t i = 0; i < questions.size(); ++i) {
        const auto read = view_.read({questions[i].block.byte_offset(), kBlockBytes},
                                     to.subspan(i * kBlockBytes, kBlockBytes));
        if (!read) return read;
      }
      return {};
    }
    Result<std::vector<BlockRange>> changed(SequenceNumber, SequenceNumber) override {
      return std::vector<BlockRange>{};
    }
    Result<std::vector<Version>> versions(std::span<const Lbn>, SequenceNumber,
                                          SequenceNumber) override {
      return std::vector<Version>{};
    }

   private:
    ifsck::View& view_;
  };

  MadeJournal make(const MadeJournal::Options& options) { return {*twin_.view, options}; }
  LogLook look(const MadeJournal& journal, const LogLook::Place& place) {
    Made past(*twin_.view);
    JournalRing ring(past, journal.file(), {}, {});
    return LogLook::at(ring, super(journal), place).value();
  }
  Super super(const MadeJournal& journal) {
    std::array<std::byte, Super::kBytes> bytes{};
    EXPECT_TRUE(
        twin_.view->read({journal.file().bytes_of(0).offset, bytes.size()}, bytes).has_value());
    return Super::parse(bytes, journal.file().block_bytes(), journal.file().blocks()).value();
  }
  static std::vector<std::byte> block(int fill) {
    return std::vector<std::byte>(4096, static_cast<std::byte>(fill));
  }
  void damage(const MadeJournal& journal, std::size_t nth, std::uint64_t at) {
    const ByteRange place{journal.file().bytes_of(journal.written()[nth].second).offset + at, 1};
    std::byte byte{};
    ASSERT_TRUE(twin_.view->read(place, std::span(&byte, 1)).has_value());
    byte ^= std::byte{0x10};
    ASSERT_TRUE(twin_.view->write(place, std::span(&byte, 1)).has_value());
  }
  // Blocks 0 to 4 of what was written: a descriptor, two of data, revocations, the commit.
  static void write_one(MadeJournal& journal, std::uint64_t time_s = 50) {
    journal.write(2001, block(1));
    std::vector<std::byte> escaped = block(2);
    store_be(escaped.data(), JournalHead::kMagic);
    journal.write(2002, escaped);
    journal.revoke(2003);
    journal.commit(time_s);
  }
  ifsck::JournalTwin twin_{ifsck::JournalImage::of("-t ext4 -b 4096 -J size=4")};
};

TEST_F(LoggedTransactionTest, HasAllThatIsInIt) {
  MadeJournal journal = make({.incompatible = Super::kChecksumV3 | Super::kRevoke,
                              .sequence = 9,
                              .start = 60,
                              .blocks = 63});
  write_one(journal);
  const LogLook found = look(journal, {.first = 60, .room = 62, .sequence = 9});
  ASSERT_TRUE(found.whole.has_value());
  EXPECT_EQ(found.whole->first, 60u);
  EXPECT_EQ(found.whole->blocks, 5u);
  EXPECT_EQ(found.whole->sequence, 9u);
  EXPECT_EQ(found.whole->time_s, 50u);
  EXPECT_EQ(found.whole->copies, (std::vector<LoggedTransaction::Copy>{{2001, 61, false, false},
                                                                       {2002, 62, true, false}}));
  EXPECT_EQ(found.whole->revoked, std::vector<FsBlock>{2003});
  EXPECT_FALSE(found.whole->damaged);
  EXPECT_EQ(journal.written().back().second, 2u);
}

TEST_F(LoggedTransactionTest, IsNotThereUntilItsCommitIs) {
  MadeJournal journal = make({.sequence = 9});
  write_one(journal);
  for (const auto& [room, sequence] : {std::pair{4u, 9u}, {0u, 9u}, {60u, 8u}, {60u, 10u}}) {
    const LogLook found = look(journal, {.first = 1, .room = room, .sequence = sequence});
    EXPECT_FALSE(found.whole || found.refused || found.weighed) << room << " " << sequence;
  }
  damage(journal, 4, 0);
  const LogLook found = look(journal, {.first = 1, .room = 60, .sequence = 9});
  EXPECT_FALSE(found.whole || found.refused || found.weighed);
  EXPECT_EQ(found.heads, (std::vector<JournalBlock>{1, 4, 5}));
}

TEST_F(LoggedTransactionTest, IsRefusedOrCutByChecksums) {
  struct Case {
    std::size_t damaged;
    std::uint64_t last_time_s;
    bool whole, refused, weighed;
  };
  for (const auto& [damaged, last, whole, refused, weighed] :
       {Case{0, 0, false, true, false}, Case{0, 60, false, false, false},
        Case{1, 0, true, false, false}, Case{3, 0, false, true, false},
        Case{4, 0, false, false, true}, Case{4, 60, false, false, true}}) {
    MadeJournal journal = make({.incompatible = Super::kChecksumV3 | Super::kRevoke});
    write_one(journal);
    damage(journal, damaged, 1000);
    const LogLook found =
        look(journal, {.first = 1, .room = 60, .sequence = 1, .last_time_s = last});
    EXPECT_EQ(found.whole.has_value(), whole) << damaged;
    EXPECT_EQ(found.refused, refused) << damaged;
    EXPECT_EQ(found.weighed, weighed) << damaged;
    if (whole) {
      EXPECT_TRUE(found.whole->copies[0].bad);
      EXPECT_FALSE(found.whole->copies[1].bad);
    }
  }
}

TEST_F(LoggedTransactionTest, IsSummedAsAWhole) {
  for (const std::size_t damaged : {0u, 1u, 2u, 3u, 9u}) {
    MadeJournal journal = make({.compatible = Super::kCompatChecksum});
    write_one(journal);
    if (damaged != 9) damage(journal, damaged, 1000);
    const LogLook found = look(journal, {.first = 1, .room = 60, .sequence = 1});
    // (Revocations are not in that sum.)
    EXPECT_EQ(found.whole.has_value(), damaged == 3 || damaged == 9) << damaged;
    EXPECT_EQ(found.weighed, damaged < 3) << damaged;
    EXPECT_EQ(found.blocks, 5u);
  }
}

// Where commits do not wait for their data, one that is wrong is not the end of what is looked at.
TEST_F(LoggedTransactionTest, IsRefusedForTheOneBehindWhereCommitsDoNotWait) {
  for (const bool waits : {false, true}) {
    for (const bool second : {false, true}) {
      MadeJournal journal =
          make({.incompatible = Super::kChecksumV3 | Super::kRevoke |
                                (waits ? std::uint32_t{0} : std::uint32_t{Super::kAsyncCommit})});
      write_one(journal, 50);
      write_one(journal, 60);
      damage(journal, 4, 1000);
      if (second) damage(journal, 5, 1000);
      const LogLook found = look(journal, {.first = 1, .room = 60, .sequence = 1});
      EXPECT_FALSE(found.whole.has_value());
      EXPECT_TRUE(found.weighed);
      EXPECT_EQ(found.blocks, waits ? 5u : 10u);
      EXPECT_EQ(found.refused, second && !waits);
    }
  }
}

// One after another they are what a whole log is read as.
TEST_F(LoggedTransactionTest, AreTheLog) {
  MadeJournal journal = make({.incompatible = Super::kChecksumV2 | Super::kRevoke, .start = 1000});
  for (std::uint64_t i = 0; i < 12; ++i) write_one(journal, 100 + i);
  const Super at = super(journal);
  const auto log = ifsck::JournalLog::read(*twin_.view, journal.file(), at).value();
  ASSERT_EQ(log.transactions, 12u);
  LogLook::Place place{.first = at.start, .room = 1022, .sequence = at.sequence};
  std::vector<JournalBlock> from;
  for (LogLook found = look(journal, place); found.whole; found = look(journal, place)) {
    for (const auto& each : found.whole->copies) from.push_back(each.from);
    place.first = 1 + (place.first - 1 + found.whole->blocks) % (at.log_end - 1);
    place.room -= found.whole->blocks;
    ++place.sequence;
    place.last_time_s = found.whole->time_s;
  }
  std::vector<JournalBlock> expected;
  for (const auto& each : log.writes) expected.push_back(each.from);
  EXPECT_EQ(from, expected);
}

}  // namespace
}  // namespace mariner::uvfs
