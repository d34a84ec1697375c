// With journals of a real kernel: where this one mounts ext4.
#include "ifsck/fast_replay.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "ifsck/journal.h"
#include "tests/ifsck/journal_twin.h"
#include "tests/ifsck/made_fast_commits.h"

namespace mariner::ifsck {
namespace {

using Super = JournalSuperblock;

// What each does is done after a transaction, and is in fast commits when the machine "stops".
struct Workload {
  const char* name;
  const char* python;
};
constexpr const char* kBegin = R"(
import os, random, sys
os.chdir(sys.argv[1])
def sync(path):
    f = os.open(path, os.O_RDONLY); os.fsync(f); os.close(f)
def write(path, data, at=0, fsync=True):
    f = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    os.pwrite(f, data, at)
    if fsync: os.fsync(f)
    os.close(f)
os.mkdir('d'); os.mkdir('e')
for i in range(30): write('d/old%d' % i, b'o' * (i * 1000), fsync=False)
os.system('sync -f .')
write('d/first', b'f')
os.system('sync -f .')
)";
constexpr Workload kWorkloads[] = {
    {"Files", R"(
write('d/a', b'a' * 5000); write('d/b', b'b' * 50000)
write('d/b', b'c' * 60000); write('d/old3', b'3' * 100000); write('d/old4', b'4', 10)
)"},
    {"Names", R"(
write('d/a', b'a' * 5000); os.link('d/a', 'd/linked'); os.unlink('d/old1')
os.rename('d/old2', 'e/moved'); os.rename('d/old5', 'd/old6'); sync('d/a')
os.unlink('d/a'); sync('d/linked'); write('e/last', b'l')
)"},
    {"Deleted", R"(
write('d/a', b'a' * 50000); os.unlink('d/a'); os.unlink('d/old20'); os.unlink('d/old21')
write('d/c', b'c' * 30000); os.unlink('d/c'); write('d/e', b'e' * 70000)
)"},
    {"Ranges", R"(
for i in range(60): write('e/sparse', bytes([i]) * 5000, (i * 37 % 60) * 100000, i % 7 == 0)
f = os.open('e/sparse', os.O_RDWR); os.ftruncate(f, 3000000); os.fsync(f)
for i in range(9): os.pwrite(f, b'again', 2500000 + i * 90000)
os.fsync(f)
os.posix_fallocate(f, 0, 400000); os.fsync(f); os.close(f)
f = os.open('d/old29', os.O_RDWR); os.ftruncate(f, 0); os.fsync(f); os.close(f)
write('d/last', b'l')
)"},
    {"Directories", R"(
os.mkdir('new'); write('new/file', b'n' * 9000); os.mkdir('new/deep'); write('new/deep/file', b'd')
os.mkdir('gone'); os.rmdir('gone'); write('new/last', b'l')
)"},
    // The log has come round; what an attribute does is in no fast commit.
    {"Round", R"(
for i in range(400):
    os.setxattr('d/old%d' % (i % 30), 'user.x', b'%d' % i); write('d/f%d' % (i % 50), b'r' * (i * 10))
for i in range(4): write('d/g%d' % i, b'r' * 5000)
)"},
    {"Many", R"(
for i in range(150): write('d/a file with a long name, number %d' % i, b'm' * 3000, fsync=i % 10 == 9)
for i in range(0, 150, 3): os.unlink('d/a file with a long name, number %d' % i)
write('d/last', b'l')
)"},
};

class FastReplayTest : public ::testing::TestWithParam<std::tuple<const char*, Workload>> {
 protected:
  // What stands in a file system: names, kinds, sizes, links, contents. (The kernel does not count
  // the links of directories when it replays.)
  std::string tree(const std::string& image, const std::string& options) {
    const std::string at = folder_.file("at");
    if (shell("mkdir -p " + at + "; mount -o loop" + options + " " + image + " " + at) != 0) {
      return {};
    }
    const std::string list =
        R"(find . ! -name lost+found \( -type d -printf '%p %y %m' -o -printf )"
        R"('%p %y %m %n %s %l' \) -printf '\n'; )"
        "find . -type f -exec md5sum {} +";
    EXPECT_EQ(shell("cd " + at + " && { " + list + "; } | sort > " + folder_.file("tree")), 0);
    EXPECT_EQ(shell("umount " + at), 0);
    return bytes_of_file(folder_.file("tree"));
  }
  // The image as it is when the machine stops; false: nothing can be mounted here.
  bool crash(const std::string& options, const std::string& python) {
    const std::string image = folder_.file("live");
    const std::string at = folder_.file("at");
    std::ofstream(folder_.file("work.py")) << kBegin << python;
    EXPECT_EQ(shell("truncate -s " + std::to_string(kBytes) + " " + image + "; mke2fs -q -N 1024 " +
                    options + " " + image),
              0);
    if (shell("mkdir -p " + at + "; mount -o loop " + image + " " + at) != 0) return false;
    EXPECT_EQ(shell("python3 " + folder_.file("work.py") + " " + at), 0);
    EXPECT_EQ(shell("cp " + image + " " + folder_.file("image") + "; umount " + at), 0);
    (void)TraceWriter::create(folder_.file("trace"), kBytes).value();
    return true;
  }
  static constexpr std::uint64_t kBytes = 40u << 20;
  logging::test::TemporaryDirectory folder_;
};

TEST_P(FastReplayTest, IsAsTheKernelDoesIt) {
  const auto& [options, workload] = GetParam();
  if (!crash(options, workload.python)) GTEST_SKIP() << "ext4 cannot be mounted here";
  JournalTwin twin(folder_.file("image"), folder_.file("trace"));
  const std::string theirs = twin.write("theirs");
  const auto done = replay_journal(*twin.view);
  ASSERT_TRUE(done.has_value()) << done.error().message;
  const bool fast = std::string_view(options).find("fast_commit") != std::string_view::npos;
  EXPECT_GT(fast ? done->fast_commits : done->transactions, 0u);
  const std::string ours = twin.write("ours");
  EXPECT_EQ(twin.e2fsck(ours, "-fn"), 0) << twin.said;
  const std::string kernel = tree(theirs, "");
  EXPECT_NE(kernel.find("./d/first f 644 1 1"), std::string::npos);
  EXPECT_EQ(tree(ours, ",ro"), kernel);
}

// Kinds of file systems: by what they are called in the tests' names.
struct Layout {
  const char* name;
  const char* options;
};
constexpr Layout kLayouts[] = {
    {"4096", "-t ext4 -O fast_commit -J size=8,fast_commit_size=1024 -b 4096"},
    {"1024", "-t ext4 -O fast_commit -J size=1,fast_commit_size=256 -b 1024"},
    {"Ext3", "-t ext3 -J size=4 -b 4096"},
};

INSTANTIATE_TEST_SUITE_P(Kernel, FastReplayTest,
                         ::testing::Combine(::testing::Values(kLayouts[0].options,
                                                              kLayouts[1].options,
                                                              kLayouts[2].options),
                                            ::testing::ValuesIn(kWorkloads)),
                         [](const auto& one) {
                           std::string name = std::get<1>(one.param).name;
                           for (const Layout& each : kLayouts) {
                             if (std::get<0>(one.param) == each.options) name += each.name;
                           }
                           return name;
                         });

// The log comes round before the blocks of fast commits, and not behind them.
TEST(FastReplayRingTest, IsAsTheKernelHasIt) {
  logging::test::TemporaryDirectory folder;
  JournalTwin twin(JournalImage::of("-t ext4 -b 1024 -J size=4 -O fast_commit,^metadata_csum"));
  constexpr JournalBlock kFast = 256;
  constexpr JournalBlock kBlocks = 4096 + 16;  // as mke2fs has made it
  MadeJournal journal(
      *twin.view,
      {.incompatible = Super::kFastCommit, .start = kBlocks - kFast - 4, .fast_blocks = kFast});
  ASSERT_EQ(journal.super().log_end, kBlocks - kFast);
  for (int i = 0; i < 4; ++i) {
    journal.write(static_cast<FsBlock>(11'000 + i), std::vector<std::byte>(1024, std::byte{7}));
    journal.commit(1);
  }
  ASSERT_LT(journal.next(), 100u);
  const std::string theirs = twin.write("theirs");
  const auto done = replay_journal(*twin.view);
  ASSERT_TRUE(done.has_value()) << done.error().message;
  EXPECT_EQ(done->transactions, 4u);
  if (shell("mkdir " + folder.file("at") + "; mount -o loop " + theirs + " " + folder.file("at")) !=
      0) {
    GTEST_SKIP() << "ext4 cannot be mounted here";
  }
  ASSERT_EQ(shell("umount " + folder.file("at")), 0);
  const std::string kernel = bytes_of_file(theirs).substr(11'000 * 1024, 5 * 1024);
  EXPECT_EQ(kernel, bytes_of_file(twin.write("ours")).substr(11'000 * 1024, 5 * 1024));
  EXPECT_EQ(kernel.substr(0, 4096), std::string(4096, '\7'));
}

// Operations that no kernel has written, with the right checksum.
class HostileFastReplayTest : public ::testing::Test {
 protected:
  static FastOperation some_operation(std::mt19937_64& random) {
    const char* const names[] = {"one", "two", "folder", "a/b", "", ".", "..", "new"};
    FastOperation operation;
    operation.kind = static_cast<FastOperation::Kind>(1 + random() % 6);
    // Most of them are there, or nearly.
    const auto number = [&] {
      const auto some = random() % 16;
      return static_cast<InodeNumber>(some == 0   ? random()
                                      : some == 1 ? random() % 12
                                      : some < 5  ? 2
                                                  : 11 + random() % 6);
    };
    operation.inode = number();
    operation.parent = number();
    operation.name = names[random() % std::size(names)];
    if (random() % 4 == 0) operation.name = std::string(random() % 300, 'n');
    const auto any = [&](std::uint64_t few) {
      return random() % 8 == 0 ? random() : random() % few;
    };
    operation.logical = any(40) & 0xffffffff;
    operation.count = any(20);
    if (operation.kind == FastOperation::Kind::kAddRange) operation.count %= 32768;
    operation.physical = any(12288) % (FsBlock{1} << 48);
    operation.unwritten = random() % 4 == 0;
    operation.bytes.resize(128 + random() % 2 * 32);
    for (std::byte& each : operation.bytes) {
      each = static_cast<std::byte>(random() % 3 == 0 ? random() : 0);
    }
    const std::uint16_t modes[] = {0100644, 040755, 0120777, static_cast<std::uint16_t>(random())};
    store_le(operation.bytes.data(), modes[random() % 4]);
    store_le<std::uint16_t>(operation.bytes.data() + 26, random() % 3 == 0 ? 0 : 1);
    store_le<std::uint32_t>(operation.bytes.data() + 32, random() % 4 == 0 ? 0 : 0x80000);
    store_le<std::uint32_t>(operation.bytes.data() + 100, random() % 3 == 0 ? 1 : 0);
    store_le<std::uint32_t>(operation.bytes.data() + 104, 0);
    return operation;
  }
};

TEST_F(HostileFastReplayTest, Ends) {
  const char* const more = std::getenv("MARINER_TEST_SEEDS");
  const int rounds = more != nullptr ? std::atoi(more) : 200;
  int replayed = 0;
  for (int seed = 0; seed < rounds; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    JournalTwin twin(JournalImage::of("-t ext4 -b 1024 -J size=4"));
    MadeJournal journal(*twin.view, {.incompatible = Super::kFastCommit, .fast_blocks = 256});
    MadeFastCommits commits(journal);
    for (auto i = 1 + random() % 12; i > 0; --i) commits.add(some_operation(random));
    commits.commit();
    const std::size_t before = twin.overlay.size();
    const auto done = replay_journal(*twin.view);
    if (!done) {
      EXPECT_EQ(twin.overlay.size(), before);
      continue;
    }
    replayed += done->fast_commits == 1 ? 1 : 0;
  }
  EXPECT_GT(replayed, rounds / 50);
}

// The root directory is as long as ever, and has 8000 blocks more than that: each look at it costs
// as many.
TEST_F(HostileFastReplayTest, IsBoundByWhatADirectoryHasWhateverItsSizeIs) {
  constexpr std::uint64_t kMap = 40;
  JournalTwin twin(JournalImage::of("-t ext4 -b 1024 -J size=4 -O ^metadata_csum"));
  MadeJournal journal(*twin.view, {.incompatible = Super::kFastCommit, .fast_blocks = 256});
  const std::uint64_t root = journal.layout().inode_place(EXT2_ROOT_INO).offset + kMap;
  const auto put = [&](std::uint64_t at, auto value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    ASSERT_TRUE(twin.view->write({root + at, bytes.size()}, bytes).has_value());
  };
  put(2, std::uint16_t{2});  // extents
  put(24, std::uint32_t{1});
  put(28, std::uint16_t{8000});
  put(30, std::uint16_t{0});
  put(32, std::uint32_t{2000});
  MadeFastCommits commits(journal);
  for (int i = 0; i < 600; ++i) {
    // (Another inode has that name: nothing happens.)
    commits.add({.kind = FastOperation::Kind::kUnlink,
                 .inode = 40,
                 .parent = EXT2_ROOT_INO,
                 .name = "folder"});
  }
  commits.commit();
  const auto done = replay_journal(*twin.view);
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().code, ErrorCode::kLimit) << done.error().message;
}

}  // namespace
}  // namespace mariner::ifsck
