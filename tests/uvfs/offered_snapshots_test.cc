#include "uvfs/offered_snapshots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "ifsck/past_behind.h"
#include "tests/uvfs/made_writes.h"

namespace mariner::uvfs {
namespace {

using Moments = std::map<std::string, SequenceNumber>;

constexpr std::uint64_t kSecond_ns = 1'000'000'000;

// The writes of a test come a hundred seconds apart: 400 of them are eleven hours.
class Slower final : public ifsck::PastBehind {
 public:
  static constexpr std::uint64_t kStep_s = 100;

  using PastBehind::PastBehind;
  Result<Reach> reach() override { return Reach{{oldest}, {400}}; }
  Result<SequenceNumber> moment_of(VersionTime time) override {
    const std::uint64_t moment = time.ns / kSecond_ns / kStep_s;
    if (moment < oldest) return Error{ErrorCode::kOutsideWindow, "too early"};
    return SequenceNumber{std::min<std::uint64_t>(moment, 400)};
  }
  Result<VersionTime> time_of(SequenceNumber at) override {
    return VersionTime{at.value * kStep_s * kSecond_ns};
  }
  std::uint64_t oldest = 0;
};

class OfferedSnapshotsTest : public ::testing::Test {
 protected:
  MadeWrites made_{"-t ext2 -b 4096"};
  ifsck::TracePast trace_{made_.past()};
  Slower past_{trace_};
};

TEST_F(OfferedSnapshotsTest, AreTheGridAndTheMarks) {
  // 400 moments end at 11:06:40.
  const std::vector<Mark> marks{{"one", {7}}, {"two", {395}}};
  const Moments offered = offered_snapshots(past_, marks).value();
  EXPECT_EQ(offered.at("@GMT-1970.01.01-01.00.00"), SequenceNumber{36});
  EXPECT_EQ(offered.at("@GMT-1970.01.01-11.05.00"), SequenceNumber{399});
  EXPECT_EQ(offered.at("@GMT-1970.01.01-00.11.40"), SequenceNumber{7});
  EXPECT_EQ(offered.at("@GMT-1970.01.01-10.58.20"), SequenceNumber{395});
  EXPECT_FALSE(offered.contains("@GMT-1970.01.01-01.05.00"));
  // Hours from 01:00 to 11:00, and each five minutes from 10:10 to 11:05 that is none, and the
  // marks.
  EXPECT_EQ(offered.size(), 11u + 11u + 2u);
}

TEST_F(OfferedSnapshotsTest, NoMomentIsThereTwice) {
  const std::vector<Mark> marks{{"one", {36}}, {"same", {36}}};
  std::set<SequenceNumber> seen;
  for (const auto& [name, at] : offered_snapshots(past_, marks).value()) {
    EXPECT_TRUE(seen.insert(at).second) << name;
  }
}

TEST_F(OfferedSnapshotsTest, WhatTheWindowHasLeftIsNotOffered) {
  past_.oldest = 300;
  const std::vector<Mark> marks{{"gone", {7}}};
  for (const auto& [name, at] : offered_snapshots(past_, marks).value()) {
    EXPECT_GE(at, SequenceNumber{300}) << name;
  }
}

TEST_F(OfferedSnapshotsTest, ANameMeansItsMarkOrItsSecond) {
  const std::vector<Mark> marks{{"one", {7}}};
  const auto moment = [&](const char* name) { return snapshot_moment(past_, marks, name); };
  EXPECT_EQ(moment("@GMT-1970.01.01-00.11.40").value(), SequenceNumber{7});
  EXPECT_EQ(moment("@GMT-1970.01.01-00.13.20").value(), SequenceNumber{8});
  EXPECT_EQ(moment("@GMT-1970.01.01-00.13.19").value(), SequenceNumber{7});
  EXPECT_EQ(moment("@GMT-1970.01.01-11.06.40").value(), SequenceNumber{400});
  EXPECT_EQ(moment("@GMT-1970.01.01-11.06.41").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(moment("@GMT-1970.01.01").error().code, ErrorCode::kNotFound);
  past_.oldest = 300;
  EXPECT_EQ(moment("@GMT-1970.01.01-00.13.20").error().code, ErrorCode::kOutsideWindow);
}

}  // namespace
}  // namespace mariner::uvfs
