#include "uvfs/parts/parted_past.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/uvfs/parts/made_disk.h"

namespace mariner::uvfs {
namespace {

std::string text_at(ifsck::Past& past, std::uint64_t block) {
  std::vector<std::byte> bytes(kBlockBytes);
  const ifsck::Past::Question question{Lbn{block}, {}};
  if (!past.read(std::span(&question, 1), bytes)) return "error";
  return {reinterpret_cast<const char*>(bytes.data()), 5};
}

TEST(PartedPastTest, IsTheVolumeUntilAPartIsChosen) {
  auto disk = std::make_unique<MadeDisk>(16 * kBlockBytes);
  disk->put_text(0, "first");
  disk->put_text(4 * kBlockBytes, "fifth");
  PartedPast past(std::move(disk));
  EXPECT_EQ(past.size_bytes(), 16 * kBlockBytes);
  EXPECT_EQ(text_at(past, 0), "first");
  const ByteRange beyond[] = {{8 * kBlockBytes, 9 * kBlockBytes}};
  EXPECT_EQ(past.choose(beyond).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(text_at(past, 0), "first");
  const ByteRange part[] = {{4 * kBlockBytes, 8 * kBlockBytes}};
  ASSERT_TRUE(past.choose(part).has_value());
  EXPECT_EQ(past.size_bytes(), 8 * kBlockBytes);
  EXPECT_EQ(text_at(past, 0), "fifth");
  EXPECT_EQ(text_at(past, 8), "error");
  EXPECT_EQ(text_at(past.volume(), 0), "first");
}

}  // namespace
}  // namespace mariner::uvfs
