#include "uvfs/sequential_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "tests/uvfs/made_files.h"
#include "tests/uvfs/made_foreign.h"

namespace mariner::uvfs {
namespace {

using FileId = HistoryFiles::FileId;

constexpr std::size_t kBytes = 5'000'000;

std::string random_text() {
  std::string text(kBytes, ' ');
  std::mt19937 random(1);
  for (char& each : text) each = static_cast<char>(random());
  return text;
}

// Of a mount, which has some of them open at a time.
TEST(SequentialFileTest, AFileThatIsReadOnAndOnIsTheSame) {
  MadeForeign made("mke2fs -q -t ext4 -b 4096", 16u << 20);
  const std::string text = random_text();
  for (const auto& [name, contents] :
       {std::pair("large", text), std::pair("small", std::string("small"))}) {
    MadeForeign::run("debugfs -w -R 'write " + made.some(contents) + " " + name + "' " +
                     made.image() + " > /dev/null 2>&1");
  }
  const auto at = made.flush();
  MadeFiles made_files(made);
  HistoryFiles& files = *made_files.files;
  const auto root = files.find(HistoryFiles::kRoot, "@#" + std::to_string(at.value)).value();
  const FileId large = files.find(root.id, "large")->id;
  const FileId small = files.find(root.id, "small")->id;
  const auto read = [&](FileId file, std::uint64_t offset, std::size_t count) {
    std::string bytes(count, 'x');
    bytes.resize(files.read(file, offset, std::as_writable_bytes(std::span(bytes))).value());
    return bytes;
  };
  for (const std::size_t piece : {4096u, 131'072u, 100'001u, 3'000'000u}) {
    std::string all;
    while (all.size() < kBytes) {
      all += read(large, all.size(), piece);
      // (Others are read in between, and something before.)
      if (all.size() % 7 == 0) {
        EXPECT_EQ(read(small, 0, 100), "small");
        EXPECT_EQ(read(large, all.size() / 2, 10), text.substr(all.size() / 2, 10));
      }
    }
    EXPECT_TRUE(all == text) << piece;
    EXPECT_EQ(read(large, kBytes, piece), "");
  }
  std::mt19937 random(2);
  for (int i = 0; i < 300; ++i) {
    const std::size_t offset = random() % kBytes;
    const std::size_t count = random() % 200'000;
    EXPECT_TRUE(read(large, offset, count) == text.substr(offset, count));
  }
}

TEST(SequentialFileTest, AnErrorIsToldAndTheNextReadTriesAgain) {
  const std::string text = random_text();
  bool fails = false;
  SequentialFile file(FileContents::of_reader(
      kBytes, [&](std::uint64_t offset, std::span<std::byte> to) -> Result<void> {
        if (fails) return Error{ErrorCode::kUnavailable, "not now"};
        std::ranges::copy(std::as_bytes(std::span(text)).subspan(offset, to.size()), to.begin());
        return {};
      }));
  std::string piece(100'000, 'x');
  const auto to = std::as_writable_bytes(std::span(piece));
  EXPECT_EQ(file.read(0, to).value(), piece.size());
  fails = true;
  EXPECT_EQ(file.read(piece.size(), to).error().code, ErrorCode::kUnavailable);
  fails = false;
  EXPECT_EQ(file.read(piece.size(), to).value(), piece.size());
  EXPECT_EQ(piece, text.substr(piece.size(), piece.size()));
  // What is in the window needs nobody.
  fails = true;
  EXPECT_EQ(file.read(2 * piece.size(), to).value(), piece.size());
  EXPECT_EQ(piece, text.substr(2 * piece.size(), piece.size()));
}

}  // namespace
}  // namespace mariner::uvfs
