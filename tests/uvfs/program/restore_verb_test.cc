#include <gmock/gmock.h>

#include "proto/files.pb.h"
#include "tests/uvfs/made_foreign.h"
#include "tests/uvfs/program/program_files.h"

namespace mariner::uvfs {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class RestoreVerb : public ProgramFiles {
 protected:
  RestoreVerb() {
    file("one", "one\n");
    made_at_ = change("mkdir d\nwrite {}/one d/f\nsymlink d/l f\n");
    gone_at_ = change("rm d/f\nrm d/l\nrmdir d\n");
  }
  std::vector<std::string> words(const std::string& path, std::vector<std::string> more = {}) {
    std::vector<std::string> all{"restore", at(path, made_at_), "--to", to_};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  SequenceNumber made_at_;
  SequenceNumber gone_at_;
  const std::string to_ = folder_.file("to");
};

TEST_F(RestoreVerb, AFileALinkAndATree) {
  EXPECT_THAT(say(words("/d/f")), HasSubstr(to_ + ": 1 files, 0 directories"));
  EXPECT_EQ(read_host("to"), "one\n");
  fs::remove(to_);
  (void)say(words("/d/l"));
  EXPECT_EQ(fs::read_symlink(to_), "f");
  fs::remove(to_);
  const auto restored = ask<api::FileRestore>(words("/d"));
  EXPECT_EQ(restored.files(), 1u);
  EXPECT_EQ(restored.directories(), 1u);
  EXPECT_EQ(restored.links(), 1u);
  EXPECT_EQ(restored.bytes(), 4u);
  EXPECT_EQ(restored.at().sequence(), made_at_.value);
  EXPECT_EQ(read_host("to/f"), "one\n");
}

TEST_F(RestoreVerb, WhatIsThereStaysUnlessForced) {
  fs::create_directories(folder_.file("precious"));
  fs::create_directory_symlink(folder_.file("precious"), to_);
  EXPECT_THAT(refuse(1, words("/d")), HasSubstr("replace it with --force"));
  EXPECT_THAT(refuse(1, words("/d", {"--force"})), HasSubstr("move it away"));
  EXPECT_TRUE(fs::is_empty(folder_.file("precious")));
  (void)say(words("/d/f", {"--force"}));
  EXPECT_FALSE(fs::is_symlink(to_));
  EXPECT_EQ(read_host("to"), "one\n");
  EXPECT_TRUE(fs::is_empty(folder_.file("precious")));
}

TEST_F(RestoreVerb, ADryRunChangesNothing) {
  const std::string text = say(words("/d", {"--dry-run"}));
  EXPECT_THAT(text, HasSubstr("  " + to_ + "/f\n"));
  EXPECT_THAT(text, HasSubstr("Dry run: nothing was changed."));
  EXPECT_FALSE(fs::exists(to_));
  const auto planned = ask<api::FileRestore>(words("/d", {"--dry-run"}));
  EXPECT_TRUE(planned.dry_run());
  EXPECT_EQ(planned.entries_size(), 3);
}

TEST_F(RestoreVerb, AMomentIsMendedWhenSomethingInItCannotBeRead) {
  file("two", "two\n");
  const SequenceNumber torn = change(
      "mkdir t\nwrite {}/two t/f\nwrite {}/two t/g\nclri t/g\n"
      "set_inode_field a/large block[IND] 4000000\n");
  EXPECT_EQ(run({"restore", at("/t", torn), "--to", to_}), 0);
  EXPECT_THAT(made_.take(), HasSubstr("1 files, 1 directories"));
  EXPECT_THAT(made_.take_errors(), HasSubstr("it was mended for this reading"));
  EXPECT_EQ(read_host("to/f"), "two\n");
  fs::remove_all(to_);
  // A file with a part that is nowhere.
  const auto restored = ask<api::FileRestore>({"restore", at("/a/large", torn), "--to", to_});
  EXPECT_TRUE(restored.mended());
  EXPECT_EQ(restored.notes_size(), 0);
  EXPECT_EQ(run({"cat", at("/a/large", torn)}), 0);
  EXPECT_FALSE(made_.take().empty());
  EXPECT_THAT(made_.take_errors(), HasSubstr("it was mended for this reading"));
  EXPECT_FALSE(
      ask<api::FileRestore>({"restore", at("/t/f", torn), "--to", to_, "--force"}).mended());
}

TEST(RestoreVerbOfNtfs, NamesThatMayBeMissingAreAFailure) {
  MadeNtfs made;
  for (int i = 0; i < 40; ++i)
    made.copy("", "/one of many in blocks of an index " + std::to_string(i));
  (void)made.flush();
  ifsck::MadeConsole console;
  const auto run = [&](const std::string& verb, const std::string& to) {
    const ifsck::Utc zone;
    std::vector<std::string> words{
        verb, "/", "--image", made.file("first"), "--trace", made.file("trace")};
    if (!to.empty()) words.insert(words.end(), {"--to", to});
    return run_files_command(words, console.console(), zone,
                             [] { return VersionTime{1'800'000'000 * MadeForeign::kSecond}; }, {});
  };
  EXPECT_EQ(run("restore", made.file("whole")), 0) << console.take_errors();
  const std::u16string name = u"one of many in blocks of an index 39";
  const std::uint64_t at = made.find({reinterpret_cast<const char*>(name.data()), 2 * name.size()});
  made.put(at / kBlockBytes * kBlockBytes, "torn");
  (void)made.flush();
  EXPECT_EQ(run("restore", made.file("rest")), 1);
  EXPECT_THAT(console.take_errors(), HasSubstr("names in it may be missing"));
  EXPECT_TRUE(fs::exists(made.file("rest"))) << "what can be read is there";
  EXPECT_EQ(run("ls", ""), 1);
  EXPECT_THAT(console.take_errors(), HasSubstr("names in it may be missing"));
}

TEST_F(RestoreVerb, WhatCannotBeIsSaid) {
  EXPECT_THAT(refuse(1, {"restore", at("/d/f", gone_at_), "--to", to_}),
              HasSubstr("/d/f was not there"));
  EXPECT_THAT(refuse(1, {"restore", at("/d/f", made_at_), "--to", folder_.file("none/x")}),
              HasSubstr("cannot be opened"));
  EXPECT_FALSE(fs::exists(to_));
}

}  // namespace
}  // namespace mariner::uvfs
