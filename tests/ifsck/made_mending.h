// A damaged volume that is mended, and what is in it afterwards.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ifsck/mend.h"
#include "tests/ifsck/made_verdict.h"
#include "tests/ifsck/made_volume.h"

namespace mariner::ifsck {

struct MadeMending : MadeVolume {
  using MadeVolume::MadeVolume;

  // It is sound afterwards, for us and for e2fsck.
  Mended mend() {
    const Mended mended = mend_in_full(*view).value();
    for (const Finding& each : mended.left) ADD_FAILURE() << describe(each);
    EXPECT_EQ(MadeVerdict(image()).of(overlay), "");
    again.emplace(ExtVolume::open(*view, {}).value());
    return mended;
  }
  static bool has(const Mended& mended, Finding::Code code, Repair::Done done) {
    return std::ranges::any_of(mended.repairs, [&](const Repair& each) {
      return each.finding.code == code && each.done == done;
    });
  }
  // 0: there is none.
  [[nodiscard]] InodeNumber find_again(const std::string& path) const {
    ext2_ino_t number = 0;
    (void)ext2fs_namei(again->fs(), EXT2_ROOT_INO, EXT2_ROOT_INO, path.c_str(), &number);
    return number;
  }
  [[nodiscard]] static std::string content(const ExtVolume& of, InodeNumber number) {
    ext2_file_t file = nullptr;
    EXPECT_EQ(ext2fs_file_open(of.fs(), number, 0, &file), 0);
    std::string all(ext2fs_file_get_size(file), '\0');
    unsigned got = 0;
    EXPECT_EQ(ext2fs_file_read(file, all.data(), static_cast<unsigned>(all.size()), &got), 0);
    EXPECT_EQ(got, all.size());
    (void)ext2fs_file_close(file);
    return all;
  }
  [[nodiscard]] std::string content(InodeNumber number) const { return content(*again, number); }
  // A name goes, as if it had never been written.
  void remove(const char* directory, const char* name) {
    EXPECT_EQ(ext2fs_unlink(volume->fs(), find(directory), name, 0, 0), 0);
  }
  [[nodiscard]] BlockMap map(InodeNumber number) {
    return map_blocks(*volume, *layout, number, inode(number)).value();
  }

  std::optional<ExtVolume> again;  // after mend()
};

}  // namespace mariner::ifsck
