#include "ifsck/journal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "ifsck/mend.h"
#include "tests/ifsck/journal_twin.h"
#include "tests/ifsck/made_journal.h"

namespace mariner::ifsck {
namespace {

using Super = JournalSuperblock;

constexpr const char* kKinds[] = {
    "-t ext3 -b 1024 -J size=1",
    "-t ext3 -b 4096 -J size=4",
    "-t ext4 -b 1024 -J size=1",
    "-t ext4 -b 1024 -J size=1 -O ^metadata_csum,^64bit",
    "-t ext4 -b 2048 -J size=2 -O 64bit,metadata_csum",
    "-t ext4 -b 4096 -J size=4 -O ^64bit",
    "-t ext4 -b 4096 -J size=4",
};

int rounds(int few) {
  const char* const more = std::getenv("MARINER_TEST_SEEDS");
  return more != nullptr ? std::atoi(more) : few;
}

class JournalTest : public ::testing::TestWithParam<const char*> {
 protected:
  // Ours beside what e2fsck says of the same state.
  struct Outcome {
    Result<Replay> ours{Replay{}};
    int theirs = 0;
    std::optional<std::uint64_t> difference;
  };
  static Outcome replay(JournalTwin& twin) {
    const std::string theirs = twin.write("theirs");
    Outcome out{.ours = replay_journal(*twin.view)};
    out.theirs = twin.e2fsck(theirs);
    if (out.ours && out.theirs <= 1) {
      out.difference = JournalTwin::difference(twin.write("ours"), theirs);
    }
    return out;
  }
  static bool has_one(const std::string& text, std::initializer_list<const char*> words) {
    return std::ranges::any_of(
        words, [&](const char* each) { return text.find(each) != std::string::npos; });
  }
  static std::vector<std::byte> some_bytes(std::size_t size, std::mt19937_64& random) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; i += 8) store_le(bytes.data() + i, random());
    if (random() % 4 == 0) store_be(bytes.data(), JournalHead::kMagic);
    return bytes;
  }
  // Blocks that a journal may write, so that what stays is a file system.
  static std::vector<FsBlock> targets(const MadeJournal& journal, std::mt19937_64& random) {
    std::vector<FsBlock> blocks;
    while (blocks.size() < 12) {
      const FsBlock block = random() % journal.layout().blocks();
      if (journal.layout().place_of(block).kind == ExtLayout::Kind::kData &&
          !journal.file().has(block)) {
        blocks.push_back(block);
      }
    }
    return blocks;
  }
  static MadeJournal::Options some_options(const std::string& kind, std::mt19937_64& random) {
    MadeJournal::Options options;
    const bool large = kind.find("^64bit") == std::string::npos && random() % 2 == 0;
    if (large) options.incompatible |= Super::k64Bit;
    switch (random() % 5) {
      case 0: options = {.version = 1, .incompatible = 0}; break;
      case 1: options.compatible = Super::kCompatChecksum; break;
      case 2: options.incompatible |= Super::kChecksumV2; break;
      case 3: options.incompatible |= Super::kChecksumV3; break;
      default: break;
    }
    options.sequence = random() % 2 == 0 ? ~0u - static_cast<std::uint32_t>(random() % 6)
                                         : static_cast<std::uint32_t>(random());
    // (All journals here have 1024 blocks.)
    options.start =
        1 + static_cast<JournalBlock>(random() % 2 == 0 ? random() % 1023 : 1022 - random() % 40);
    if (random() % 8 == 0) options.error = -5;
    return options;
  }
  static MadeJournal some_journal(View& view, const MadeJournal::Options& options,
                                  std::mt19937_64& random) {
    MadeJournal journal(view, options);
    const std::vector<FsBlock> blocks = targets(journal, random);
    const std::size_t bytes = journal.layout().block_bytes();
    const auto transactions = random() % 7;
    for (std::uint64_t i = 0; i < transactions; ++i) {
      const auto writes = random() % 16 == 0 ? 150 : random() % 8;
      for (std::uint64_t j = 0; j < writes; ++j) {
        journal.write(blocks[random() % blocks.size()], some_bytes(bytes, random));
      }
      for (auto j = random() % 4; options.version == 2 && j > 1; --j) {
        journal.revoke(blocks[random() % blocks.size()]);
      }
      journal.commit(1000 + i, i + 1 < transactions || random() % 4 != 0);
    }
    return journal;
  }
};

TEST_P(JournalTest, CostsOneBlockWhereThereIsNothingToDo) {
  JournalTwin twin(JournalImage::of(GetParam()));
  const auto done = replay_journal(*twin.view);
  ASSERT_TRUE(done.has_value()) << done.error().message;
  EXPECT_FALSE(done->needed);
  EXPECT_EQ(twin.view->counters().blocks_read, 1u);
  EXPECT_EQ(twin.overlay.size(), 0u);
}

TEST_P(JournalTest, IsEmptiedWhereItIsEmpty) {
  JournalTwin twin(JournalImage::of(GetParam()));
  const MadeJournal journal(*twin.view, {.sequence = 77, .start = 0});
  const Outcome out = replay(twin);
  ASSERT_TRUE(out.ours.has_value()) << out.ours.error().message;
  EXPECT_TRUE(out.ours->needed);
  EXPECT_EQ(out.ours->transactions, 0u);
  EXPECT_EQ(out.theirs, 0) << twin.said;
  EXPECT_EQ(out.difference, std::nullopt);
}

// What debugfs writes.
TEST_P(JournalTest, ReplaysWhatDebugfsWrites) {
  for (const char* const options : {"", "-c -v 2", "-c -v 3"}) {
    logging::test::TemporaryDirectory folder;
    const std::string image = folder.file("image");
    std::ofstream(folder.file("data")) << std::string(20'000, 'd');
    std::ofstream(folder.file("more")) << std::string(20'000, 'm');
    std::ofstream(folder.file("commands"))
        << "jo " << options << "\njw -b 2500,2501,2502 " << folder.file("data")
        << "\njw -b 2501,2503 " << folder.file("more") << "\njw -r 2502 " << folder.file("more")
        << "\njw -b 2504 " << folder.file("more") << "\njw -c -b 2505 " << folder.file("data")
        << "\njc\n";
    ASSERT_EQ(shell("cp " + JournalImage::of(GetParam()).file("image") + " " + image +
                    " && debugfs -w -f " + folder.file("commands") + " " + image + " >" +
                    folder.file("said")),
              0);
    (void)TraceWriter::create(folder.file("trace"), JournalImage::kBytes).value();
    JournalTwin twin(image, folder.file("trace"));
    const Outcome out = replay(twin);
    ASSERT_TRUE(out.ours.has_value()) << out.ours.error().message;
    EXPECT_EQ(out.theirs, 0) << twin.said;
    EXPECT_EQ(out.difference, std::nullopt) << options;
    // (Where the file system has no checksums debugfs gives none to commits of revocations.)
    const auto volume = ExtVolume::open(*twin.view, {}).value();
    const bool has_checksums = ext2fs_has_feature_metadata_csum(volume.fs()->super) != 0;
    if (!has_checksums && *options != '\0') continue;
    EXPECT_EQ(out.ours->transactions, 4u) << options;
    EXPECT_EQ(out.ours->blocks, 4u);  // 2500, 2501, 2503 and 2504
    EXPECT_EQ(out.ours->revoked, 1u);
    EXPECT_FALSE(out.ours->cut || out.ours->failed);
  }
}

TEST_P(JournalTest, ReplaysWhatE2fsckReplays) {
  std::uint64_t blocks = 0;
  std::uint64_t revoked = 0;
  const int all = rounds(10);
  for (int seed = 0; seed < all; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    JournalTwin twin(JournalImage::of(GetParam()));
    const auto options = some_options(GetParam(), random);
    const MadeJournal journal = some_journal(*twin.view, options, random);
    const Outcome out = replay(twin);
    ASSERT_TRUE(out.ours.has_value()) << "seed " << seed << ": " << out.ours.error().message;
    ASSERT_LE(out.theirs, 1) << "seed " << seed << ": " << twin.said;
    EXPECT_EQ(out.ours->transactions, journal.sequence() - options.sequence) << "seed " << seed;
    EXPECT_EQ(out.ours->failed, options.error != 0) << "seed " << seed;
    EXPECT_EQ(out.difference, std::nullopt) << "seed " << seed << ": " << twin.said;
    blocks += out.ours->blocks;
    revoked += out.ours->revoked;
  }
  EXPECT_GT(blocks, static_cast<std::uint64_t>(all));
  EXPECT_GT(revoked, 0u);
}

// Of what has a part of it changed at random.
TEST_P(JournalTest, AgreesWithE2fsckOnDamage) {
  int replayed = 0;
  int refused = 0;
  const int all = rounds(20);
  for (int seed = 0; seed < all; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed) + 1'000'000);
    JournalTwin twin(JournalImage::of(GetParam()));
    const auto options = some_options(GetParam(), random);
    const MadeJournal journal = some_journal(*twin.view, options, random);
    for (auto i = random() % 3 + 1; i > 0; --i) {
      JournalBlock at = 0;
      if (!journal.written().empty() && random() % 8 != 0) {
        at = journal.written()[random() % journal.written().size()].second;
      }
      std::uint64_t within =
          random() % 2 == 0 ? random() % 64 : random() % journal.layout().block_bytes();
      // (e2fsck mends a superblock of the first version that has fields of the second.)
      if (at == 0 && options.version == 1) within %= 36;
      const ByteRange place{journal.file().bytes_of(at).offset + within, 1};
      std::byte byte{};
      ASSERT_TRUE(twin.view->read(place, std::span(&byte, 1)).has_value());
      byte ^= static_cast<std::byte>(1u << random() % 8);
      ASSERT_TRUE(twin.view->write(place, std::span(&byte, 1)).has_value());
    }
    const std::size_t before = twin.overlay.size();
    const Outcome out = replay(twin);
    if (!out.ours) {
      ++refused;
      // e2fsck goes on without the journal, and says so. (It writes to blocks that do not exist, or
      // are the journal's, and believes, or mends, a superblock that a mount does not.)
      const std::string& message = out.ours.error().message;
      EXPECT_TRUE(out.theirs != 0 ||
                  has_one(twin.said, {"checksum error", "corrupt", "while recovering"}) ||
                  has_one(message, {"does not exist", "is one of the journal", "superblock"}))
          << "seed " << seed << ": " << message << "; " << twin.said;
      EXPECT_EQ(twin.overlay.size(), before);
      continue;
    }
    if (out.theirs > 1 || has_one(twin.said, {"Clearing fields"})) continue;
    // (To jbd2 a damaged transaction with this number is none.)
    if (out.ours->failed &&
        static_cast<std::uint32_t>(options.sequence + out.ours->transactions) == 0)
      continue;
    ++replayed;
    EXPECT_EQ(out.difference, std::nullopt)
        << "seed " << seed << ", " << out.ours->transactions << " transactions, cut "
        << out.ours->cut << ", version " << options.version << ", features " << std::hex
        << options.compatible << " " << options.incompatible << "\n"
        << twin.said;
  }
  EXPECT_GT(replayed, all / 10);
  EXPECT_GT(refused, all / 10);
}

// Whatever it says, what is without it can be mended, and is a file system then.
TEST_P(JournalTest, IsGivenUpWhereItCannotBeReplayed) {
  const auto rounds_each = static_cast<unsigned>(rounds(6));
  unsigned dropped = 0;
  for (unsigned seed = 0; seed < rounds_each; ++seed) {
    std::mt19937_64 random(700 + seed);
    JournalTwin twin(JournalImage::of(GetParam()));
    MadeJournal journal(*twin.view, some_options(GetParam(), random));
    for (const FsBlock block : targets(journal, random)) {
      journal.write(block, some_bytes(journal.layout().block_bytes(), random));
    }
    journal.commit(seed);
    const ByteRange first = journal.file().bytes_of(0);
    const bool nothing = seed % 2 == 0;
    if (nothing) {
      ASSERT_TRUE(twin.view->write({first.offset, 64}, std::vector<std::byte>(64)).has_value());
    }
    ASSERT_TRUE(give_up_journal(*twin.view).has_value());
    const Mended mended = mend_in_full(*twin.view).value();
    EXPECT_TRUE(mended.left.empty());
    const auto volume = ExtVolume::open(*twin.view, {}).value();
    EXPECT_EQ(ext2fs_has_feature_journal(volume.fs()->super) == 0, nothing);
    EXPECT_FALSE(ext2fs_has_feature_journal_needs_recovery(volume.fs()->super));
    dropped += nothing ? 1 : 0;
    EXPECT_EQ(twin.e2fsck(twin.write("given_up"), "-fn"), 0) << seed << ": " << twin.said;
  }
  EXPECT_EQ(dropped, (rounds_each + 1) / 2);
}

INSTANTIATE_TEST_SUITE_P(Kinds, JournalTest, ::testing::ValuesIn(kKinds));

class JournalErrorTest : public ::testing::Test {
 protected:
  // With one transaction that writes to a block.
  MadeJournal make(FsBlock to) {
    MadeJournal journal(*twin_.view, {});
    journal.write(to, std::vector<std::byte>(4096, std::byte{1}));
    journal.commit(1);
    return journal;
  }
  ErrorCode code() {
    const std::size_t before = twin_.overlay.size();
    const auto done = replay_journal(*twin_.view);
    EXPECT_TRUE(done.has_value() || twin_.overlay.size() == before);
    return done ? ErrorCode::kAborted : done.error().code;
  }
  JournalTwin twin_{JournalImage::of("-t ext4 -b 4096 -J size=4 -O ^metadata_csum")};
};

TEST_F(JournalErrorTest, IsSaidOfBlocksThatNoJournalMayWrite) {
  const FsBlock blocks = JournalImage::kBytes / 4096;
  make(blocks);
  EXPECT_EQ(code(), ErrorCode::kCorrupt);
  make(~FsBlock{0} >> 32);
  EXPECT_EQ(code(), ErrorCode::kCorrupt);
  const MadeJournal journal = make(2500);
  const FsBlock own = journal.file().bytes_of(700).offset / 4096;
  make(own);
  EXPECT_EQ(code(), ErrorCode::kCorrupt);
  make(blocks - 1);
  EXPECT_EQ(code(), ErrorCode::kAborted);
}

TEST_F(JournalErrorTest, IsSaidOfWhatIsNoFileSystemAfterwards) {
  make(0);
  EXPECT_EQ(code(), ErrorCode::kNotFound);
}

TEST_F(JournalErrorTest, IsSaidOfAJournalElsewhere) {
  make(2500);
  const std::uint32_t none = 0;
  ASSERT_TRUE(twin_.view->write({1024 + 0xe0, 4}, std::as_bytes(std::span(&none, 1))).has_value());
  EXPECT_EQ(code(), ErrorCode::kInvalidArgument);
}

TEST_F(JournalErrorTest, IsSaidOfNoFileSystem) {
  const std::vector<std::byte> zeros(4096);
  ASSERT_TRUE(twin_.view->write({0, 4096}, zeros).has_value());
  EXPECT_EQ(code(), ErrorCode::kNotFound);
}

// What was logged twice is written once.
TEST_F(JournalErrorTest, IsNoneWhereABlockWasLoggedOftenAndEscaped) {
  MadeJournal journal(*twin_.view, {});
  std::vector<std::byte> bytes(4096, std::byte{2});
  for (int i = 0; i < 5; ++i) {
    store_be(bytes.data(), i == 4 ? JournalHead::kMagic : 7u);
    journal.write(2500, bytes);
    journal.commit(1);
  }
  const auto done = replay_journal(*twin_.view);
  ASSERT_TRUE(done.has_value()) << done.error().message;
  EXPECT_EQ(done->transactions, 5u);
  EXPECT_EQ(done->blocks, 1u);
  std::vector<std::byte> found(4096);
  ASSERT_TRUE(twin_.view->read({2500 * 4096, 4096}, found).has_value());
  EXPECT_EQ(found, bytes);
  EXPECT_FALSE(replay_journal(*twin_.view)->needed);
}

}  // namespace
}  // namespace mariner::ifsck
