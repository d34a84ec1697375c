#include "uvfs/file_contents.h"

#include <gtest/gtest.h>

#include <map>

#include "ifsck/ext_inode.h"
#include "tests/ifsck/made_volume.h"
#include "tests/uvfs/made_foreign.h"

namespace mariner::uvfs {
namespace {

using ifsck::InodeAt;
using ifsck::InodeNumber;
using ifsck::MadeImage;
using ifsck::MadeVolume;
using Bytes = std::vector<std::byte>;

constexpr SequenceNumber kAt{};

class FileContentsTest : public ::testing::TestWithParam<const char*> {
 protected:
  Result<FileContents> open(InodeNumber number) {
    context_.emplace(*made_.volume, *made_.layout);
    inode_ = made_.inode(number);
    return FileContents::open(*made_.past, *context_,
                              {.number = number, .inode = inode_, .at = kAt});
  }
  // As libext2fs reads it.
  Bytes wanted(InodeNumber number) {
    ext2_file_t file = nullptr;
    EXPECT_EQ(ext2fs_file_open(made_.volume->fs(), number, 0, &file), 0);
    __u64 size = 0;
    EXPECT_EQ(ext2fs_file_get_lsize(file, &size), 0);
    Bytes all(size);
    unsigned got = 0;
    EXPECT_EQ(ext2fs_file_read(file, all.data(), static_cast<unsigned>(size), &got), 0);
    EXPECT_EQ(got, size);
    ext2fs_file_close(file);
    return all;
  }

  MadeVolume made_{GetParam()};
  std::optional<ifsck::ExtContext> context_;
  Bytes inode_;
};

TEST_P(FileContentsTest, EveryFileIsWhatLibext2fsReads) {
  std::size_t files = 0;
  for (InodeNumber number = EXT2_GOOD_OLD_FIRST_INO; number <= made_.layout->inodes(); ++number) {
    const Bytes inode = made_.inode(number);
    const ifsck::ExtInode of(inode);
    if (of.links() == 0 || !LINUX_S_ISREG(of.mode())) continue;
    ++files;
    auto contents = open(number);
    ASSERT_TRUE(contents.has_value()) << contents.error().message;
    EXPECT_TRUE(contents->is_whole());
    const Bytes whole = wanted(number);
    ASSERT_EQ(contents->size(), whole.size());
    Bytes ours;
    ASSERT_TRUE(contents
                    ->for_each_byte([&](std::uint64_t at, std::span<const std::byte> bytes) {
                      EXPECT_EQ(at, ours.size());
                      EXPECT_LE(bytes.size(), FileContents::kPieceBytesMax);
                      ours.insert(ours.end(), bytes.begin(), bytes.end());
                      return Result<void>{};
                    })
                    .has_value());
    ASSERT_TRUE(ours == whole) << "inode " << number;
    // From anywhere in it.
    Bytes some(5000);
    for (std::uint64_t at = 0; at < whole.size(); at += whole.size() / 7 + 1) {
      const auto got = contents->read(at, some);
      ASSERT_TRUE(got.has_value());
      ASSERT_EQ(*got, std::min<std::uint64_t>(some.size(), whole.size() - at));
      ASSERT_TRUE(std::equal(some.begin(), some.begin() + static_cast<std::ptrdiff_t>(*got),
                             whole.begin() + static_cast<std::ptrdiff_t>(at)));
    }
    EXPECT_EQ(contents->read(whole.size(), some).value(), 0u);
  }
  EXPECT_GT(files, 600u);
}

TEST_P(FileContentsTest, HolesAreNotVisited) {
  auto contents = open(made_.find("/a/b/sparse"));
  std::uint64_t visited = 0;
  ASSERT_TRUE(contents
                  ->for_each_piece([&](std::uint64_t, std::span<const std::byte> bytes) {
                    visited += bytes.size();
                    return Result<void>{};
                  })
                  .has_value());
  EXPECT_GT(visited, 0u);
  EXPECT_LT(visited, contents->size() / 5);
  const Error full{ErrorCode::kNoSpace, "full"};
  EXPECT_EQ(contents
                ->for_each_piece(
                    [&](std::uint64_t, std::span<const std::byte>) -> Result<void> { return full; })
                .error()
                .code,
            ErrorCode::kNoSpace);
}

TEST_P(FileContentsTest, LinksHaveTargets) {
  EXPECT_EQ(open(made_.find("/short"))->link_target().value(), "a/large");
  EXPECT_EQ(open(made_.find("/long"))->link_target().value(), std::string(200, 's'));
}

TEST_P(FileContentsTest, WhatHasNoContentsIsRefused) {
  EXPECT_EQ(open(made_.find("/a")).error().code, ErrorCode::kInvalidArgument);
  const InodeNumber file = made_.find("/a/large");
  made_.put<std::uint32_t>(file, InodeAt::kFlags,
                           ifsck::ExtInode(made_.inode(file)).flags() | EXT4_ENCRYPT_FL);
  EXPECT_EQ(open(file).error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(is_out_of_reach(open(file).error()));
  EXPECT_FALSE(is_out_of_reach({ErrorCode::kUnavailable, "the daemon's answer broke off"}));
  const InodeNumber other = made_.find("/a/b/sparse");
  made_.put<std::uint32_t>(other, InodeAt::kSizeHigh, 0x80000000);
  EXPECT_EQ(open(other).error().code, ErrorCode::kCorrupt);
  const InodeNumber link = made_.find("/long");
  made_.put<std::uint32_t>(link, InodeAt::kSize, 100'000);
  EXPECT_EQ(open(link)->link_target().error().code, ErrorCode::kCorrupt);
}

INSTANTIATE_TEST_SUITE_P(Kinds, FileContentsTest, ::testing::ValuesIn(ifsck::kKinds));

// ---- of others

std::string all_of(FileContents& contents) {
  std::string all;
  const auto done = contents.for_each_byte([&](std::uint64_t at, std::span<const std::byte> bytes) {
    EXPECT_EQ(at, all.size());
    all.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return Result<void>{};
  });
  EXPECT_TRUE(done.has_value());
  return all;
}
std::string part_of(FileContents& contents, std::uint64_t at, std::size_t bytes) {
  std::string part(bytes, '?');
  part.resize(contents.read(at, std::as_writable_bytes(std::span(part))).value());
  return part;
}

TEST(FileContentsOfOthersTest, BytesEndInZeros) {
  std::vector<std::byte> bytes(3, std::byte{'x'});
  FileContents contents = FileContents::of_bytes(5, bytes);
  EXPECT_EQ(all_of(contents), std::string("xxx\0\0", 5));
  EXPECT_EQ(part_of(contents, 2, 10), std::string("x\0\0", 3));
  EXPECT_EQ(part_of(contents, 5, 10), "");
  FileContents cut = FileContents::of_bytes(2, bytes);
  EXPECT_EQ(all_of(cut), "xx");
}

TEST(FileContentsOfOthersTest, WhatIsMadeIsAskedForInPieces) {
  const std::uint64_t size = FileContents::kPieceBytesMax + 100;
  FileContents contents =
      FileContents::of_reader(size, [](std::uint64_t offset, std::span<std::byte> to) {
        EXPECT_LE(to.size(), FileContents::kPieceBytesMax);
        for (std::size_t i = 0; i < to.size(); ++i)
          to[i] = static_cast<std::byte>((offset + i) / 7);
        return Result<void>{};
      });
  const std::string all = all_of(contents);
  ASSERT_EQ(all.size(), size);
  EXPECT_EQ(part_of(contents, 1000, 50), all.substr(1000, 50));
  EXPECT_EQ(part_of(contents, size - 10, 50), all.substr(size - 10));
  EXPECT_EQ(all[size - 1], static_cast<char>((size - 1) / 7));
}

TEST(FileContentsOfOthersTest, HolesInWhatIsMadeAreNotVisited) {
  constexpr std::uint64_t kMiB = 1u << 20;
  constexpr std::uint64_t kSize = 100 * kMiB + 5;
  const FileContents::Read read = [](std::uint64_t, std::span<std::byte> to) -> Result<void> {
    std::ranges::fill(to, std::byte{'x'});
    return {};
  };
  // Two that are in one piece, one over two, the last; and what is behind the end.
  FileContents contents = FileContents::of_reader(
      kSize, read,
      {{10, 0, 20}, {4096, 0, 4096}, {10 * kMiB - 1, 0, 2}, {kSize - 1, 0, 4096}, {kSize, 0, 1}});
  std::vector<std::pair<std::uint64_t, std::uint64_t>> visited;
  const auto done =
      contents.for_each_piece([&](std::uint64_t at, std::span<const std::byte> bytes) {
        visited.emplace_back(at, bytes.size());
        return Result<void>{};
      });
  EXPECT_TRUE(done.has_value());
  EXPECT_EQ(visited, (std::vector<std::pair<std::uint64_t, std::uint64_t>>{
                         {0, kMiB}, {9 * kMiB, 2 * kMiB}, {100 * kMiB, 5}}));
  EXPECT_EQ(part_of(contents, 5, 3), "xxx");
  const std::string all = all_of(contents);
  ASSERT_EQ(all.size(), kSize);
  EXPECT_EQ(all[kMiB - 1], 'x');
  EXPECT_EQ(all[kMiB], '\0');
}

TEST(FileContentsOfOthersTest, WhatCannotBeReadIsTheSameAsNothing) {
  const auto of = [](const std::string& text) {
    const auto bytes = std::as_bytes(std::span(text));
    return FileContents::of_bytes(text.size(), {bytes.begin(), bytes.end()});
  };
  const auto failing = [](ErrorCode code) {
    return FileContents::of_reader(3, [code](std::uint64_t, std::span<std::byte>) -> Result<void> {
      return Error{code, ""};
    });
  };
  FileContents one = of("one");
  FileContents same = of("one");
  FileContents other = of("two");
  FileContents longer = of("one more");
  EXPECT_TRUE(have_same_bytes(one, same).value());
  EXPECT_FALSE(have_same_bytes(one, other).value());
  EXPECT_FALSE(have_same_bytes(one, longer).value());
  FileContents damaged = failing(ErrorCode::kCorrupt);
  EXPECT_FALSE(have_same_bytes(one, damaged).value());
  EXPECT_FALSE(have_same_bytes(damaged, one).value());
  // (The daemon is away: nothing is known.)
  FileContents away = failing(ErrorCode::kUnavailable);
  EXPECT_EQ(have_same_bytes(one, away).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(have_same_bytes(away, one).error().code, ErrorCode::kUnavailable);
}

TEST(FileContentsOfOthersTest, RunsLieAtAnyByte) {
  MadeForeign made("true", 64 * 1024);
  made.put(5000, "one");
  made.put(9000, "other");
  const auto at = made.flush();
  auto past = made.past();
  FileContents contents =
      FileContents::of_runs(past, at, {.size = 12, .runs = {{1, 5000, 3}, {6, 9000, 9}}});
  EXPECT_EQ(all_of(contents), std::string("\0one\0\0other\0", 12));
  EXPECT_EQ(part_of(contents, 2, 6), std::string("ne\0\0ot", 6));
  EXPECT_TRUE(contents.is_whole());
}

TEST(FileContentsOfOthersTest, OfRunsThatOverlapTheFirstIsMeant) {
  MadeForeign made("true", 64 * 1024);
  made.put(5000, "the first of them");
  made.put(9000, "within it");
  made.put(12000, "half behind it");
  const auto at = made.flush();
  auto past = made.past();
  FileContents contents = FileContents::of_runs(
      past, at, {.size = 24, .runs = {{0, 5000, 17}, {4, 9000, 5}, {10, 12000, 14}}});
  const std::string whole = "the first of them" + std::string("half behind it").substr(7);
  ASSERT_EQ(whole.size(), 24u);
  EXPECT_EQ(all_of(contents), whole);
  for (std::uint64_t from = 0; from < whole.size(); ++from) {
    EXPECT_EQ(part_of(contents, from, 5), whole.substr(from, 5)) << from;
  }
  std::string pieces(24, '?');
  EXPECT_TRUE(contents
                  .for_each_piece([&](std::uint64_t offset, std::span<const std::byte> bytes) {
                    std::memcpy(pieces.data() + offset, bytes.data(), bytes.size());
                    return Result<void>{};
                  })
                  .has_value());
  EXPECT_EQ(pieces, whole);
}

}  // namespace
}  // namespace mariner::uvfs
