#include "uvfs/tsk_look.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/uvfs/opened_foreign.h"
#include "uvfs/file_contents.h"
#include "uvfs/tsk_moment.h"

namespace mariner::uvfs {
namespace {

using Contents = TskObject::Contents;

// An object's record, where it is in the image, and where in it its $DATA begins: below `end`.
void find_data(MadeNtfs& made, ObjectNumber number, std::size_t end, std::uint64_t& record,
               std::string& bytes, std::size_t& at) {
  record = made.first_record() + shown_number(number) * 1024;
  bytes.assign(1024, ' ');
  std::ifstream(made.image(), std::ios::binary)
      .seekg(static_cast<std::streamoff>(record))
      .read(bytes.data(), 1024);
  at = load_le<std::uint16_t>(bytes.data() + 20);
  while (load_le<std::uint32_t>(bytes.data() + at) != 0x80) {
    at += load_le<std::uint32_t>(bytes.data() + at + 4);
    ASSERT_LT(at, end);
  }
}

TEST(TskLookTest, FatHasNamesAndWhatTheyAre) {
  for (const auto& [options, bytes] : {std::pair{"-F 12", 2u << 20},
                                       {"-F 16 -s 1", 6u << 20},
                                       {"-F 32 -s 1 -n LABEL", 40u << 20}}) {
    MadeFat made(options, bytes);
    made.tool("mmd", "::/folder \"::/folder/Ein großer Ordner\"");
    made.copy("short", "/SHORT.TXT");
    made.copy(std::string(5000, 'x'), "/folder/a long name.text");
    made.copy("gone", "/gone");
    made.tool("mdel", "::/gone");
    OpenedForeign opened(made);
    ASSERT_NE(opened.files, nullptr) << options << opened.error.message;
    EXPECT_EQ(opened.files->name(), "FAT");
    EXPECT_EQ(opened.files->stamp(), ObjectHistory::Stamp::kNone);
    const auto root = opened.names(opened.files->root());
    EXPECT_EQ(root.size(), 2u) << options;
    const auto folder = opened.look(root.at("folder"));
    EXPECT_TRUE(S_ISDIR(folder.object.state.mode));
    ASSERT_EQ(folder.names.size(), 2u) << options;
    const auto file = opened.look(opened.names(root.at("folder")).at("a long name.text"));
    EXPECT_TRUE(S_ISREG(file.object.state.mode));
    EXPECT_EQ(file.object.state.size, 5000u);
    EXPECT_EQ(file.object.contents, Contents::kRuns);
    EXPECT_TRUE(file.object.whole);
    EXPECT_EQ(opened.bytes(file.object.runs), std::string(5000, 'x'));
    EXPECT_EQ(opened.names(root.at("folder")).count("Ein großer Ordner"), 1u);
    const auto short_one = opened.look(root.at("SHORT.TXT"));
    EXPECT_EQ(opened.bytes(short_one.object.runs), "short");
    EXPECT_FALSE(opened.look(~std::uint32_t{0}).object.state.exists);
  }
}

TEST(TskLookTest, NtfsHasNamesAndWhatTheyAre) {
  MadeNtfs made;
  made.copy("few bytes", "/small");
  made.copy(std::string(50'000, 'x'), "/a large file");
  made.copy_stream("beside", "/small", "note");
  for (int i = 0; i < 40; ++i)
    made.copy("", "/one of many in blocks of an index " + std::to_string(i));
  OpenedForeign opened(made);
  ASSERT_NE(opened.files, nullptr) << opened.error.message;
  EXPECT_EQ(opened.files->name(), "NTFS");
  EXPECT_EQ(opened.files->stamp(), ObjectHistory::Stamp::kLast);
  const auto root = opened.names(opened.files->root());
  EXPECT_EQ(root.size(), 42u);
  const auto small = opened.find("small");
  EXPECT_EQ(small.object.contents, Contents::kInline);
  EXPECT_EQ(small.object.state.size, 9u);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(small.bytes.data()), small.bytes.size()),
            "few bytes");
  const auto large = opened.find("a large file");
  EXPECT_EQ(large.object.contents, Contents::kRuns);
  EXPECT_EQ(opened.bytes(large.object.runs), std::string(50'000, 'x'));
  EXPECT_NE(large.object.state.generation, 0u);
  EXPECT_GT(large.object.state.changed.seconds, 1'700'000'000);
  // With another sequence number it is another object; without one it is whoever is there.
  const ObjectNumber number = root.at("small");
  EXPECT_EQ(number >> kSequenceShift, small.object.state.generation);
  EXPECT_FALSE(opened.look(number + (ObjectNumber{1} << kSequenceShift)).object.state.exists);
  EXPECT_EQ(opened.look(shown_number(number)).object, small.object);
  const auto attributes = opened.files->attributes(number).value();
  ASSERT_EQ(attributes.all.size(), 1u);
  EXPECT_EQ(attributes.all[0].name, "user.note");
  EXPECT_EQ(attributes.all[0].value.size(), 6u);
}

TEST(TskLookTest, NamesThatCannotBeReadAreMissed) {
  MadeNtfs made;
  for (int i = 0; i < 40; ++i)
    made.copy("", "/one of many in blocks of an index " + std::to_string(i));
  OpenedForeign opened(made);
  const auto all = opened.look(opened.files->root());
  EXPECT_TRUE(all.names_whole);
  EXPECT_EQ(all.names.size(), 40u);
  // (Behind the $MFT, which has the name, too.)
  const std::u16string name = u"one of many in blocks of an index 39";
  const std::uint64_t at = made.find({reinterpret_cast<const char*>(name.data()), 2 * name.size()});
  made.put(at / kBlockBytes * kBlockBytes, "torn");
  OpenedForeign torn(made);
  const auto some = torn.look(torn.files->root());
  EXPECT_FALSE(some.names_whole);
  EXPECT_LT(some.names.size(), 40u);
}

TEST(TskLookTest, ExfatHasNamesAndWhatTheyAre) {
  MadeExfat made;
  (void)made.make(u"a long näme that needs more than one entry", std::string(5000, 'x'), 5000);
  (void)made.make(u"not all of it was written", std::string(6000, 'y'), 4500);
  auto gone = made.make(u"gone", "gone", 4);
  made.remove(gone);
  OpenedForeign opened(made);
  ASSERT_NE(opened.files, nullptr) << opened.error.message;
  EXPECT_EQ(opened.files->name(), "exFAT");
  EXPECT_EQ(opened.names(opened.files->root()).size(), 2u);
  const auto first = opened.find("a long näme that needs more than one entry");
  EXPECT_EQ(first.object.state.size, 5000u);
  EXPECT_EQ(opened.bytes(first.object.runs), std::string(5000, 'x'));
  EXPECT_EQ(first.object.state.modified.seconds % 3600, 6);  // an hour east of UTC, or none
  const auto second = opened.find("not all of it was written");
  EXPECT_EQ(second.object.state.size, 6000u);
  EXPECT_EQ(opened.bytes(second.object.runs), std::string(4500, 'y'));
}

// What Windows has compressed, deduplicated or moved into a cloud is a hole with a reparse point.
TEST(TskLookTest, HolesThatAFilterFillsAreNoZeros) {
  MadeNtfs made;
  made.copy(std::string(50'000, 'x'), "/elsewhere");
  OpenedForeign before(made);
  const ObjectNumber number = before.names(before.files->root()).at("elsewhere");
  ASSERT_EQ(before.look(number).object.contents, Contents::kRuns);
  std::uint64_t record = 0;
  std::string bytes;
  std::size_t at = 0;
  ASSERT_NO_FATAL_FAILURE(find_data(made, number, 350, record, bytes, at));
  // Thirteen clusters without a place, and room for another attribute before the sector's end.
  ASSERT_EQ(load_le<std::uint32_t>(bytes.data() + at + 4), 72u);
  store_le<std::uint16_t>(bytes.data() + at + 12, 0x8000);
  store_le<std::uint64_t>(bytes.data() + at + 64, 0x0d01);
  made.put(record + at, bytes.substr(at, 72));
  const auto sparse = OpenedForeign(made).look(number).object;
  EXPECT_EQ(sparse.contents, Contents::kRuns) << "zeros, as it says";
  EXPECT_EQ(sparse.state.size, 50'000u);
  EXPECT_TRUE(sparse.runs.empty());
  EXPECT_TRUE(sparse.whole);
  char* const reparse = bytes.data() + at + 72;
  std::fill_n(reparse, 48, '\0');
  store_le<std::uint32_t>(reparse, 0xC0);
  store_le<std::uint32_t>(reparse + 4, 40);
  store_le<std::uint16_t>(reparse + 14, 7);
  store_le<std::uint32_t>(reparse + 16, 16);
  store_le<std::uint16_t>(reparse + 20, 24);
  store_le<std::uint32_t>(reparse + 24, 0x80000017);  // WOF
  store_le<std::uint16_t>(reparse + 28, 8);
  store_le<std::uint32_t>(reparse + 40, 0xFFFFFFFF);
  store_le<std::uint32_t>(bytes.data() + 24, static_cast<std::uint32_t>(at + 72 + 48));
  made.put(record + 24, bytes.substr(24, 4));
  made.put(record + at + 72, bytes.substr(at + 72, 48));
  const auto found = OpenedForeign(made).look(number).object;
  EXPECT_EQ(found.contents, Contents::kElsewhere);
  EXPECT_EQ(found.state.size, 50'000u);
  auto past = made.past();
  const auto contents = TskMoment::open(past, made.last).value()->contents(number);
  ASSERT_FALSE(contents.has_value());
  EXPECT_TRUE(is_out_of_reach(contents.error())) << contents.error().message;
}

TEST(TskLookTest, AFileThatIsGrowingIsOne) {
  MadeNtfs made;
  made.copy(std::string(50'000, 'x'), "/growing");
  OpenedForeign before(made);
  const ObjectNumber number = before.names(before.files->root()).at("growing");
  std::uint64_t record = 0;
  std::string bytes;
  std::size_t at = 0;
  ASSERT_NO_FATAL_FAILURE(find_data(made, number, 1000, record, bytes, at));
  // Its size comes before what says where it is: there is less room than that.
  store_le<std::uint64_t>(bytes.data() + at + 48, 60'000);
  made.put(record + at, bytes.substr(at, 64));
  OpenedForeign opened(made);
  const auto found = opened.look(number).object;
  EXPECT_TRUE(found.state.exists);
  EXPECT_TRUE(S_ISREG(found.state.mode));
  EXPECT_EQ(found.state.size, 60'000u);
  EXPECT_FALSE(found.whole);
  const auto was = before.look(number).object.state;
  EXPECT_EQ(found.state.modified, was.modified);
  EXPECT_EQ(found.state.changed, was.changed);
  EXPECT_EQ(found.state.made, was.made);
  EXPECT_EQ(found.state.mode, was.mode);
  EXPECT_EQ(found.state.generation, was.generation);
  EXPECT_FALSE(opened.look(number + (ObjectNumber{1} << kSequenceShift)).object.state.exists);
}

}  // namespace
}  // namespace mariner::uvfs
