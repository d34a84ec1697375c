// Operations on a file system whose blocks are written in an order of the test's choosing.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ifsck/moment.h"
#include "ifsck/moment_check.h"
#include "tests/ifsck/made_moment.h"
#include "tests/ifsck/made_volume.h"

namespace mariner::ifsck {

// What can be seen of a file system: by path the inode, and what is in it.
class Tree {
 public:
  static std::map<std::string, std::string> of(Past& past, SequenceNumber at, Overlay& overlay) {
    Moment moment(past, at, overlay);
    EXPECT_TRUE(moment.open().has_value());
    Tree tree(moment.context().fs);
    tree.visit(EXT2_ROOT_INO, "");
    return tree.found_;
  }

 private:
  explicit Tree(ext2_filsys fs) : fs_(fs) {}

  void visit(ext2_ino_t directory, const std::string& path) {
    struct Entries {
      std::vector<std::pair<std::string, ext2_ino_t>> all;
    } entries;
    const auto collect = [](ext2_dir_entry* entry, int, int, char*, void* to) {
      const std::string name(entry->name, static_cast<std::size_t>(ext2fs_dirent_name_len(entry)));
      if (name != "." && name != "..") {
        static_cast<Entries*>(to)->all.emplace_back(name, entry->inode);
      }
      return 0;
    };
    EXPECT_EQ(ext2fs_dir_iterate(fs_, directory, 0, nullptr, collect, &entries), 0);
    for (const auto& [name, inode] : entries.all) {
      const std::string place = path + "/" + name;
      ext2_inode bytes{};
      EXPECT_EQ(ext2fs_read_inode(fs_, inode, &bytes), 0);
      found_[place] = std::to_string(inode) + " ";
      if (LINUX_S_ISDIR(bytes.i_mode)) {
        found_[place] += "folder";
        visit(inode, place);
      } else if (LINUX_S_ISREG(bytes.i_mode)) {
        found_[place] += content(inode);
      }
    }
  }
  std::string content(ext2_ino_t inode) {
    ext2_file_t file = nullptr;
    EXPECT_EQ(ext2fs_file_open(fs_, inode, 0, &file), 0);
    std::string all(ext2fs_file_get_size(file), '\0');
    unsigned got = 0;
    EXPECT_EQ(ext2fs_file_read(file, all.data(), static_cast<unsigned>(all.size()), &got), 0);
    (void)ext2fs_file_close(file);
    return all;
  }

  ext2_filsys fs_;
  std::map<std::string, std::string> found_;
};

class OperationsTest : public ::testing::TestWithParam<const char*> {
 protected:
  void make(const std::string& commands) {
    before_ = MadeImage::of(GetParam()).file("image");
    after_ = folder_.file("after");
    MadeImage::run("cp --sparse=always " + before_ + " " + after_);
    std::ofstream(folder_.file("content")) << std::string(30'000, 'c');
    std::ofstream(folder_.file("commands")) << commands;
    const std::string at = folder_.file("content");
    MadeImage::run("sed -i 's|CONTENT|" + at + "|' " + folder_.file("commands"));
    MadeImage::run("debugfs -w -f " + folder_.file("commands") + " " + after_);
    MadeImage::run("e2fsck -fy " + after_ + " >/dev/null 2>&1; test $? -le 1");
    then_ = read(before_);
    now_ = read(after_);
    for (std::uint64_t block = 0; block < MadeImage::kBytes / kBlockBytes; ++block) {
      if (bytes_of(then_, block) != bytes_of(now_, block)) changed_.push_back(block);
    }
  }

  // The last of `late` are written a second after the others: the moment is between.
  void write(const std::set<std::uint64_t>& late) {
    auto trace = TraceWriter::create(folder_.file("trace"), MadeImage::kBytes).value();
    std::uint64_t time = 1'000'000'000;
    at_ = {};
    for (const bool behind : {false, true}) {
      for (const std::uint64_t block : changed_) {
        if (late.contains(block) != behind) continue;
        const std::string bytes = bytes_of(now_, block);
        const auto written =
            trace.write(VersionTime{++time}, Lbn{block}, std::as_bytes(std::span(bytes)));
        (behind ? end_ : at_) = written.value();
      }
      time += 1'000'000'000;
    }
    past_.emplace(TracePast::open(before_, folder_.file("trace")).value());
  }

  MomentReport check(Overlay& overlay, std::chrono::nanoseconds after = std::chrono::seconds(35)) {
    KnownStates states;
    Overlay first;
    EXPECT_TRUE(check_moment(*past_, {}, states, first, {}).has_value());  // is known then
    auto report = check_moment(*past_, at_, states, overlay, {.after = after});
    EXPECT_TRUE(report.has_value()) << report.error().message;
    EXPECT_NE(report->verdict, Verdict::kDamaged);
    EXPECT_FALSE(report->full);
    return *report;
  }
  std::map<std::string, std::string> tree(SequenceNumber at) {
    Overlay none;
    return Tree::of(*past_, at, none);
  }

  // What differs, and what was found.
  static std::string text(const std::map<std::string, std::string>& ours,
                          const std::map<std::string, std::string>& wanted,
                          const MomentReport& report) {
    std::string all;
    for (const auto& [path, content] : ours) {
      const auto found = wanted.find(path);
      if (found == wanted.end()) all += "  too much: " + path + "\n";
      if (found != wanted.end() && found->second != content) all += "  other: " + path + "\n";
    }
    for (const auto& [path, content] : wanted) {
      if (!ours.contains(path)) all += "  missing: " + path + "\n";
    }
    for (const Finding& each : report.findings) {
      if (!is_derived(each.code)) all += "  " + describe(each) + "\n";
    }
    for (const CompletedOperation& each : report.completed) all += "  " + describe(each) + "\n";
    for (const Repair& each : report.repairs) {
      if (!is_derived(each.finding.code)) all += "  " + describe(each) + "\n";
    }
    return all;
  }

  static std::string read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static std::string bytes_of(const std::string& image, std::uint64_t block) {
    return image.substr(block * kBlockBytes, kBlockBytes);
  }

  logging::test::TemporaryDirectory folder_;
  std::string before_;
  std::string after_;
  std::string then_;
  std::string now_;
  std::vector<std::uint64_t> changed_;
  std::optional<TracePast> past_;
  SequenceNumber at_;
  SequenceNumber end_;
};

inline constexpr const char* kSomeOperations =
    "write CONTENT /a/made\n"
    "mkdir /a/folder\n"
    "write CONTENT /a/folder/inside\n"
    "rm \"/many/a file with a long name, number 100\"\n"
    "ln \"/many/a file with a long name, number 200\" /a/b/moved\n"
    "unlink \"/many/a file with a long name, number 200\"\n"
    "kill_file /a/b/sparse\n"
    "rm /a/b/sparse\n";

inline constexpr const char* kOperationKinds[] = {
    "-t ext2 -b 1024", "-t ext2 -b 4096", "-t ext4 -b 1024 -O ^has_journal",
    "-t ext4 -b 4096 -O inline_data,64bit,quota -I 256"};

}  // namespace mariner::ifsck
