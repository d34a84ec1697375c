#include "server/node/scrub_report.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include "server/client/time_text.h"
#include "tests/server/node/node_parts.h"

namespace mariner::node {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint64_t kMiB = 1u << 20;

TEST(ScrubRate, ByItselfPassesALogInADayWithinBounds) {
  EXPECT_EQ(scrub_rate({}, 8ull << 30), kMiB);
  EXPECT_EQ(scrub_rate({}, 86'400 * 5 * kMiB), 5 * kMiB);
  EXPECT_EQ(scrub_rate({}, 100ull << 40), 32 * kMiB);
}

TEST(ScrubRate, IsWhatIsConfigured) {
  EXPECT_EQ(scrub_rate(ByteSize{4096}, 100ull << 40), 4096u);
  EXPECT_EQ(scrub_rate(ByteSize{0}, 100ull << 40), 0u);
}

class ScrubReportTest : public ::testing::Test {
 protected:
  ScrubReportTest() : volume_(&parts_.create("db1")) {}
  ~ScrubReportTest() override { ::close(fd_); }

  SequenceNumber write(std::uint64_t block) {
    parts_.write(*volume_->volume->live_layer(), block, 'x');
    return parts_.newest(*volume_);
  }
  [[nodiscard]] VersionTime time_of(SequenceNumber sequence) {
    return parts_.answers(*volume_).moment_of(sequence).time;
  }
  // Of the block that write `sequence` has written.
  [[nodiscard]] logging::TrackDamage damage_of(SequenceNumber sequence, std::uint64_t block,
                                               std::uint64_t blocks = 1) {
    logging::TrackDamage damage;
    damage.volume = VolumeId{volume_->meta.id()};
    damage.sequence = sequence;
    damage.time = time_of(sequence);
    damage.extent = {Lbn{block}, BlockCount{blocks}};
    damage.track = 3;
    damage.first_block = 4711;
    damage.block_count = blocks;
    return damage;
  }
  [[nodiscard]] AffectedMoments affected(const logging::TrackDamage& damage) {
    std::optional<AffectedMoments> out;
    affected_moments(volume_->volume, damage, [&](const AffectedMoments& found) { out = found; });
    parts_.run_until([&] { return out.has_value(); });
    return *out;
  }
  std::string logged(const logging::TrackDamage& damage) {
    Log log({.fd = fd_});
    ScrubReport report(parts_.volumes(), log);
    report.damaged("/dev/log", damage);
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  testing::NodeParts parts_;
  ServedVolume* const volume_;
  const std::string path_ = parts_.path("lines");
  const int fd_ = ::open(path_.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
};

TEST_F(ScrubReportTest, AVersionIsNeededUntilItIsReplaced) {
  const SequenceNumber first = write(7);
  write(8);
  const SequenceNumber second = write(7);
  const AffectedMoments moments = affected(damage_of(first, 7));
  EXPECT_EQ(moments.from, time_of(first));
  EXPECT_EQ(moments.before, time_of(second));
  EXPECT_FALSE(moments.in_image);
}

TEST_F(ScrubReportTest, TheNewestVersionIsNeededStillAndTheImageMayHaveIt) {
  const SequenceNumber only = write(7);
  parts_.run_until([&] { return volume_->volume->storage()->durable() >= only; });
  const AffectedMoments moments = affected(damage_of(only, 7));
  EXPECT_EQ(moments.before, VersionTime{});
  EXPECT_TRUE(moments.in_image);
}

TEST_F(ScrubReportTest, OfSeveralBlocksTheLastReplacedCounts) {
  const SequenceNumber first = write(7);
  write(7);
  EXPECT_EQ(affected(damage_of(first, 7, 2)).before, VersionTime{}) << "block 8 is still the same";
  const SequenceNumber last = write(8);
  EXPECT_EQ(affected(damage_of(first, 7, 2)).before, time_of(last));
}

TEST_F(ScrubReportTest, ALineNamesVolumeWriteBlocksAndMoments) {
  const SequenceNumber first = write(7);
  const SequenceNumber second = write(7);
  const std::string line = logged(damage_of(first, 7));
  EXPECT_THAT(line, HasSubstr(" ERROR the log is damaged what=\"data fails its checksum\""));
  EXPECT_THAT(line, HasSubstr("volume=db1 "));
  EXPECT_THAT(line, HasSubstr("sequence=" + std::to_string(first.value) + " "));
  EXPECT_THAT(line, HasSubstr("first_lbn=7 blocks=1 "));
  EXPECT_THAT(line, HasSubstr("moments_from=" + format_utc(time_of(first)) + " "));
  EXPECT_THAT(line, HasSubstr("moments_before=" + format_utc(time_of(second)) + " "));
  EXPECT_THAT(line, HasSubstr("disk=/dev/log track=3 block=4711 block_count=1"));
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
}

TEST_F(ScrubReportTest, LostBatchesAreNamedByTheirNumbersAndTimes) {
  logging::TrackDamage damage;
  damage.kind = logging::TrackDamage::Kind::kBatches;
  damage.first_batch = 11;
  damage.last_batch = 12;
  damage.after = VersionTime{1'700'000'000'000'000'000};
  const std::string line = logged(damage);
  EXPECT_THAT(line, HasSubstr("first_batch=11 last_batch=12 moments_from=2023-11-14T22:13:20"));
  EXPECT_THAT(line, HasSubstr("moments_before=\"not known\""));
  EXPECT_THAT(line, Not(HasSubstr("volume=")));
}

TEST_F(ScrubReportTest, AVolumeThatIsGoneIsNamedByItsNumber) {
  logging::TrackDamage damage = damage_of(write(7), 7);
  damage.volume = VolumeId{99};
  EXPECT_THAT(logged(damage), HasSubstr("volume=\"(id 99)\""));
}

}  // namespace
}  // namespace mariner::node
