#include "ifsck/program/moment_source.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "ifsck/write_trace.h"
#include "tests/ifsck/program/made_console.h"
#include "tests/logging/temporary_directory.h"

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
