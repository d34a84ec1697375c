#include "server/node/moments.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/server/node/node_parts.h"

namespace mariner::node {
namespace {

// The wall clock of another executor, stepped.
class Stepped final : public Executor {
 public:
  explicit Stepped(Executor& below) : below_(below) {}
  void post(UniqueFunction<void()> work) override { below_.post(std::move(work)); }
  void defer(UniqueFunction<void()> work) override { below_.defer(std::move(work)); }
  void after(std::chrono::nanoseconds delay, UniqueFunction<void()> work) override {
    below_.after(delay, std::move(work));
  }
  [[nodiscard]] VersionTime wall_time() const override { return {below_.wall_time().ns - back_ns}; }
  [[nodiscard]] std::chrono::nanoseconds monotonic_time() const override {
    return below_.monotonic_time();
  }
  std::uint64_t back_ns = 0;

 private:
  Executor& below_;
};

class Moments : public ::testing::Test {
 protected:
  Moments() {
    parts_.create("db1");
    for (const char c : {'1', '2'}) parts_.write(*volume().volume->live_layer(), 0, c);
  }
  ServedVolume& volume() { return *parts_.volumes().find("db1"); }
  Result<ResolvedMoment> resolve(const api::MomentSpec& spec) {
    std::optional<Result<ResolvedMoment>> out;
    resolve_moment(volume(), spec, parts_.store(), executor_,
                   [&](Result<ResolvedMoment> moment) { out = std::move(moment); });
    parts_.run_until([&] { return out.has_value(); });
    return *out;
  }
  static api::MomentSpec at_time(std::uint64_t ns) {
    api::MomentSpec spec;
    spec.set_time_ns(ns);
    return spec;
  }
  static api::MomentSpec at_sequence(std::uint64_t sequence) {
    api::MomentSpec spec;
    spec.set_sequence(sequence);
    return spec;
  }
  static api::MomentSpec now() {
    api::MomentSpec spec;
    spec.set_now(true);
    return spec;
  }
  std::uint64_t time_of(std::uint64_t sequence) {
    return parts_.answers(volume()).moment_of(SequenceNumber{sequence}).time.ns;
  }

  testing::NodeParts parts_;
  Stepped executor_{parts_.executor()};
};

TEST_F(Moments, ByTimeNumberAndNow) {
  EXPECT_EQ(resolve(at_time(time_of(2) - 1))->at.sequence, SequenceNumber{1});
  EXPECT_EQ(resolve(at_time(time_of(2)))->at.sequence, SequenceNumber{2});
  EXPECT_EQ(resolve(at_time(volume().meta.created_ns()))->at.sequence, SequenceNumber{0});
  EXPECT_EQ(resolve(at_sequence(1))->at.time.ns, time_of(1));
  EXPECT_EQ(resolve(at_sequence(0))->at.sequence, SequenceNumber{0});
  EXPECT_EQ(resolve(now())->at.sequence, SequenceNumber{2});
}

TEST_F(Moments, OutsideOfTheHistory) {
  const auto code = [&](const api::MomentSpec& spec) { return resolve(spec).error().code; };
  EXPECT_EQ(code(at_time(volume().meta.created_ns() - 1)), ErrorCode::kOutsideWindow);
  EXPECT_EQ(code(at_time(executor_.wall_time().ns + 3'600'000'000'000)), ErrorCode::kOutsideWindow);
  EXPECT_EQ(code(at_sequence(3)), ErrorCode::kOutsideWindow);
  EXPECT_EQ(code({}), ErrorCode::kInvalidArgument);
}

TEST_F(Moments, ByMark) {
  meta::Mark mark;
  mark.set_volume_id(volume().meta.id());
  mark.set_name("early");
  mark.set_sequence(1);
  mark.set_time_ns(time_of(1));
  ASSERT_TRUE(parts_.store().put_mark(mark));
  api::MomentSpec spec;
  spec.set_mark("early");
  EXPECT_EQ(resolve(spec)->at.sequence, SequenceNumber{1});
  EXPECT_EQ(resolve(spec)->mark, "early");
  spec.set_mark("late");
  EXPECT_EQ(resolve(spec).error().code, ErrorCode::kNotFound);
}

TEST_F(Moments, NowIsTheNewestWriteAlsoWhenTheClockWasSteppedBack) {
  executor_.back_ns = 3'600'000'000'000;
  EXPECT_EQ(resolve(now())->at.sequence, SequenceNumber{2});
  EXPECT_EQ(resolve(at_time(time_of(2)))->at.sequence, SequenceNumber{2});
}

TEST_F(Moments, AMomentNeverChanges) {
  const std::uint64_t asked = resolve(now())->asked.ns;
  parts_.write(*volume().volume->live_layer(), 0, '3');
  EXPECT_EQ(resolve(at_time(asked))->at.sequence, SequenceNumber{2});
}

TEST_F(Moments, AsAnAnswer) {
  const api::Moment moment = to_api(*resolve(at_sequence(2)));
  EXPECT_EQ(moment.sequence(), 2u);
  EXPECT_EQ(moment.time_ns(), time_of(2));
  EXPECT_FALSE(moment.utc().empty());
  EXPECT_TRUE(to_api(index::IndexMoment{}).utc().empty());
}

}  // namespace
}  // namespace mariner::node
