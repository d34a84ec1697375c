#include "server/node/history_answer.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/server/node/node_parts.h"

namespace mariner::node {
namespace {

class HistoryAnswer : public ::testing::Test {
 protected:
  HistoryAnswer() {
    parts_.create("db1");
    for (const char c : {'1', '2', '3'}) parts_.write(*volume().volume->live_layer(), 0, c);
  }
  ServedVolume& volume() { return *parts_.volumes().find("db1"); }
  MomentsOf of() { return *moments_of(volume(), parts_.store()); }
  Result<api::History> answer(const api::HistoryRequest& request, BesideHistory beside = {}) {
    std::optional<Result<api::History>> out;
    answer_history(of(), request, std::move(beside), parts_.executor(),
                   [&](Result<api::History> history) { out = std::move(history); });
    parts_.run_until([&] { return out.has_value(); });
    return *out;
  }
  meta::Mark mark(const std::string& name, std::uint64_t sequence) {
    meta::Mark mark;
    mark.set_volume_id(volume().meta.id());
    mark.set_name(name);
    mark.set_sequence(sequence);
    mark.set_time_ns(parts_.answers(volume()).moment_of(SequenceNumber{sequence}).time.ns);
    EXPECT_TRUE(parts_.store().put_mark(mark));
    return mark;
  }

  testing::NodeParts parts_;
};

TEST_F(HistoryAnswer, ShowsWhatHappenedAndWhen) {
  const meta::Mark early = mark("early", 2);
  meta::ClockStep step;
  step.set_at_ns(early.time_ns() + 1);
  step.set_step_ns(-5'000'000);
  api::HistoryRequest request;
  request.set_buckets(3);
  request.set_max_writes(2);
  const Result<api::History> all = answer(request, {{step}, {}});
  ASSERT_TRUE(all) << to_string(all.error());
  EXPECT_EQ(all->name(), "db1");
  EXPECT_EQ(all->writes(), 3u);
  EXPECT_EQ(all->distinct_bytes(), kBlockBytes);
  ASSERT_EQ(all->buckets_size(), 3);
  std::uint64_t drawn = 0;
  for (const api::HistoryBucket& bucket : all->buckets()) drawn += bucket.writes();
  EXPECT_EQ(drawn, 3u);
  ASSERT_EQ(all->write_list_size(), 2);
  EXPECT_EQ(all->write_list(1).kind(), "write");
  EXPECT_TRUE(all->truncated());
  ASSERT_EQ(all->events_size(), 2);
  EXPECT_EQ(all->events(0).text(), "early");
  EXPECT_EQ(all->events(1).text(), "-5 ms");
}

TEST_F(HistoryAnswer, ShowsWhatChecksFound) {
  std::vector<meta::Verdict> verdicts;
  for (const std::uint32_t sequence : {1, 2, 3}) {
    meta::Verdict& verdict = verdicts.emplace_back();
    verdict.set_sequence(sequence);
    verdict.set_time_ns(parts_.answers(volume()).moment_of(SequenceNumber{sequence}).time.ns);
    verdict.set_kind(sequence == 2 ? meta::Verdict::REPAIRABLE : meta::Verdict::CLEAN);
    verdict.set_level(sequence);
    if (sequence == 2) verdict.set_findings(4);
    if (sequence != 1) verdict.set_blocks_mended(7);
  }
  api::HistoryRequest request;
  request.set_buckets(5);
  const Result<api::History> all = answer(request, {{}, verdicts});
  ASSERT_TRUE(all) << to_string(all.error());
  ASSERT_EQ(all->events_size(), 3);
  EXPECT_EQ(all->events(0).kind(), "clean");
  EXPECT_EQ(all->events(0).text(), "level 1");
  EXPECT_EQ(all->events(1).kind(), "repairable");
  EXPECT_EQ(all->events(1).text(), "level 2: 4 findings, 7 blocks to mend");
  EXPECT_EQ(all->events(2).text(), "level 3: 7 blocks to mend");
  std::uint32_t clean = 0;
  std::uint32_t repairable = 0;
  for (const api::HistoryBucket& bucket : all->buckets()) {
    clean += bucket.clean();
    repairable += bucket.repairable();
  }
  EXPECT_EQ(clean, 2u);
  EXPECT_EQ(repairable, 1u);
  request.mutable_to()->set_sequence(1);
  EXPECT_EQ(answer(request, {{}, verdicts})->events_size(), 1);
}

TEST_F(HistoryAnswer, APartOfItAndWhatIsRefused) {
  api::HistoryRequest part;
  part.mutable_from()->set_sequence(1);
  part.mutable_to()->set_sequence(2);
  EXPECT_EQ(answer(part)->writes(), 1u);
  api::HistoryRequest early;
  early.mutable_from()->set_time_ns(1);
  EXPECT_EQ(answer(early)->writes(), 3u) << "from the beginning";
  api::HistoryRequest wide;
  wide.set_buckets(volume::HistorySummary::kColumnsMax + 1);
  EXPECT_EQ(answer(wide).error().code, ErrorCode::kLimit);
  part.mutable_to()->set_sequence(9);
  EXPECT_EQ(answer(part).error().code, ErrorCode::kOutsideWindow);
}

TEST_F(HistoryAnswer, Marks) {
  mark("late", 3);
  mark("early", 1);
  const api::MarkList list = to_api(of());
  ASSERT_EQ(list.marks_size(), 2);
  EXPECT_EQ(list.marks(0).name(), "early");
  EXPECT_EQ(list.marks(0).volume(), "db1");
  EXPECT_TRUE(check_mark(of(), "middle").has_value());
  EXPECT_EQ(check_mark(of(), "late").error().code, ErrorCode::kAlreadyExists);
  EXPECT_EQ(check_mark(of(), "no/name").error().code, ErrorCode::kInvalidArgument);
  api::MarkRequest request;
  request.set_name("kept");
  request.set_lock_s(10);
  const meta::Mark kept = mark_of(request, VolumeId{7}, {{5}, {6}}, VersionTime{100});
  EXPECT_EQ(kept.volume_id(), 7u);
  EXPECT_EQ(kept.sequence(), 5u);
  EXPECT_EQ(kept.locked_until_ns(), 10'000'000'100u);
  request.set_lock_s(UINT64_MAX);
  EXPECT_EQ(mark_of(request, {}, {}, VersionTime{100}).locked_until_ns(), UINT64_MAX);
}

}  // namespace
}  // namespace mariner::node
