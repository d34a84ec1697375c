#include "uvfs/program/object_name.h"

#include <gmock/gmock.h>

#include "tests/ifsck/program/made_console.h"

namespace mariner::uvfs {
namespace {

using testing::HasSubstr;

class ObjectNameTest : public ::testing::Test {
 protected:
  // "volume|path|time".
  std::string parsed(const std::string& text, const ObjectNameRule& rule = {}) {
    const auto name = parse_object_name(context_, text, rule);
    if (!name) return "error: " + name.error().message;
    return name->volume + "|" + name->path + "|" + name->time.value_or("-");
  }

  ifsck::MadeConsole made_;
  client::Console console_ = made_.console();
  ifsck::Utc zone_;
  client::Context context_{
      console_, zone_, [] { return VersionTime{100'000'000'000'000}; }, {}, {}};
};

TEST_F(ObjectNameTest, AVolumeAPathAndATime) {
  EXPECT_EQ(parsed("db1:/etc/passwd"), "db1|/etc/passwd|-");
  EXPECT_EQ(parsed("db1:/etc/passwd@-1h"), "db1|/etc/passwd|-1h");
  EXPECT_EQ(parsed("db1:/a:b//c/@2026-11-20 14:32:05"), "db1|/a:b/c|2026-11-20 14:32:05");
  EXPECT_EQ(parsed("db1:/a@b@#7"), "db1|/a@b|#7");
  EXPECT_EQ(parsed("db1:/a@b/c"), "db1|/a@b/c|-") << "behind the last @ is a path";
  EXPECT_EQ(parsed("db1:/"), "db1|/|-");
  EXPECT_THAT(parsed("db1:/a@b"), HasSubstr("append @now"));
  EXPECT_THAT(parsed("db1:/a@"), HasSubstr("expected a time"));
  EXPECT_THAT(parsed("db1:a"), HasSubstr("does not begin with \"/\""));
  EXPECT_THAT(parsed("db1"), HasSubstr("expected VOLUME:PATH"));
  EXPECT_THAT(parsed(":/a"), HasSubstr("expected VOLUME:PATH"));
  EXPECT_THAT(parsed("db1@-1h:/a"), HasSubstr("the time stands at the end"));
}

TEST_F(ObjectNameTest, AVolumeAloneAndAnImage) {
  EXPECT_EQ(parsed("db1", {.path_less = true}), "db1|/|-");
  EXPECT_EQ(parsed("db1@14:32:05", {.path_less = true}), "db1|/|14:32:05");
  EXPECT_EQ(parsed("db1:/a@#1", {.path_less = true}), "db1|/a|#1");
  EXPECT_EQ(parsed("/a@#1", {.image = true}), "|/a|#1");
  EXPECT_EQ(parsed(":/a", {.image = true}), "|/a|-");
  EXPECT_EQ(parsed("", {.image = true, .path_less = true}), "|/|-");
  EXPECT_THAT(parsed("db1:/a", {.image = true}), HasSubstr("expected PATH[@TIME]"));
}

TEST_F(ObjectNameTest, APathIsWithinAPart) {
  ObjectName name{"db1", "/p2/etc/passwd", {}};
  EXPECT_EQ(name.enter("/p1").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(name.enter("/p").error().code, ErrorCode::kInvalidArgument);
  ASSERT_TRUE(name.enter("/p2").has_value());
  EXPECT_EQ(name.path, "/etc/passwd");
  EXPECT_EQ(name.full_path(), "/p2/etc/passwd");
  EXPECT_EQ(name.full_path("/a"), "/p2/a");
  EXPECT_EQ(name.full_path("/"), "/p2");
  EXPECT_EQ(name.at(SequenceNumber{7}), "db1:/p2/etc/passwd@#7");
  ObjectName root{"db1", "/p2", {}};
  ASSERT_TRUE(root.enter("/p2").has_value());
  EXPECT_EQ(root.path, "/");
  ObjectName whole{"db1", "/p2", {}};
  ASSERT_TRUE(whole.enter("").has_value());
  EXPECT_EQ(whole.full_path(), "/p2");
}

TEST_F(ObjectNameTest, IsSaidAsAShellTakesIt) {
  EXPECT_EQ((ObjectName{"db1", "/a b", {}}.at(SequenceNumber{7})), "db1:'/a b'@#7");
  EXPECT_EQ((ObjectName{"", "/a", {}}.at(SequenceNumber{7})), "/a@#7");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("a\x1b\xff'\n"), "$'a\\x1b\\xff\\'\\x0a'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace mariner::uvfs
