#include "uvfs/program/file_source.h"

#include <gmock/gmock.h>

#include "tests/uvfs/program/program_files.h"

namespace mariner::uvfs {
namespace {

using testing::HasSubstr;

class FileSourceTest : public ProgramFiles {
 protected:
  FileSourceTest() {
    file("one", "one\n");
    made_at_ = change("write {}/one a/f\n");
    gone_at_ = change("rm a/f\n");
  }
  FileSource open(ObjectName name) {
    return FileSource::open(context_, {.image = image_, .trace = folder_.file("trace")}, name)
        .value();
  }

  SequenceNumber made_at_;
  SequenceNumber gone_at_;
  client::Console console_ = made_.console();
  ifsck::Utc zone_;
  client::Context context_{console_, zone_, [] { return VersionTime{1'000 * kSecond}; }, {}, {}};
};

TEST_F(FileSourceTest, AStretchIsEverythingUnlessItIsSaid) {
  FileSource source = open({"", "/a", {}});
  EXPECT_EQ(source.name, image_);
  EXPECT_EQ(source.stretch({}).value(), (Stretch{{}, gone_at_}));
  EXPECT_EQ(source.stretch({.since = "#2", .until = "#3"}).value(), (Stretch{{2}, {3}}));
  EXPECT_EQ(source.stretch({.since = "#3", .until = "#2"}).error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(source.stretch({.since = "#99999", .until = ""}).error().code,
            ErrorCode::kOutsideWindow);
  EXPECT_EQ(source.moment(context_, SequenceNumber{2})->utc(), "1970-01-01T00:00:02.000000000Z");
}

TEST_F(FileSourceTest, AnObjectIsFoundAtItsMoments) {
  FileSource source = open({"", "/a/f", {}});
  auto history = open_history(*source.moments.past, {{}, gone_at_});
  ASSERT_TRUE(history.has_value());
  const auto found = find_object(*history, {"", "/a/f", {}}, made_at_);
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_EQ(found->object.size, 4u);
  auto contents = history->contents(found->inode, made_at_);
  EXPECT_EQ(contents->size(), 4u);
  const auto gone = find_object(*history, {"", "/a/f", {}}, gone_at_);
  EXPECT_EQ(gone.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(gone.error().message, HasSubstr("uvfs find --deleted :/a lists"));
  EXPECT_THAT(never_there({"db1", "/x", {}}).message, HasSubstr("uvfs find --deleted db1:/ lists"));
}

}  // namespace
}  // namespace mariner::uvfs
