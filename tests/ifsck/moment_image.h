// A moment of a past as an image file, made from that of the moment before.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "ifsck/overlay.h"
#include "ifsck/past.h"
#include "proto/check.h"

namespace mariner::ifsck {

class MomentImage {
 public:
  // Of the past's oldest moment.
  MomentImage(Past& past, std::string path) : past_(past), path_(std::move(path)) {
    fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    CHECK(fd_ >= 0);
    CHECK(::ftruncate(fd_, static_cast<off_t>(past_.size_bytes())) == 0);
    at_ = past_.reach().value().oldest;
    copy({{{0}, {past_.size_bytes() >> kBlockShift}}});
  }
  ~MomentImage() { ::close(fd_); }
  MomentImage(const MomentImage&) = delete;
  MomentImage& operator=(const MomentImage&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

  void go_to(SequenceNumber at) {
    const auto [from, to] = std::minmax(at_, at);
    const auto changed = past_.changed(from, to);
    at_ = at;
    copy(changed.value());
  }

  // With the overlay while `look` runs.
  template <typename Look>
  void with(const Overlay& overlay, Look look) {
    std::vector<std::pair<Lbn, Overlay::Block>> before;
    overlay.for_each([&](Lbn lbn, const Overlay::Block& block) {
      Overlay::Block old;
      const auto place = static_cast<off_t>(lbn.byte_offset());
      CHECK(::pread(fd_, old.data(), old.size(), place) == kBlockBytes);
      before.emplace_back(lbn, old);
      put(lbn, block.data());
    });
    look();
    for (const auto& [lbn, old] : before) put(lbn, old.data());
  }

 private:
  void copy(const std::vector<BlockRange>& ranges) {
    std::vector<Past::Question> asked;
    for (const BlockRange& range : ranges) {
      for (Lbn lbn = range.first; lbn < range.end(); lbn = lbn + BlockCount{1}) {
        asked.push_back({lbn, at_});
        if (asked.size() == 1024) copy_blocks(asked);
      }
    }
    copy_blocks(asked);
  }

  void copy_blocks(std::vector<Past::Question>& asked) {
    std::vector<std::byte> bytes(asked.size() * kBlockBytes);
    (void)past_.read(asked, bytes).value();
    Overlay::Block old;
    for (std::size_t i = 0; i < asked.size(); ++i) {
      const std::byte* const block = &bytes[i * kBlockBytes];
      const auto place = static_cast<off_t>(asked[i].block.byte_offset());
      CHECK(::pread(fd_, old.data(), old.size(), place) == kBlockBytes);
      if (!std::equal(old.begin(), old.end(), block)) put(asked[i].block, block);
    }
    asked.clear();
  }

  void put(Lbn lbn, const std::byte* block) {
    CHECK(::pwrite(fd_, block, kBlockBytes, static_cast<off_t>(lbn.byte_offset())) == kBlockBytes);
  }

  Past& past_;
  std::string path_;
  int fd_ = -1;
  SequenceNumber at_;
};

// Its exit code, and what it says.
struct Said {
  int code = -1;
  std::string text;
};
inline Said run_e2fsck(const std::string& options, const std::string& image) {
  const std::string said = image + ".said";
  const int status = std::system(
      ("PATH=$PATH:/sbin:/usr/sbin; e2fsck " + options + " '" + image + "' > '" + said + "' 2>&1")
          .c_str());
  std::ifstream in(said);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, {std::istreambuf_iterator<char>(in), {}}};
}

}  // namespace mariner::ifsck
