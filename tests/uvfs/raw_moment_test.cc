#include "uvfs/raw_moment.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>

#include "tests/uvfs/made_files.h"
#include "tests/uvfs/made_foreign.h"

namespace mariner::uvfs {
namespace {

constexpr std::uint64_t kBytes = 1u << 20;

TEST(RawMomentTest, IsOneFileWithAllOfTheVolume) {
  MadeForeign made("true", kBytes);
  made.put(0, "XFSB");
  made.put(kBytes - 4, "last");
  const auto then = made.flush();
  made.put(0, "JFS1");
  const auto now = made.flush();
  auto past = made.past();
  const auto moment = RawMoment::open(past, then).value();
  EXPECT_TRUE(moment->is_raw());
  EXPECT_EQ(moment->at(), then);
  EXPECT_TRUE(S_ISDIR(moment->state(moment->root())->mode));
  const ObjectNumber image = moment->find(moment->root(), RawMoment::kName).value();
  EXPECT_EQ(moment->state(image)->size, kBytes);
  auto contents = moment->contents(image).value();
  std::array<char, 8> bytes{};
  EXPECT_EQ(contents.read(0, std::as_writable_bytes(std::span(bytes))).value(), bytes.size());
  EXPECT_EQ(std::string(bytes.data(), 4), "XFSB");
  EXPECT_EQ(contents.read(kBytes - 4, std::as_writable_bytes(std::span(bytes))).value(), 4u);
  EXPECT_EQ(std::string(bytes.data(), 4), "last");
  EXPECT_TRUE(moment->attributes(image)->all.empty());
  EXPECT_EQ(moment->names(image).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(moment->contents(moment->root()).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(moment->state(99).error().code, ErrorCode::kNotFound);
  EXPECT_GT(now, then);
}

TEST(RawMomentTest, AMountShowsItWhereNothingIsUnderstood) {
  MadeForeign made("true", kBytes);
  made.put(0, "XFSB");
  const auto at = made.flush();
  MadeFiles files(made);
  const auto root = files.files->find(HistoryFiles::kRoot, "@#" + std::to_string(at.value)).value();
  const auto image = files.files->find(root.id, RawMoment::kName).value();
  EXPECT_EQ(image.object.size, kBytes);
  std::array<char, 4> bytes{};
  EXPECT_EQ(files.files->read(image.id, 0, std::as_writable_bytes(std::span(bytes))).value(), 4u);
  EXPECT_EQ(std::string(bytes.data(), 4), "XFSB");
  // It is no snapshot of files.
  const auto snapshots = files.files->find(HistoryFiles::kRoot, "snapshots").value();
  EXPECT_TRUE(files.files->list(snapshots.id)->empty());
}

}  // namespace
}  // namespace mariner::uvfs
