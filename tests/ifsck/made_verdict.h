// What e2fsck says of an image with an overlay.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "ifsck/view.h"
#include "tests/ifsck/made_volume.h"
#include "tests/logging/temporary_directory.h"

namespace mariner::ifsck {

class MadeVerdict {
 public:
  // `image` stays as it is.
  explicit MadeVerdict(const std::string& image) : copy_(folder_.file("copy")) {
    MadeImage::run("cp --sparse=always " + image + " " + copy_);
    fd_ = ::open(copy_.c_str(), O_RDWR | O_CLOEXEC);
  }
  ~MadeVerdict() { ::close(fd_); }
  MadeVerdict(const MadeVerdict&) = delete;
  MadeVerdict& operator=(const MadeVerdict&) = delete;

  // Nothing: e2fsck finds nothing wrong with the image and these blocks. Else what it says.
  std::string of(const Overlay& overlay) {
    std::vector<std::pair<Lbn, Overlay::Block>> before;
    overlay.for_each([&](Lbn lbn, const Overlay::Block& block) {
      Overlay::Block old;
      const auto at = static_cast<off_t>(lbn.byte_offset());
      EXPECT_EQ(pread(fd_, old.data(), old.size(), at), static_cast<ssize_t>(old.size()));
      EXPECT_EQ(pwrite(fd_, block.data(), block.size(), at), static_cast<ssize_t>(block.size()));
      before.emplace_back(lbn, old);
    });
    const int status = std::system(
        ("PATH=$PATH:/sbin:/usr/sbin; e2fsck -fn " + copy_ + " > " + copy_ + ".said 2>&1").c_str());
    std::ifstream in(copy_ + ".said");
    const std::string said{std::istreambuf_iterator<char>(in), {}};
    for (const auto& [lbn, old] : before) {
      EXPECT_EQ(pwrite(fd_, old.data(), old.size(), static_cast<off_t>(lbn.byte_offset())),
                static_cast<ssize_t>(old.size()));
    }
    return status == 0 ? "" : "e2fsck: " + said;
  }

 private:
  logging::test::TemporaryDirectory folder_;
  const std::string copy_;
  int fd_ = -1;
};

}  // namespace mariner::ifsck
