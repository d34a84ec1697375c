#include "uvfs/volume_guess.h"

#include <gtest/gtest.h>

#include "tests/uvfs/made_foreign.h"

namespace mariner::uvfs {
namespace {

TEST(VolumeGuessTest, WhatIsThereIsNamed) {
  for (const auto& [at, mark, name] :
       {std::tuple{std::uint64_t{0}, "XFSB", "XFS"},
        {512, "EFI PART", "a partition table (GPT)"},
        {510, "\x55\xaa", "a partition table (MBR), or a damaged FAT"},
        {3, "-FVE-FS-", "an encrypted volume (BitLocker)"},
        {65600, "_BHRfS_M", "Btrfs"},
        {100, "text", "something else"}}) {
    MadeForeign made("true", 1u << 20);
    EXPECT_EQ(guess_of_volume(*std::make_unique<ifsck::TracePast>(made.past()), {}).value(),
              "nothing but zeros");
    made.put(at, mark);
    const auto last = made.flush();
    auto past = made.past();
    EXPECT_EQ(guess_of_volume(past, last).value(), name);
    const Error error = no_file_system(past, last);
    EXPECT_EQ(error.code, ErrorCode::kNotFound);
    EXPECT_NE(error.message.find(name), std::string::npos) << error.message;
    EXPECT_NE(error.message.find("NTFS"), std::string::npos) << error.message;
  }
}

TEST(VolumeGuessTest, AVolumeMayBeSmall) {
  MadeForeign made("true", 4096);
  auto past = made.past();
  EXPECT_EQ(guess_of_volume(past, {}).value(), "nothing but zeros");
}

}  // namespace
}  // namespace mariner::uvfs
