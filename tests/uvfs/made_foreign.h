// File systems that libtsk reads, changed round by round, whose blocks are written one by one in
// any order, some of them torn.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "ifsck/write_trace.h"
#include "proto/bytes.h"
#include "tests/ifsck/made_volume.h"
#include "tests/logging/temporary_directory.h"

namespace mariner::uvfs {

// An image, and the past that it is given.
class MadeForeign {
 public:
  static constexpr std::uint64_t kSecond = 1'000'000'000;

  // `make` is a command whose last word, the image, is missing.
  MadeForeign(const std::string& make, std::uint64_t bytes, unsigned seed = 1)
      : random(seed), bytes_(bytes) {
    run("truncate -s " + std::to_string(bytes) + " " + image());
    run(make + " " + image());
    run("cp --sparse=always " + image() + " " + folder_.file("first"));
    trace_.emplace(ifsck::TraceWriter::create(folder_.file("trace"), bytes).value());
  }

  static void run(const std::string& command) { ifsck::MadeImage::run(command); }
  [[nodiscard]] std::string image() const { return folder_.file("image"); }
  [[nodiscard]] std::string file(const std::string& name) const { return folder_.file(name); }
  // A file of this machine.
  std::string some(const std::string& contents) {
    std::ofstream(folder_.file("some")) << contents;
    return folder_.file("some");
  }

  // What is in the image now: by writes of a block each, a second later each. `torn`: in any order,
  // and some twice, the first time not wholly.
  SequenceNumber flush(bool torn = false) {
    const std::vector<char> now = read(image());
    if (known_.empty()) known_ = read(folder_.file("first"));
    std::vector<std::uint64_t> changed;
    for (std::uint64_t block = 0; block < bytes_ / kBlockBytes; ++block) {
      const auto at = static_cast<std::ptrdiff_t>(block * kBlockBytes);
      if (!std::equal(known_.begin() + at, known_.begin() + at + kBlockBytes, now.begin() + at)) {
        changed.push_back(block);
      }
    }
    if (torn) std::ranges::shuffle(changed, random);
    for (const std::uint64_t block : changed) {
      char* const known = known_.data() + block * kBlockBytes;
      const char* const is = now.data() + block * kBlockBytes;
      if (torn && random() % 4 == 0) {
        const std::size_t sectors = random() % 8;
        std::memcpy(known, is, sectors * 512);
        write(block);
      }
      std::memcpy(known, is, kBlockBytes);
      write(block);
    }
    return last;
  }
  // A block of the image, whether it has changed or not.
  SequenceNumber write_again(std::uint64_t block) {
    if (known_.empty()) known_ = read(folder_.file("first"));
    write(block);
    return last;
  }
  void put(std::uint64_t offset, std::string_view bytes) {
    std::fstream file(image(), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(offset));
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  // Where something stands in the image; its last place.
  [[nodiscard]] std::uint64_t find(std::string_view bytes) const {
    const std::vector<char> all = read(image());
    const auto found = std::find_end(all.begin(), all.end(), bytes.begin(), bytes.end());
    EXPECT_NE(found, all.end());
    return static_cast<std::uint64_t>(found - all.begin());
  }
  [[nodiscard]] ifsck::TracePast past() const {
    return ifsck::TracePast::open(folder_.file("first"), folder_.file("trace")).value();
  }

  std::mt19937 random;
  SequenceNumber last;

 private:
  [[nodiscard]] std::vector<char> read(const std::string& path) const {
    std::vector<char> bytes(bytes_);
    std::ifstream(path, std::ios::binary)
        .read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return bytes;
  }
  void write(std::uint64_t block) {
    const auto bytes = std::as_bytes(std::span(known_)).subspan(block * kBlockBytes, kBlockBytes);
    const VersionTime time{(1'700'000'000 + last.value + 1) * kSecond};
    last = trace_->write(time, Lbn{block}, bytes).value();
  }

  logging::test::TemporaryDirectory folder_;
  const std::uint64_t bytes_;
  std::optional<ifsck::TraceWriter> trace_;
  std::vector<char> known_;
};

// Of FAT, changed by mtools.
class MadeFat : public MadeForeign {
 public:
  MadeFat(const std::string& options, std::uint64_t bytes, unsigned seed = 1)
      : MadeForeign("mkfs.fat -i 12345678 " + options, bytes, seed) {}

  // "mmd ::/folder"
  void tool(const std::string& name, const std::string& words, bool may_fail = false) {
    const std::string command = "MTOOLS_SKIP_CHECK=1 " + name + " -i " + image() + " " + words;
    run(may_fail ? "{ " + command + " </dev/null || true; }" : command);
  }
  void copy(const std::string& contents, const std::string& to) {
    tool("mcopy", "-o " + some(contents) + " \"::" + to + "\"");
  }
  // Something of everything.
  void change() {
    static const char* const kFolders[] = {"/", "/a", "/a/a folder with a long name", "/b"};
    const auto folder = [&] { return std::string(kFolders[random() % 4]); };
    const auto name = [&] { return "/a file with a long name " + std::to_string(random() % 8); };
    tool("mmd", "::/a \"::/a/a folder with a long name\" ::/b", true);
    for (int i = 0; i < 24; ++i) {
      const std::string path = "\"::" + folder() + name() + "\"";
      switch (random() % 8) {
        case 0: tool("mdel", path, true); break;
        case 1: tool("mren", path + " \"::" + folder() + name() + "\"", true); break;
        case 2: tool("mattrib", "+r " + path, true); break;
        case 3: tool("mattrib", "-r " + path, true); break;
        case 4: tool("mcopy", "-o " + some("short") + " ::/SHORT" + std::to_string(i), true); break;
        case 5: tool("mdeltree", "::/b", true); break;
        default: {
          const std::string contents(random() % 20'000, static_cast<char>('a' + random() % 26));
          tool("mcopy", "-o " + some(contents) + " " + path, true);
        }
      }
    }
  }
};

// Of UFS1 or UFS2, which is made anew with other files in it.
class MadeUfs : public MadeForeign {
 public:
  static constexpr std::uint64_t kBytes = 8u << 20;
  explicit MadeUfs(unsigned seed = 1, int version = 1)
      : MadeForeign(make(version), kBytes, seed), version_(version) {}

  void change() {
    for (int i = 0; i < 6; ++i) {
      const std::string path = std::string(random() % 2 == 0 ? "/" : "/folder/") + "file " +
                               std::to_string(random() % 8);
      const std::string contents(random() % 20'000, static_cast<char>('a' + random() % 26));
      run("mkdir -p " + tree() + "/folder; cp " + some(contents) + " \"" + tree() + path + "\"");
      if (random() % 3 == 0)
        run("rm -f \"" + tree() + "/file " + std::to_string(random() % 8) + "\"");
    }
    run("ln -sf folder/file " + tree() + "/link");
    run(make(version_) + " " + image());
  }

 private:
  // The folder beside the image.
  // (With smaller blocks it puts the superblock of UFS2 where nobody else does.)
  static std::string make(int version) {
    return "f() { mkdir -p $(dirname $1)/tree; makefs -t ffs -T 1700000000 -o version=" +
           std::string(version == 1 ? "1" : "2,bsize=65536,fsize=8192") +
           " -s 8m $1 $(dirname $1)/tree; }; f";
  }
  [[nodiscard]] std::string tree() const { return file("tree"); }

  const int version_;
};

// Of NTFS, changed by ntfscp, which makes files in its root directory; and by hand.
class MadeNtfs : public MadeForeign {
 public:
  static constexpr std::uint64_t kBytes = 8u << 20;
  explicit MadeNtfs(unsigned seed = 1) : MadeForeign("mkntfs -q -F -f -c 4096", kBytes, seed) {}

  void copy(const std::string& contents, const std::string& to) {
    run("ntfscp -q -f " + image() + " " + some(contents) + " \"" + to + "\"");
  }
  void copy_stream(const std::string& contents, const std::string& to, const std::string& stream) {
    run("ntfscp -q -f -N " + stream + " " + image() + " " + some(contents) + " \"" + to + "\"");
  }
  // Or not, where what is in the way is damaged.
  void try_to_copy(const std::string& contents, const std::string& to, const std::string& stream) {
    run("{ ntfscp -q -f " + (stream.empty() ? "" : "-N " + stream + " ") + image() + " " +
        some(contents) + " \"" + to + "\" || true; }");
  }
  void change() {
    for (int i = 0; i < 6; ++i) {
      const std::string name = "/a file with a long name " + std::to_string(random() % 12);
      const std::size_t size = random() % 3 == 0 ? random() % 600 : random() % 30'000;
      const std::string contents(size, static_cast<char>('a' + random() % 26));
      try_to_copy(contents, name, random() % 8 == 0 ? "stream" : "");
    }
    // As if it were deleted: the record is not in use any more; or it is again.
    const std::uint64_t record = first_record() + (64 + random() % 12) * 1024;
    put(record + 22, std::string_view(random() % 2 == 0 ? "\1" : "\0", 1));
  }
  // Of the $MFT.
  [[nodiscard]] std::uint64_t first_record() const {
    std::ifstream file(image(), std::ios::binary);
    std::vector<char> boot(512);
    file.read(boot.data(), 512);
    return load_le<std::uint64_t>(boot.data() + 48) * 4096;
  }
};

// Of exFAT, changed by this: files of its root directory, whose clusters follow each other.
class MadeExfat : public MadeForeign {
 public:
  static constexpr std::uint64_t kBytes = 8u << 20;
  static constexpr std::size_t kEntry = 32;
  explicit MadeExfat(unsigned seed = 1) : MadeForeign("mkfs.exfat -c 4K -L label", kBytes, seed) {
    std::ifstream file(image(), std::ios::binary);
    std::vector<char> boot(512);
    file.read(boot.data(), 512);
    heap_ = load_le<std::uint32_t>(boot.data() + 88) * std::uint64_t{512};
    root_ = place(load_le<std::uint32_t>(boot.data() + 96));
    std::vector<char> entries(4096);
    file.seekg(static_cast<std::streamoff>(root_));
    file.read(entries.data(), 4096);
    while (entries[next_ * kEntry] != 0) {
      if (entries[next_ * kEntry] == '\x81') {
        bitmap_ = place(load_le<std::uint32_t>(entries.data() + next_ * kEntry + 20));
      }
      ++next_;
    }
  }
  [[nodiscard]] std::uint64_t place(std::uint64_t cluster) const {
    return heap_ + (cluster - 2) * 4096;
  }

  struct Entries {
    std::uint64_t place = 0;
    std::string bytes;
    std::uint64_t contents = 0;
  };
  // `name` is ASCII, or code points of one UTF-16 unit.
  Entries make(const std::u16string& name, const std::string& contents, std::uint64_t written) {
    const std::uint64_t clusters = (contents.size() + 4095) / 4096;
    for (std::uint64_t i = 0; i < clusters; ++i) set_bit(free_ - 2 + i);
    Entries made{.place = root_ + next_ * kEntry, .bytes = {}, .contents = place(free_)};
    put(made.contents, contents);
    const std::size_t pieces = (name.size() + 14) / 15;
    std::string& set = made.bytes;
    set.resize((2 + pieces) * kEntry);
    set[0] = '\x85';
    set[1] = static_cast<char>(1 + pieces);
    store_le<std::uint32_t>(set.data() + 12, 0x5a21'0000u + static_cast<std::uint32_t>(next_));
    store_le<std::uint32_t>(set.data() + 8, 0x5a21'0000u);
    set[22] = set[23] = set[24] = '\x84';  // an hour east
    set[32] = '\xC0';
    set[33] = '\x03';  // one after another
    set[35] = static_cast<char>(name.size());
    store_le<std::uint64_t>(set.data() + 40, written);
    store_le<std::uint32_t>(set.data() + 52,
                            contents.empty() ? 0 : static_cast<std::uint32_t>(free_));
    store_le<std::uint64_t>(set.data() + 56, contents.size());
    for (std::size_t i = 0; i < pieces; ++i) {
      char* const piece = set.data() + (2 + i) * kEntry;
      *piece = '\xC1';
      std::memcpy(piece + 2, name.data() + 15 * i,
                  2 * std::min<std::size_t>(15, name.size() - 15 * i));
    }
    put_set(made);
    next_ += 2 + pieces;
    free_ += clusters;
    return made;
  }
  // With its checksum.
  void put_set(Entries& set) {
    std::uint16_t sum = 0;
    for (std::size_t i = 0; i < set.bytes.size(); ++i) {
      if (i == 2 || i == 3) continue;
      sum = static_cast<std::uint16_t>((sum >> 1 | sum << 15) +
                                       static_cast<unsigned char>(set.bytes[i]));
    }
    store_le<std::uint16_t>(set.bytes.data() + 2, sum);
    put(set.place, set.bytes);
  }
  void remove(Entries& set) {
    for (std::size_t i = 0; i < set.bytes.size(); i += kEntry) {
      set.bytes[i] = static_cast<char>(set.bytes[i] & 0x7F);
    }
    put(set.place, set.bytes);
  }
  void change() {
    for (int i = 0; i < 4; ++i) {
      const std::string contents(random() % 9000, static_cast<char>('a' + random() % 26));
      all_.push_back(make(u"a file with a long name " +
                              std::u16string(1, static_cast<char16_t>(u'à' + all_.size())),
                          contents, random() % 2 == 0 ? contents.size() : contents.size() / 2));
    }
    if (random() % 2 == 0) remove(all_[random() % all_.size()]);
    put(all_[random() % all_.size()].contents + random() % 4096, "here");
    Entries& one = all_[random() % all_.size()];
    if ((one.bytes[0] & 0x80) == 0) return;
    one.bytes[4] = static_cast<char>(one.bytes[4] ^ 1);
    put_set(one);
  }

 private:
  void set_bit(std::uint64_t cluster) {
    std::ifstream file(image(), std::ios::binary);
    file.seekg(static_cast<std::streamoff>(bitmap_ + cluster / 8));
    const char byte = static_cast<char>(file.get() | 1 << cluster % 8);
    put(bitmap_ + cluster / 8, {&byte, 1});
  }

  std::uint64_t heap_ = 0;
  std::uint64_t root_ = 0;
  std::uint64_t bitmap_ = 0;
  std::size_t next_ = 0;      // entry of the root directory
  std::uint64_t free_ = 200;  // cluster
  std::vector<Entries> all_;
};

}  // namespace mariner::uvfs
