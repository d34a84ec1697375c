#include "uvfs/program/object_text.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/ifsck/program/made_console.h"

namespace mariner::uvfs {
namespace {

TEST(ObjectText, ModesAreAsLsHasThem) {
  EXPECT_EQ(mode_text(S_IFREG | 0644), "-rw-r--r--");
  EXPECT_EQ(mode_text(S_IFDIR | 01777), "drwxrwxrwt");
  EXPECT_EQ(mode_text(S_IFREG | 06755), "-rwsr-sr-x");
  EXPECT_EQ(mode_text(S_IFREG | 07000), "---S--S--T");
  EXPECT_EQ(mode_text(S_IFLNK | 0777), "lrwxrwxrwx");
  EXPECT_EQ(mode_text(0), "?---------");
  EXPECT_EQ(kind_name(S_IFBLK | 0600), "block-device");
}

TEST(ObjectText, OfAnObject) {
  ifsck::MadeConsole made;
  client::Console console = made.console();
  const ifsck::Utc zone;
  const client::Context context{console, zone, [] { return VersionTime{}; }, {}, {}};
  ObjectState object{.exists = true, .mode = S_IFBLK | 0600, .device = 8u << 20 | 1};
  object.modified = {.seconds = 86'400, .ns = 5};
  object.changed = {.seconds = -1};
  EXPECT_EQ(size_text(object), "8, 1");
  EXPECT_EQ(time_text(context, object.modified), "1970-01-02 00:00:00");
  EXPECT_EQ(time_text(context, object.changed), "before 1970");
  const api::FileObject message = to_message(context, object, 12);
  EXPECT_EQ(message.major(), 8u);
  EXPECT_EQ(message.modified().utc(), "1970-01-02T00:00:00.000000005Z");
  EXPECT_EQ(message.changed().utc(), "");
  EXPECT_FALSE(message.has_made());
  api::FileName name;
  put_name("a\xff", name);
  EXPECT_EQ(name.text(), "a\xEF\xBF\xBD");
  EXPECT_EQ(name.raw(), "a\xff");
}

TEST(ObjectText, NumbersHaveRoomWhateverTheyAre) {
  api::FileObject object;
  set_number(ObjectNumber{9} << kSequenceShift | 64, object);
  EXPECT_EQ(object.inode(), 64u);
  EXPECT_EQ(object.large_inode(), 0u);
  api::FileObject large;
  set_number(ObjectNumber{1} << 33, large);
  EXPECT_EQ(large.inode(), 0u);
  EXPECT_EQ(large.large_inode(), ObjectNumber{1} << 33);
}

}  // namespace
}  // namespace mariner::uvfs
