#include "uvfs/replayed_past.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/uvfs/counted_past.h"
#include "tests/uvfs/made_journal_history.h"
#include "tests/uvfs/replay_comparison.h"

namespace mariner::uvfs {
namespace {

using ifsck::Past;
using ifsck::TracePast;

std::uint64_t rounds(std::uint64_t few) {
  const char* const more = std::getenv("MARINER_TEST_SEEDS");
  return more != nullptr ? std::strtoull(more, nullptr, 10) : few;
}

constexpr std::uint32_t kRevoke = Super::kRevoke;
struct Case {
  const char* image;
  MadeJournal::Options journal;
  friend void PrintTo(const Case& one, std::ostream* out) {
    *out << one.image << ", features " << one.journal.compatible << " " << one.journal.incompatible;
  }
};
const Case kCases[] = {
    {"-t ext3 -b 1024 -J size=1", {.version = 1, .incompatible = 0, .blocks = 61}},
    {"-t ext3 -b 1024 -J size=1", {.sequence = ~0u - 9, .blocks = 90}},
    {"-t ext3 -b 4096 -J size=4", {.compatible = Super::kCompatChecksum, .blocks = 70}},
    {"-t ext4 -b 1024 -J size=1",
     {.compatible = Super::kCompatChecksum,
      .incompatible = kRevoke | Super::kAsyncCommit,
      .start = 30,
      .blocks = 80}},
    {"-t ext4 -b 2048 -J size=2 -O 64bit,metadata_csum",
     {.incompatible = kRevoke | Super::k64Bit | Super::kChecksumV3, .blocks = 64}},
    {"-t ext4 -b 4096 -J size=4 -O ^64bit",
     {.incompatible = kRevoke | Super::kChecksumV2, .blocks = 50}},
    {"-t ext4 -b 1024 -J size=1",
     {.incompatible = kRevoke | Super::k64Bit | Super::kChecksumV2, .blocks = 77}},
    {"-t ext4 -b 4096 -J size=4",
     {.incompatible = kRevoke | Super::k64Bit | Super::kChecksumV3, .start = 40, .blocks = 60}},
    {"-t ext4 -b 4096 -J size=4",
     {.incompatible = kRevoke | Super::kChecksumV3 | Super::kAsyncCommit, .blocks = 60}},
    {"-t ext4 -b 4096 -J size=4", {.sequence = 77, .start = 1000}},
};

class ReplayedPastTest : public ::testing::TestWithParam<Case> {
 protected:
  static ReplaySum compare(bool calm, std::uint64_t seed, std::size_t steps,
                           const ReplayedPast::Options& options) {
    const std::string name = "seed " + std::to_string(seed);
    MadeJournalHistory history({GetParam().image, GetParam().journal, calm}, seed);
    history.run(steps);
    TracePast past = history.past();
    const SequenceNumber first{seed % 3 == 0 ? 0 : 1 + seed * 13 % (history.last().value / 2)};
    auto replayed = ReplayedPast::open(past, first, history.last(), options);
    EXPECT_TRUE(replayed.has_value()) << replayed.error().message;
    ReplayComparison comparison(past, **replayed, history.journal().file(), history.blocks());
    comparison.run(first, history.last(), name);
    return comparison.sum;
  }
};

TEST_P(ReplayedPastTest, IsWhatAMountWouldHaveAtEveryMoment) {
  ReplaySum sum;
  for (std::uint64_t seed = 0; seed < rounds(4); ++seed) {
    add(sum, compare(true, seed, 60, {}));
    if (HasFailure()) return;
  }
  EXPECT_GT(sum.replayed, sum.moments / 2);
  EXPECT_EQ(sum.refused, 0u);
  EXPECT_GT(sum.by_the_journal, sum.moments / 8);
}

TEST_P(ReplayedPastTest, IsThatOfAnyLog) {
  ReplaySum sum;
  for (std::uint64_t seed = 0; seed < rounds(12); ++seed) {
    // Little is kept, and much is read again.
    ReplayedPast::Options options;
    if (seed % 2 == 0) {
      options.ring = {.kept_blocks_max = 1 + seed, .questions_max = 5, .ahead = 1 + seed % 4};
      options.fetched_at_once = 1 + seed % 7;
    }
    add(sum, compare(false, 100 + seed, 80, options));
    if (HasFailure()) return;
  }
  EXPECT_GT(sum.replayed, sum.moments / 6);
  EXPECT_GT(sum.refused, 0u);
  EXPECT_GT(sum.by_the_journal, sum.moments / 8);
}

INSTANTIATE_TEST_SUITE_P(Journals, ReplayedPastTest, ::testing::ValuesIn(kCases));

class ReplayedPastQuestionsTest : public ::testing::Test {
 protected:
  static constexpr const char* kImage = "-t ext4 -b 4096 -J size=4";
  static MadeJournalHistory make(std::size_t steps) {
    return MadeJournalHistory({.image = kImage,
                               .journal = {.incompatible = Super::kChecksumV3 | Super::kRevoke},
                               .calm = true,
                               .copies_max = 3},
                              4, steps);
  }
};

// However many transactions there are.
TEST_F(ReplayedPastQuestionsTest, AreFewForManyTransactions) {
  const MadeJournalHistory history = make(6000);
  TracePast past = history.past();
  CountedPast counted(past);
  const auto replayed = ReplayedPast::open(counted, {}, history.last());
  ASSERT_TRUE(replayed.has_value()) << replayed.error().message;
  EXPECT_GT(history.transactions(), 4000u);
  // What was written to the journal, 2048 blocks at a time, what stood there, 256 at a time, and
  // what says what file system it is.
  EXPECT_LE(counted.reads, history.journal_writes() / 2048 + 1024 / 256 + 24);
  EXPECT_LE(counted.others, 8u);
  const auto opened = counted.reads;
  std::vector<Past::Question> questions;
  for (std::uint64_t at = 1; at < history.last().value; at += 7) {
    for (const Lbn lbn : history.blocks()) questions.push_back({lbn, SequenceNumber{at}});
  }
  std::vector<std::byte> bytes(questions.size() * kBlockBytes);
  ASSERT_TRUE((*replayed)->read(questions, bytes).has_value());
  EXPECT_EQ(counted.reads, opened + 1);
}

// None that is not one: where nothing odd happens.
TEST_F(ReplayedPastQuestionsTest, AreAnsweredWithoutVersionsThatAreNone) {
  const MadeJournalHistory history = make(300);
  TracePast past = history.past();
  const auto replayed = ReplayedPast::open(past, {}, history.last()).value();
  const std::set<Lbn> unique(history.blocks().begin(), history.blocks().end());
  const std::vector<Lbn> blocks(unique.begin(), unique.end());
  std::set<std::pair<Lbn, SequenceNumber>> raw;
  for (const auto& each : past.versions(blocks, {}, history.last()).value()) {
    raw.insert({each.block, each.sequence});
  }
  std::uint64_t all = 0;
  for (const auto& each : replayed->versions(blocks, {}, history.last()).value()) {
    if (raw.contains({each.block, each.sequence})) continue;
    const Past::Question two[] = {{each.block, each.sequence},
                                  {each.block, SequenceNumber{each.sequence.value - 1}}};
    Bytes bytes(2 * std::size_t{kBlockBytes});
    ASSERT_TRUE(replayed->read(two, bytes).has_value());
    EXPECT_FALSE(
        std::equal(bytes.begin(), bytes.begin() + kBlockBytes, bytes.begin() + kBlockBytes));
    ++all;
  }
  EXPECT_GT(all, 200u);
}

TEST_F(ReplayedPastQuestionsTest, AreOfItsStretch) {
  const MadeJournalHistory history = make(20);
  TracePast past = history.past();
  const SequenceNumber first{10};
  const SequenceNumber last{history.last().value - 4};
  const auto replayed = ReplayedPast::open(past, first, last).value();
  const std::vector<Lbn> blocks{Lbn{0}};
  Bytes bytes(kBlockBytes);
  for (const std::uint64_t at : {first.value - 1, last.value + 1}) {
    const Past::Question question{Lbn{0}, SequenceNumber{at}};
    EXPECT_EQ(replayed->read(std::span(&question, 1), bytes).error().code,
              ErrorCode::kOutsideWindow);
  }
  for (const auto& [from, to] : {std::pair{SequenceNumber{9}, last}, {first, last.next()}}) {
    EXPECT_EQ(replayed->versions(blocks, from, to).error().code, ErrorCode::kOutsideWindow);
    EXPECT_EQ(replayed->changed(from, to).error().code, ErrorCode::kOutsideWindow);
  }
  EXPECT_TRUE(replayed->versions(blocks, first, last).has_value());
  const Past::Question beyond{Lbn{past.size_bytes() / kBlockBytes}, last};
  EXPECT_EQ(replayed->read(std::span(&beyond, 1), bytes).error().code, ErrorCode::kInvalidArgument);
  // All else is the past's.
  EXPECT_EQ(replayed->size_bytes(), past.size_bytes());
  EXPECT_EQ(replayed->reach().value(), past.reach().value());
  EXPECT_EQ(replayed->time_of(last).value(), past.time_of(last).value());
  EXPECT_EQ(replayed->moment_of(past.time_of(last).value()).value(), last);
  EXPECT_EQ(replayed->first_break(first, last).value(), SequenceNumber{});
}

class ReplayedPastOpenTest : public ::testing::Test {
 protected:
  // An image with some bytes that are other.
  Result<std::unique_ptr<ReplayedPast>> open(const char* kind, std::uint64_t at,
                                             const std::string& bytes, std::uint64_t first = 0) {
    const auto& image = ifsck::JournalImage::of(kind);
    {
      auto trace =
          ifsck::TraceWriter::create(folder_.file("trace"), ifsck::JournalImage::kBytes).value();
      std::string block = ifsck::bytes_of_file(image.file("image")).substr(at / 4096 * 4096, 4096);
      block.replace(at % 4096, bytes.size(), bytes);
      (void)trace.write(VersionTime{1}, Lbn{at / 4096}, as_byte_span(block)).value();
    }
    past_.emplace(TracePast::open(image.file("image"), folder_.file("trace")).value());
    return ReplayedPast::open(*past_, SequenceNumber{first}, SequenceNumber{1});
  }
  static constexpr const char* kImage = "-t ext4 -b 4096 -J size=4";
  logging::test::TemporaryDirectory folder_;
  std::optional<TracePast> past_;
};

TEST_F(ReplayedPastOpenTest, SaysWhatIsWrong) {
  EXPECT_EQ(open(kImage, 1024 + 0x38, "xx").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(open(kImage, 1024 + 0x63, "x").error().code, ErrorCode::kInvalidArgument);
  // The journal's inode is another one.
  EXPECT_EQ(open(kImage, 1024 + 0xe0, std::string("\x03\0", 2)).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(open(kImage, 4096, "", 2).error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(open(kImage, 0, "").has_value());
}

// Without a journal, or with one elsewhere.
TEST_F(ReplayedPastOpenTest, PassesThroughWhatHasNoJournal) {
  EXPECT_TRUE(open(kImage, 1024 + 0xe0, std::string(4, '\0')).has_value());
  const auto replayed = open("-t ext2 -b 4096", 5000, "other").value();
  const Past::Question question{Lbn{1}, SequenceNumber{1}};
  Bytes bytes(kBlockBytes);
  ASSERT_TRUE(replayed->read(std::span(&question, 1), bytes).has_value());
  EXPECT_EQ(std::memcmp(bytes.data() + 904, "other", 5), 0);
  const std::vector<Lbn> blocks{Lbn{1}};
  EXPECT_EQ(replayed->versions(blocks, {}, SequenceNumber{1}).value().size(), 1u);
  EXPECT_EQ(replayed->changed({}, SequenceNumber{1}).value().size(), 1u);
}

// A file system with a journal that a kernel writes (root, loop devices): its image is looked at
// again and again while it is mounted, and what is other is taken for writes.
class ReplayedPastKernelTest : public ::testing::TestWithParam<const char*> {
 protected:
  static constexpr std::uint64_t kBytes = 24u << 20;
  // False: it cannot be mounted here.
  bool run(std::uint64_t seed) {
    using ifsck::shell;
    const std::string disk = folder_.file("disk");
    at_ = folder_.file("at");
    EXPECT_EQ(shell("truncate -s " + std::to_string(kBytes) + " " + disk + "; mke2fs -q -N 512 " +
                    GetParam() + " " + disk + "; cp " + disk + " " + folder_.file("image")),
              0);
    state_ = ifsck::bytes_of_file(disk);
    trace_.emplace(ifsck::TraceWriter::create(folder_.file("trace"), kBytes).value());
    if (shell("mkdir -p " + at_ + "; mount -o loop,commit=1000 " + disk + " " + at_) != 0) {
      return false;
    }
    std::mt19937_64 random(seed);
    for (int i = 0; i < 30; ++i) {
      shell("cd " + at_ + " && " + some_command(random));
      take(ifsck::bytes_of_file(disk), random);
    }
    EXPECT_EQ(shell("umount " + at_), 0);
    take(ifsck::bytes_of_file(disk), random);
    return true;
  }
  std::string some_command(std::mt19937_64& random) const {
    const std::string one = "d" + std::to_string(random() % 4);
    const std::string file = one + "/f" + std::to_string(random() % 12);
    std::string command;
    for (int i = 0; i < 3; ++i) {
      switch (random() % 8) {
        case 0: command += "rm -rf " + one + "; "; break;
        case 1: command += "rm -f " + file + "; "; break;
        case 2: command += "mv " + file + " " + one + "/moved; "; break;
        default:
          command +=
              "mkdir -p " + one + "; seq " + std::to_string(random() % 9000) + " > " + file + "; ";
      }
    }
    // The tail moves when the log is full, or by this.
    if (random() % 12 == 0) return command + "fsfreeze -f " + at_ + " && fsfreeze -u " + at_;
    return command + (random() % 3 == 0 ? "sync" : "sync " + one + "; sync " + file);
  }
  // Runs of blocks that are other, in any order.
  void take(const std::string& now, std::mt19937_64& random) {
    std::vector<BlockRange> ranges;
    for (std::uint64_t lbn = 0; lbn < kBytes / kBlockBytes; ++lbn) {
      const std::size_t from = lbn * kBlockBytes;
      if (now.compare(from, kBlockBytes, state_, from, kBlockBytes) == 0) continue;
      blocks.insert(Lbn{lbn});
      if (!ranges.empty() && ranges.back().end() == Lbn{lbn} && random() % 4 != 0) {
        ranges.back().count = ranges.back().count + BlockCount{1};
      } else {
        ranges.push_back({Lbn{lbn}, BlockCount{1}});
      }
    }
    std::ranges::shuffle(ranges, random);
    // A kernel waits with commits. (Without checksums what else is not there is believed.)
    std::ranges::stable_partition(
        ranges, [&](const BlockRange& each) { return !has_commit(now, to_bytes(each)); });
    for (const BlockRange& each : ranges) {
      const auto bytes = as_byte_span(now).subspan(each.first.byte_offset(), each.count.bytes());
      last = trace_->write(VersionTime{++time_}, each.first, bytes).value();
    }
    state_ = now;
  }
  static bool has_commit(const std::string& bytes, const ByteRange& range) {
    for (std::uint64_t at = range.offset; at < range.end(); at += 1024) {
      const auto head = JournalHead::of(as_byte_span(bytes).subspan(at, JournalHead::kBytes));
      if (head.is_one() && head.kind == JournalHead::Kind::kCommit) return true;
    }
    return false;
  }
  void TearDown() override { ifsck::shell("umount " + at_); }
  std::set<Lbn> blocks;
  SequenceNumber last;
  logging::test::TemporaryDirectory folder_;

 private:
  std::string at_;
  std::string state_;
  std::optional<ifsck::TraceWriter> trace_;
  std::uint64_t time_ = 0;
};

// How much a kernel leaves to its journal depends on how busy the machine is: another history, if
// that was little.
TEST_P(ReplayedPastKernelTest, IsWhatAMountWouldHaveAtEveryMoment) {
  ReplaySum sum;
  for (std::uint64_t seed = 1; seed <= 4 && sum.replayed <= sum.moments / 2; ++seed) {
    blocks.clear();
    last = {};
    if (!run(seed)) GTEST_SKIP() << "ext4 cannot be mounted here";
    TracePast past = TracePast::open(folder_.file("image"), folder_.file("trace")).value();
    ifsck::Overlay overlay;
    ifsck::View view(past, last, overlay);
    const auto volume = ifsck::ExtVolume::open(view, {}).value();
    const auto layout = ifsck::ExtLayout::of(volume).value();
    const auto file = ifsck::JournalFile::open(volume, layout).value();
    auto replayed = ReplayedPast::open(past, {}, last);
    ASSERT_TRUE(replayed.has_value()) << replayed.error().message;
    ReplayComparison comparison(past, **replayed, file, {blocks.begin(), blocks.end()});
    comparison.run({}, last, GetParam());
    ASSERT_FALSE(HasFailure());
    sum = comparison.sum;
  }
  EXPECT_GT(sum.replayed, sum.moments / 2);
  EXPECT_GT(sum.by_the_journal, 30u);
}

INSTANTIATE_TEST_SUITE_P(Kernel, ReplayedPastKernelTest,
                         ::testing::Values("-t ext4 -b 4096 -J size=4", "-t ext4 -b 1024 -J size=1",
                                           "-t ext3 -b 1024 -J size=1",
                                           "-t ext4 -b 4096 -J size=4 -O ^metadata_csum"));

}  // namespace
}  // namespace mariner::uvfs
