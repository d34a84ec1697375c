#include "ifsck/program/moment_source.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "ifsck/write_trace.h"
#include "tests/ifsck/program/made_console.h"
#include "tests/logging/temporary_directory.h"
#include "tests/server/client/daemon.h"

namespace mariner::ifsck {
namespace {

class MomentSourceTest : public ::testing::Test {
 protected:
  MomentSourceTest() {
    std::ofstream(folder_.file("image")) << std::string(10'000, 'i');
    auto trace = TraceWriter::create(folder_.file("trace"), 1u << 20).value();
    const std::vector<std::byte> block(kBlockBytes);
    for (std::uint64_t second = 1; second <= 3; ++second) {
      (void)trace.write(VersionTime{second * 1'000'000'000}, Lbn{second}, block).value();
    }
  }
  Result<MomentSource> open(const std::string& at) {
    return MomentSource::open(
        context_,
        {.target = {}, .image = folder_.file("image"), .trace = folder_.file("trace"), .at = at});
  }

  logging::test::TemporaryDirectory folder_;
  MadeConsole made_;
  client::Console console_ = made_.console();
  Utc zone_;
  client::Context context_{console_, zone_, [] { return VersionTime{4'000'000'000}; }, {}, {}};
};

TEST_F(MomentSourceTest, ATimeMeansTheLastWriteAtOrBeforeIt) {
  EXPECT_EQ(open("")->at, SequenceNumber{3});
  EXPECT_EQ(open("now")->at, SequenceNumber{3});
  EXPECT_EQ(open("1970-01-01T00:00:02.5Z")->at, SequenceNumber{2});
  EXPECT_EQ(open("#1")->at, SequenceNumber{1});
  EXPECT_EQ(open("-2s")->at, SequenceNumber{2});
  EXPECT_EQ(open("#4").error().code, ErrorCode::kOutsideWindow);
  EXPECT_EQ(open("mark:a").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(open("")->past->size_bytes(), 1u << 20);
  const auto source = open("#3");
  EXPECT_EQ(source->moment_of("-2s").value(), SequenceNumber{2});
  EXPECT_EQ(source->moment_of("#4").error().code, ErrorCode::kOutsideWindow);
}

TEST_F(MomentSourceTest, AnImageAloneHasWholeBlocks) {
  const auto source = MomentSource::open(
      context_, {.target = {}, .image = folder_.file("image"), .trace = {}, .at = {}});
  ASSERT_TRUE(source.has_value());
  EXPECT_EQ(source->past->size_bytes(), 8192u);
  EXPECT_EQ(source->at, SequenceNumber{});
  EXPECT_EQ(source->states_folder, "");
}

class VolumeSourceTest : public client::DaemonTest {
 protected:
  VolumeSourceTest() {
    control.of_the_past.past.set_id("17");
    control.of_the_past.moment_answer.set_sequence(5);
    context_.flags.socket = socket;
  }
  // How the daemon was asked to open it.
  std::string opened(bool begins_there) {
    control.of_the_past.asked.clear();
    const auto source = MomentSource::open(
        context_,
        {.target = "db1@#5", .image = {}, .trace = {}, .at = {}, .begins_there = begins_there});
    EXPECT_TRUE(source.has_value());
    EXPECT_EQ(source->at, SequenceNumber{5});
    return control.of_the_past.asked.front();
  }

  MadeConsole made_;
  client::Console console_ = made_.console();
  Utc zone_;
  client::Context context_{console_, zone_, [] { return VersionTime{4'000'000'000}; }, {}, {}};
};

// Who reads one moment for hours asks for it again when the window has moved on, and not for the
// oldest one that there was.
TEST_F(VolumeSourceTest, WhoAsksForNothingEarlierBeginsThere) {
  EXPECT_EQ(opened(true), "open volume: \"db1\" from { sequence: 5 }");
  EXPECT_EQ(opened(false), "open volume: \"db1\" from { }");
}

TEST_F(MomentSourceTest, CachesAreWhereTheyUsuallyAre) {
  setenv("XDG_CACHE_HOME", "/somewhere", 1);
  EXPECT_EQ(cache_folder(), "/somewhere/mariner");
  setenv("XDG_CACHE_HOME", "not/absolute", 1);
  EXPECT_NE(cache_folder(), "not/absolute/mariner");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(cache_folder().substr(0, 1), "/");
}

}  // namespace
}  // namespace mariner::ifsck
