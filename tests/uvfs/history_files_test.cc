#include "uvfs/history_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "ifsck/ext_inode.h"
#include "ifsck/past_behind.h"
#include "tests/uvfs/made_files.h"
#include "tests/uvfs/made_foreign.h"

namespace mariner::uvfs {
namespace {

using ifsck::InodeAt;
using FileId = HistoryFiles::FileId;
using NamesOf = std::vector<std::string>;

// A volume that has grown, which is known when one looks how far the past reaches.
class Grown final : public ifsck::PastBehind {
 public:
  using PastBehind::PastBehind;
  std::uint64_t size_bytes() const override { return PastBehind::size_bytes() / (looked_ ? 1 : 2); }
  Result<Reach> reach() override {
    looked_ = true;
    return PastBehind::reach();
  }

 private:
  bool looked_ = false;
};

class HistoryFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto large = made_.volume.find("/a/large");
    const auto sparse = made_.volume.find("/a/b/sparse");
    made_.set_mode(large, 0100600);                        // 1
    made_.set_mode(large, 0100640);                        // 2
    made_.put<std::uint16_t>(sparse, InodeAt::kLinks, 0);  // 3: deleted
    made_.set_mode(large, 0100600);                        // 4
    made_files_.emplace(made_);
    files_ = &*made_files_->files;
  }

  Result<HistoryFiles::Attributes> at(const std::string& path) {
    auto found = files_->attributes(HistoryFiles::kRoot);
    for (std::size_t from = 1; found && from < path.size();) {
      const std::size_t end = std::min(path.find('/', from), path.size());
      found = files_->find(found->id, path.substr(from, end - from));
      from = end + 1;
    }
    return found;
  }
  NamesOf list(const std::string& path) {
    NamesOf all;
    const auto entries = files_->list(at(path).value().id);
    EXPECT_TRUE(entries.has_value());
    for (const auto& each : *entries) {
      all.push_back(each.name);
      const auto found = at((path == "/" ? "" : path) + "/" + each.name);
      EXPECT_TRUE(found.has_value()) << each.name;
      EXPECT_EQ(found->id, each.id) << each.name;
      if (each.kind != 0) {
        EXPECT_EQ(found->object.mode & S_IFMT, each.kind) << each.name;
      }
    }
    return all;
  }
  static bool has(const NamesOf& names, const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  }

  MadeWrites made_{"-t ext2 -b 4096"};
  std::optional<MadeFiles> made_files_;
  HistoryFiles* files_ = nullptr;
};

TEST_F(HistoryFilesTest, MomentsAreDirectories) {
  EXPECT_EQ(list("/"), (NamesOf{"deleted", "latest", "marks", "snapshots", "versions"}));
  EXPECT_EQ(at("/@#1/a/large")->object.mode, 0100600);
  EXPECT_EQ(at("/@#2/a/large")->object.mode, 0100640);
  EXPECT_TRUE(at("/@#2/a/large")->lasting);
  EXPECT_FALSE(at("/versions")->lasting);
  EXPECT_TRUE(has(list("/@#0/a/b"), "c"));
  EXPECT_EQ(at("/@#3")->object.modified.seconds, 3);  // that of the moment
  EXPECT_EQ(at("/@never").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(at("/@#5").error().code, ErrorCode::kOutsideWindow);
  EXPECT_EQ(at("/@#1/a/none").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(at("/none").error().code, ErrorCode::kNotFound);
  // Those that were looked at are there, by their numbers.
  EXPECT_EQ(list("/"), (NamesOf{"@#0", "@#1", "@#2", "@#3", "deleted", "latest", "marks",
                                "snapshots", "versions"}));
}

TEST_F(HistoryFilesTest, NumbersAreOfOneThingAndStay) {
  std::set<FileId> all;
  for (const char* path : {"/", "/@#1", "/@#2", "/@#1/a", "/@#2/a", "/versions", "/versions/a",
                           "/deleted", "/deleted/a", "/latest", "/marks", "/marks/before"}) {
    const FileId id = at(path).value().id;
    EXPECT_TRUE(all.insert(id).second) << path;
    EXPECT_EQ(at(path)->id, id);
    EXPECT_EQ(files_->attributes(id)->object.mode, at(path)->object.mode);
  }
  EXPECT_EQ(files_->attributes(0).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(files_->attributes(999).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(files_->attributes(std::uint64_t{99} << 32 | 2).error().code, ErrorCode::kNotFound);
}

TEST_F(HistoryFilesTest, LinksNameMoments) {
  EXPECT_EQ(files_->link_target(at("/latest")->id).value(), "@#4");
  EXPECT_EQ(at("/latest")->object.size, 3u);
  EXPECT_EQ(list("/marks"), NamesOf{"before"});
  EXPECT_EQ(files_->link_target(at("/marks/before")->id).value(), "../@#1");
  EXPECT_EQ(at("/marks/none").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(files_->link_target(at("/@#0/short")->id).value(), "a/large");
  EXPECT_EQ(files_->link_target(at("/@#0/long")->id).value(), std::string(200, 's'));
  EXPECT_FALSE(files_->link_target(at("/versions")->id).has_value());
}

TEST_F(HistoryFilesTest, SomeMomentsAreOfferedAsSnapshots) {
  EXPECT_EQ(list("/snapshots"), NamesOf{"@GMT-1970.01.01-00.00.01"});  // that of the mark
  EXPECT_EQ(at("/snapshots/@GMT-1970.01.01-00.00.00")->id, at("/@#0")->id);
  EXPECT_EQ(at("/snapshots/@GMT-1970.01.01-00.00.01/a/large")->id, at("/@#1/a/large")->id);
  // Any other second is one, too, up to the newest write.
  EXPECT_EQ(at("/snapshots/@GMT-1970.01.01-00.00.03")->id, at("/@#3")->id);
  EXPECT_EQ(at("/snapshots/@GMT-1970.01.01-00.00.05").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(at("/snapshots/@#1").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(at("/snapshots/none").error().code, ErrorCode::kNotFound);
}

TEST_F(HistoryFilesTest, DirectoriesKnowWhatTheyAreIn) {
  const FileId root = at("/@#1")->id;
  const FileId folder = at("/@#1/a")->id;
  EXPECT_EQ(files_->parent(folder)->id, root);
  EXPECT_EQ(files_->parent(root)->id, HistoryFiles::kRoot);
  EXPECT_EQ(files_->parent(HistoryFiles::kRoot)->id, HistoryFiles::kRoot);
  EXPECT_EQ(files_->parent(at("/versions/a")->id)->id, at("/versions")->id);
  EXPECT_EQ(files_->parent(at("/@#1/a/large")->id).error().code, ErrorCode::kNotFound);
}

TEST_F(HistoryFilesTest, EachVersionHasAnEntry) {
  const NamesOf names = list("/versions/a/large");
  ASSERT_EQ(names.size(), 4u);
  EXPECT_EQ(names[1], "1970-01-01T00:00:01.000000000Z");
  EXPECT_EQ(at("/versions/a/large/" + names[2])->object.mode, 0100640);
  EXPECT_TRUE(has(list("/versions/a/b"), "sparse"));
  EXPECT_EQ(list("/versions/a/b/sparse").size(), 1u);
  EXPECT_EQ(at("/versions/a/none").error().code, ErrorCode::kNotFound);
}

TEST_F(HistoryFilesTest, WhatIsGoneIsAsItWasLast) {
  const NamesOf names = list("/deleted/a/b");
  EXPECT_EQ(names, (NamesOf{"c", "sparse"}));
  const auto sparse = at("/deleted/a/b/sparse");
  EXPECT_EQ(sparse->object.mode, 0100644);
  EXPECT_EQ(sparse->id, at("/@#2/a/b/sparse")->id);
  EXPECT_EQ(at("/@#3/a/b/sparse").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(at("/deleted/a/large").error().code, ErrorCode::kNotFound);  // it is there
  EXPECT_TRUE(S_ISDIR(at("/deleted/a/b/c")->object.mode));
}

TEST_F(HistoryFilesTest, NamesThatLeadElsewhereAreNotShown) {
  const auto place = made_.place_of(made_.volume.find("/a"), "large");
  const auto last = made_.put<std::uint8_t>(place + 8 + 2, '/');  // "la/ge"
  MadeFiles files(made_);
  const auto root = files.files->find(HistoryFiles::kRoot, "@#" + std::to_string(last.value));
  const auto folder = files.files->find(root->id, "a");
  const auto entries = files.files->list(folder->id).value();
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].name, "b");
}

TEST_F(HistoryFilesTest, ContentsAreRead) {
  const FileId file = at("/deleted/a/b/sparse")->id;
  std::vector<std::byte> bytes(50'004);
  EXPECT_EQ(files_->read(file, 50'000, bytes).value(), bytes.size());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), 4), "here");
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()) + 50'000, 4), "here");
  EXPECT_EQ(bytes[4], std::byte{});
  EXPECT_EQ(files_->read(file, at("/deleted/a/b/sparse")->object.size - 2, bytes).value(), 2u);
  EXPECT_EQ(files_->read(file, 1ULL << 40, bytes).value(), 0u);
  EXPECT_FALSE(files_->read(at("/marks")->id, 0, bytes).has_value());
  // One while another is being read, and more moments than are kept.
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(files_->read(at("/@#1/a/large")->id, 0, bytes).value(), bytes.size());
    EXPECT_EQ(files_->read(file, 0, bytes).value(), bytes.size());
  }
}

TEST_F(HistoryFilesTest, TheFileSystemOfAVolumeThatHasGrownIsUnderstood) {
  auto trace = made_.past();
  Grown past(trace);
  HistoryFiles files({.past = &past,
                      .moment_of = [](std::string_view) { return SequenceNumber{1}; },
                      .marks = [] { return std::vector<Mark>(); }});
  const auto moment = files.find(HistoryFiles::kRoot, "@now");
  ASSERT_TRUE(moment.has_value()) << moment.error().message;
  EXPECT_TRUE(files.find(moment->id, "many").has_value());
}

TEST_F(HistoryFilesTest, TimesAreWrittenSoThatTheySort) {
  EXPECT_EQ(version_name({1'795'617'132'000'000'042}), "2026-11-25T14:32:12.000000042Z");
  EXPECT_EQ(version_name({}), "1970-01-01T00:00:00.000000000Z");
}

TEST(HistoryFilesOfOthersTest, ATreeOfNtfsIsShownAlike) {
  MadeNtfs made;
  made.copy("before", "/small");
  const auto first = made.flush();
  made.copy("behind it", "/small");
  made.copy(std::string(50'000, 'x'), "/large");
  const auto last = made.flush();
  MadeFiles made_files(made);
  HistoryFiles& files = *made_files.files;
  const auto find = [&](SequenceNumber at, const std::string& name) {
    const auto root = files.find(HistoryFiles::kRoot, "@#" + std::to_string(at.value)).value();
    return files.find(root.id, name);
  };
  EXPECT_EQ(find(first, "large").error().code, ErrorCode::kNotFound);
  const auto small = find(first, "small").value();
  EXPECT_EQ(small.object.size, 6u);
  EXPECT_TRUE(small.lasting);
  EXPECT_TRUE(HistoryFiles::is_of_a_moment(small.id));
  EXPECT_EQ(files.attributes(small.id)->object.size, 6u);
  std::string bytes(6, ' ');
  EXPECT_EQ(files.read(small.id, 0, std::as_writable_bytes(std::span(bytes))).value(), 6u);
  EXPECT_EQ(bytes, "before");
  EXPECT_NE(find(last, "small")->id, small.id);
  const auto root = files.find(HistoryFiles::kRoot, "@#" + std::to_string(last.value)).value();
  const auto list = files.list(root.id).value();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[1].id, find(last, "small")->id);
  const auto versions = files.find(HistoryFiles::kRoot, "versions").value();
  EXPECT_EQ(files.list(files.find(versions.id, "small")->id)->size(), 2u);
}

TEST(HistoryFilesOfOthersTest, ANumberThatNoneCanHaveHidesNoOthers) {
  MadeNtfs made;
  made.copy("one", "/number one");
  made.copy("two", "/number two");
  // In the index, behind the $MFT: the reference stands before the name's times and sizes.
  const std::u16string name = u"number two";
  const std::uint64_t at = made.find({reinterpret_cast<const char*>(name.data()), 2 * name.size()});
  made.put(at - 66 - 16, std::string("\0\0\0\0\0\1", 6));
  const auto last = made.flush();
  MadeFiles made_files(made);
  HistoryFiles& files = *made_files.files;
  const auto root = files.find(HistoryFiles::kRoot, "@#" + std::to_string(last.value)).value();
  const auto list = files.list(root.id);
  ASSERT_TRUE(list.has_value()) << list.error().message;
  ASSERT_EQ(list->size(), 2u);
  EXPECT_EQ((*list)[0].id, files.find(root.id, "number one")->id);
  EXPECT_EQ((*list)[1].id, HistoryFiles::kNobody);
  EXPECT_FALSE(files.find(root.id, "number two").has_value());
  EXPECT_FALSE(files.attributes(HistoryFiles::kNobody).has_value());
}

}  // namespace
}  // namespace mariner::uvfs
