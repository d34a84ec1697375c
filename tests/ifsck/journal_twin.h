// What e2fsck makes of a file system, beside what we do.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "ifsck/ext_layout.h"
#include "ifsck/ext_volume.h"
#include "ifsck/journal_file.h"
#include "ifsck/view.h"
#include "ifsck/write_trace.h"
#include "tests/logging/temporary_directory.h"

namespace mariner::ifsck {

// Runs a line of shell; its exit code.
inline int shell(const std::string& command) {
  const int status =
      std::system(("PATH=$PATH:/sbin:/usr/sbin; { " + command + "; } 2>/dev/null").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

// Empty where there is none.
inline std::string bytes_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  std::string bytes(in ? static_cast<std::size_t>(in.tellg()) : 0, '\0');
  in.seekg(0);
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

// An image as mke2fs has made it, with a journal.
class JournalImage {
 public:
  static constexpr std::uint64_t kBytes = 12u << 20;

  [[nodiscard]] static const JournalImage& of(const std::string& options) {
    static std::map<std::string, std::unique_ptr<JournalImage>> made;
    auto& one = made[options];
    if (one == nullptr) one.reset(new JournalImage(options));
    return *one;
  }
  [[nodiscard]] std::string file(const std::string& name) const { return folder_.file(name); }

 private:
  explicit JournalImage(const std::string& options) {
    EXPECT_EQ(shell("mkdir -p " + file("tree/folder") + "; echo here > " + file("tree/folder/one") +
                    "; truncate -s " + std::to_string(kBytes) + " " + file("image") +
                    "; mke2fs -q -N 256 -d " + file("tree") + " " + options + " " + file("image")),
              0);
    (void)TraceWriter::create(file("trace"), kBytes).value();
  }
  logging::test::TemporaryDirectory folder_;
};

class JournalTwin {
 public:
  explicit JournalTwin(const std::string& image, const std::string& trace) : image_(image) {
    past_.emplace(TracePast::open(image, trace).value());
    view.emplace(*past_, SequenceNumber{0}, overlay);
  }
  explicit JournalTwin(const JournalImage& image)
      : JournalTwin(image.file("image"), image.file("trace")) {}

  // Writes the image with what is in the overlay.
  std::string write(const std::string& name) {
    const std::string to = folder_.file(name);
    EXPECT_EQ(shell("cp --sparse=always " + image_ + " " + to), 0);
    const int fd = ::open(to.c_str(), O_WRONLY | O_CLOEXEC);
    overlay.for_each([&](Lbn lbn, const Overlay::Block& block) {
      EXPECT_EQ(pwrite(fd, block.data(), block.size(), static_cast<off_t>(lbn.byte_offset())),
                static_cast<ssize_t>(block.size()));
    });
    ::close(fd);
    return to;
  }
  // Lets e2fsck replay the journal of a file that write() has made; its exit code.
  int e2fsck(const std::string& file, const std::string& options = "-y -E journal_only") {
    const int status =
        shell("timeout 20 e2fsck " + options + " " + file + " > " + folder_.file("said") + " 2>&1");
    said = bytes_of_file(folder_.file("said"));
    return status;
  }
  // Where two files with the file system differ first, without times and sums in its superblock;
  // nothing: nowhere.
  static std::optional<std::uint64_t> difference(const std::string& one, const std::string& other) {
    std::string a = bytes_of_file(one);
    std::string b = bytes_of_file(other);
    EXPECT_EQ(a.size(), b.size());
    for (std::string* each : {&a, &b}) {
      for (const auto& [at, size] :
           {std::pair{0x0c, 8},                      // what is free
            std::pair{0x30, 4}, std::pair{0x40, 4},  // when it was written, and checked
            std::pair{0x158, 4},                     // what is free
            std::pair{0x178, 8},                     // how much was written, ever
            std::pair{0x194, 176},                   // the first and the last error
            std::pair{0x3fc, 4}}) {
        each->replace(1024u + static_cast<std::size_t>(at), static_cast<std::size_t>(size),
                      static_cast<std::size_t>(size), '\0');
      }
    }
    const auto found = std::ranges::mismatch(a, b);
    if (found.in1 == a.end()) return std::nullopt;
    return static_cast<std::uint64_t>(found.in1 - a.begin());
  }

  Overlay overlay;
  std::optional<View> view;
  std::string said;  // by e2fsck

 private:
  const std::string image_;
  logging::test::TemporaryDirectory folder_;
  std::optional<TracePast> past_;
};

}  // namespace mariner::ifsck
