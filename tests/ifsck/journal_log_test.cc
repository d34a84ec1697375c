#include "ifsck/journal_log.h"

#include <gtest/gtest.h>

#include "tests/ifsck/journal_twin.h"
#include "tests/ifsck/made_journal.h"

namespace mariner::ifsck {
namespace {

using Kind = JournalHead::Kind;
using Super = JournalSuperblock;

class JournalLogTest : public ::testing::Test {
 protected:
  MadeJournal make(const MadeJournal::Options& options) { return {*twin_.view, options}; }
  Result<JournalLog> read(const MadeJournal& journal) {
    std::array<std::byte, Super::kBytes> bytes{};
    EXPECT_TRUE(
        twin_.view->read({journal.file().bytes_of(0).offset, bytes.size()}, bytes).has_value());
    const auto super =
        Super::parse(bytes, journal.file().block_bytes(), journal.file().blocks()).value();
    return JournalLog::read(*twin_.view, journal.file(), super);
  }
  static std::vector<std::byte> block(int fill) {
    return std::vector<std::byte>(4096, static_cast<std::byte>(fill));
  }
  // Changes a byte of the nth block of a kind.
  void damage(const MadeJournal& journal, Kind kind, int nth, std::uint64_t at) {
    for (const auto& [each, where] : journal.written()) {
      if (each != kind || nth-- != 0) continue;
      const ByteRange place{journal.file().bytes_of(where).offset + at, 1};
      std::byte byte{};
      ASSERT_TRUE(twin_.view->read(place, std::span(&byte, 1)).has_value());
      byte ^= std::byte{0x10};
      ASSERT_TRUE(twin_.view->write(place, std::span(&byte, 1)).has_value());
      return;
    }
    FAIL();
  }
  static void three_transactions(MadeJournal& journal) {
    for (int i = 1; i <= 3; ++i) {
      journal.write(static_cast<FsBlock>(2000 + i), block(i));
      journal.commit(static_cast<std::uint64_t>(10 * i));
    }
  }
  JournalTwin twin_{JournalImage::of("-t ext4 -b 4096 -J size=4")};
  logging::test::TemporaryDirectory folder_;
};

TEST_F(JournalLogTest, IsARing) {
  MadeJournal journal = make({.sequence = ~0u, .start = 1021});
  three_transactions(journal);
  journal.write(2000, block(9));
  journal.commit(40, false);
  const auto log = read(journal);
  ASSERT_TRUE(log.has_value()) << log.error().message;
  EXPECT_EQ(log->transactions, 3u);
  ASSERT_EQ(log->writes.size(), 3u);
  EXPECT_EQ(log->writes[0], (JournalLog::Write{2001, 1022, 0, 0, false}));
  EXPECT_EQ(log->writes[1].from, 2u);
  EXPECT_EQ(log->writes[2], (JournalLog::Write{2003, 5, 2, 0, false}));
  EXPECT_FALSE(log->cut || log->damaged);
}

TEST_F(JournalLogTest, ForgetsWhatIsRevokedThenOrLater) {
  MadeJournal journal = make({});
  for (const FsBlock each : {2001, 2002, 2003}) journal.write(each, block(1));
  journal.revoke(2001);
  journal.commit(1);
  journal.write(2003, block(2));
  journal.revoke(2002);
  journal.commit(2);
  journal.write(2002, block(3));
  journal.commit(3);
  journal.revoke(2002);
  journal.commit(4, false);
  const auto log = read(journal);
  ASSERT_TRUE(log.has_value()) << log.error().message;
  EXPECT_EQ(log->revoked, 2u);
  std::vector<std::pair<FsBlock, std::uint32_t>> all;
  for (const auto& each : log->writes) all.emplace_back(each.to, each.transaction);
  EXPECT_EQ(all, (std::vector<std::pair<FsBlock, std::uint32_t>>{{2003, 0}, {2003, 1}, {2002, 2}}));
}

TEST_F(JournalLogTest, IsCutByTheChecksumOfACommit) {
  for (const int nth : {0, 1, 2}) {
    MadeJournal journal = make({.incompatible = Super::kChecksumV3});
    three_transactions(journal);
    damage(journal, Kind::kCommit, nth, 100);
    const auto log = read(journal);
    ASSERT_TRUE(log.has_value()) << log.error().message;
    EXPECT_EQ(log->transactions, static_cast<std::uint32_t>(nth));
    EXPECT_EQ(log->writes.size(), static_cast<std::size_t>(nth));
    EXPECT_TRUE(log->cut && log->damaged);
  }
}

// A commit that does not wait for its data may be all that was written; not if one follows it.
TEST_F(JournalLogTest, IsCutWithoutDamageWhereCommitsDoNotWait) {
  for (const auto& [compatible, incompatible] :
       {std::pair{0u, Super::kChecksumV3}, {Super::kCompatChecksum, 0u}}) {
    for (const int nth : {1, 2}) {
      MadeJournal journal =
          make({.compatible = compatible, .incompatible = incompatible | Super::kAsyncCommit});
      three_transactions(journal);
      if (compatible != 0) {
        damage(journal, MadeJournal::kData, nth, 100);
      } else {
        damage(journal, Kind::kCommit, nth, 100);
      }
      const auto log = read(journal);
      ASSERT_TRUE(log.has_value()) << log.error().message;
      EXPECT_EQ(log->transactions, static_cast<std::uint32_t>(nth));
      EXPECT_TRUE(log->cut);
      EXPECT_EQ(log->damaged, nth == 1);
    }
  }
}

TEST_F(JournalLogTest, IsRefusedWhereADescriptorOfAWholeTransactionIsDamaged) {
  MadeJournal journal = make({.incompatible = Super::kChecksumV3 | Super::kRevoke});
  three_transactions(journal);
  damage(journal, Kind::kDescriptor, 1, 3000);
  EXPECT_EQ(read(journal).error().code, ErrorCode::kCorrupt);
  MadeJournal other = make({.incompatible = Super::kChecksumV3 | Super::kRevoke});
  other.revoke(5);
  other.commit(1);
  damage(other, Kind::kRevoke, 0, 3000);
  EXPECT_EQ(read(other).error().code, ErrorCode::kCorrupt);
}

// Of a time when the log was there before: the numbers fit by chance.
TEST_F(JournalLogTest, EndsWhereSomethingOldBegins) {
  MadeJournal journal = make({.incompatible = Super::kChecksumV3});
  journal.write(2001, block(1));
  journal.commit(100);
  journal.write(2002, block(2));
  journal.commit(50);
  damage(journal, Kind::kDescriptor, 1, 3000);
  const auto log = read(journal);
  ASSERT_TRUE(log.has_value()) << log.error().message;
  EXPECT_EQ(log->transactions, 1u);
  EXPECT_FALSE(log->cut || log->damaged);
}

TEST_F(JournalLogTest, EndsWhateverItSays) {
  for (const Kind kind : {Kind::kDescriptor, Kind::kRevoke, Kind::kCommit}) {
    MadeJournal journal = make({.start = 500});
    std::vector<std::byte> bytes(4096);
    store_be<std::uint32_t>(bytes.data(), JournalHead::kMagic);
    store_be(bytes.data() + 4, static_cast<std::uint32_t>(kind));
    for (JournalBlock i = 1; i < 1024; ++i) {
      const std::uint32_t later = kind == Kind::kCommit ? (i + 1023 - 500) % 1023 : 0;
      store_be<std::uint32_t>(bytes.data() + 8, 1 + later);
      journal.put(i, bytes);
    }
    const auto log = read(journal);
    ASSERT_TRUE(log.has_value()) << log.error().message;
    EXPECT_EQ(log->transactions, kind == Kind::kCommit ? 1023u : 0u);
    EXPECT_TRUE(log->writes.empty());
  }
}

// The journal has 1024 blocks.
TEST_F(JournalLogTest, ReadsNoMoreThanThereIs) {
  MadeJournal journal = make({.start = 300});
  three_transactions(journal);
  // As in a past, and not in an overlay.
  (void)TraceWriter::create(folder_.file("trace"), JournalImage::kBytes).value();
  JournalTwin again(twin_.write("image"), folder_.file("trace"));
  const auto log = JournalLog::read(
      *again.view, journal.file(),
      Super{.blocks = 1024, .first = 1, .log_end = 1024, .sequence = 1, .start = 300});
  ASSERT_TRUE(log.has_value()) << log.error().message;
  EXPECT_EQ(log->transactions, 3u);
  EXPECT_LE(again.view->counters().blocks_read, 64u);
  EXPECT_EQ(again.view->counters().questions, 1u);
}

}  // namespace
}  // namespace mariner::ifsck
