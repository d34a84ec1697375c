#include "ifsck/completion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ifsck/moment.h"
#include "ifsck/moment_check.h"
#include "tests/ifsck/made_moment.h"
#include "tests/ifsck/made_volume.h"

namespace mariner::ifsck {
namespace {

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

// Operations whose blocks are written in an order of the test's choosing.
class CompletionTest : public ::testing::TestWithParam<const char*> {
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

constexpr const char* kCommands =
    "write CONTENT /a/made\n"
    "mkdir /a/folder\n"
    "write CONTENT /a/folder/inside\n"
    "rm \"/many/a file with a long name, number 100\"\n"
    "ln \"/many/a file with a long name, number 200\" /a/b/moved\n"
    "unlink \"/many/a file with a long name, number 200\"\n"
    "kill_file /a/b/sparse\n"
    "rm /a/b/sparse\n";

// Whichever block is missing, the operations are done, or the file system is as it was written.
TEST_P(CompletionTest, OneMissingBlockIsMadeUpFor) {
  make(kCommands);
  std::size_t completed = 0;
  for (const std::uint64_t block : changed_) {
    write({block});
    Overlay overlay;
    const MomentReport report = check(overlay);
    if (report.sound) continue;
    const auto ours = Tree::of(*past_, at_, overlay);
    auto wanted = tree(end_);
    // (Contents that were not written yet are no matter of a check.)
    for (auto& [path, content] : wanted) {
      const auto found = ours.find(path);
      const auto inode = content.substr(0, content.find(' '));
      if (found != ours.end() && found->second.starts_with(inode + " ")) content = found->second;
    }
    const std::string what = "block " + std::to_string(block) + "\n" + text(ours, wanted, report);
    EXPECT_FALSE(report.completed.empty()) << what;
    EXPECT_EQ(report.undone_because, "") << what;
    EXPECT_TRUE(ours == wanted) << what;
    ++completed;
  }
  EXPECT_GE(completed, 4u);
}

// Nothing of it is in the directories and inodes yet: it has not begun.
TEST_P(CompletionTest, WhatHasNotBegunIsNotDone) {
  make(kCommands);
  std::set<std::uint64_t> late(changed_.begin(), changed_.end());
  MadeImage::run("true");
  Overlay none;
  write(late);
  // (No write came before: the moment is that of the image.)
  Overlay overlay;
  const MomentReport report = check(overlay);
  EXPECT_EQ(report.verdict, Verdict::kClean);
  EXPECT_TRUE(report.completed.empty());
}

TEST_P(CompletionTest, HalfOfTheBlocksInAnyOrder) {
  make(kCommands);
  std::uint64_t with = 0;
  std::uint64_t without = 0;
  for (unsigned round = 0; round < 12; ++round) {
    std::set<std::uint64_t> late;
    for (std::size_t i = 0; i < changed_.size(); ++i) {
      if ((i * 7 + round * round + round) % 3 == 0) late.insert(changed_[i]);
    }
    write(late);
    Overlay overlay;
    const MomentReport report = check(overlay);
    Overlay undone;
    const MomentReport other = check(undone, {});
    EXPECT_TRUE(other.completed.empty());
    const auto lost = [](const std::map<std::string, std::string>& tree) {
      return static_cast<std::uint64_t>(std::ranges::count_if(
          tree, [](const auto& each) { return each.first.starts_with("/lost+found/"); }));
    };
    with += lost(Tree::of(*past_, at_, overlay));
    without += lost(Tree::of(*past_, at_, undone));
  }
  EXPECT_LE(with, without);
  RecordProperty("lost_and_found", static_cast<int>(with));
  RecordProperty("lost_and_found_undone", static_cast<int>(without));
}

TEST_P(CompletionTest, NothingIsCompletedFromBehindTheWindow) {
  make(kCommands);
  write({changed_.back()});
  for (const std::uint64_t block : changed_) {
    write({block});
    Overlay overlay;
    const MomentReport report = check(overlay, std::chrono::milliseconds(500));
    if (report.sound) continue;
    EXPECT_TRUE(report.completed.empty());
    EXPECT_EQ(report.undone_because, "nothing was written soon afterwards");
    return;
  }
  FAIL() << "no block makes a difference";
}

INSTANTIATE_TEST_SUITE_P(Kinds, CompletionTest,
                         ::testing::Values("-t ext2 -b 1024", "-t ext2 -b 4096",
                                           "-t ext4 -b 1024 -O ^has_journal",
                                           "-t ext4 -b 4096 -O inline_data,64bit,quota -I 256"));

TEST(CompletedOperation, IsDescribed) {
  using Kind = CompletedOperation::Kind;
  EXPECT_EQ(describe(CompletedOperation{Kind::kCreated, 12, "here"}),
            "inode 12, \"here\", is created");
  EXPECT_EQ(describe(CompletedOperation{Kind::kShrunk, 13, ""}), "inode 13 is shrunk");
  std::set<std::string_view> names;
  for (const Kind kind : {Kind::kCreated, Kind::kRemoved, Kind::kRenamed, Kind::kGrown,
                          Kind::kShrunk, Kind::kChanged}) {
    names.insert(operation_name(kind));
  }
  EXPECT_EQ(names.size(), 6u);
}

}  // namespace
}  // namespace mariner::ifsck
