#include "server/node/verdict_desk.h"

#include <gmock/gmock.h>

#include <optional>

#include "tests/server/node/node_parts.h"

namespace mariner::node {
namespace {

using ::testing::HasSubstr;

// A volume with three writes.
class VerdictDeskTest : public ::testing::Test {
 protected:
  VerdictDeskTest() {
    parts_.create("db1");
    for (const char c : {'1', '2', '3'}) parts_.write(*volume().volume->live_layer(), 0, c);
  }
  ServedVolume& volume() { return *parts_.volumes().find("db1"); }
  VolumeId id() { return VolumeId{volume().meta.id()}; }
  static api::Verdict verdict(std::uint64_t sequence, const std::string& name = "clean",
                              std::uint32_t level = 1) {
    api::Verdict out;
    out.mutable_at()->set_sequence(sequence);
    out.set_verdict(name);
    out.set_level(level);
    return out;
  }
  Result<api::VerdictList> save(const std::vector<api::Verdict>& verdicts, bool dry_run = false,
                                const std::string& name = "db1") {
    api::SaveVerdictsRequest request;
    request.set_volume(name);
    request.set_dry_run(dry_run);
    for (const api::Verdict& each : verdicts) *request.add_verdicts() = each;
    return wait([&](VerdictDesk::List done) { desk_.save(request, std::move(done)); });
  }
  Result<api::VerdictList> list(const api::VerdictsRequest& asked = {}) {
    api::VerdictsRequest request = asked;
    request.set_volume("db1");
    return wait([&](VerdictDesk::List done) { desk_.list(request, std::move(done)); });
  }
  template <typename Call>
  Result<api::VerdictList> wait(Call call) {
    std::optional<Result<api::VerdictList>> out;
    call([&](Result<api::VerdictList> answer) { out = std::move(answer); });
    parts_.run_until([&] { return out.has_value(); });
    return *out;
  }

  testing::NodeParts parts_;
  LocalVerdicts shelf_{parts_.store()};
  VerdictDesk desk_{parts_.executor(), shelf_,
                    [this](const std::string& name) -> Result<VerdictDesk::Volume> {
                      if (name != "db1") return Error{ErrorCode::kNotFound, name};
                      return VerdictDesk::Volume{id(), *moments_of(volume(), parts_.store())};
                    }};
};

TEST_F(VerdictDeskTest, WhatWasFoundIsKnown) {
  api::Verdict damaged = verdict(2, "damaged", 2);
  damaged.set_findings(3);
  damaged.set_duration_ns(1'500'000'000);
  const auto saved = save({damaged, verdict(1)});
  ASSERT_TRUE(saved) << to_string(saved.error());
  EXPECT_EQ(saved->verdicts_size(), 2);
  const auto known = list();
  ASSERT_TRUE(known);
  ASSERT_EQ(known->verdicts_size(), 2) << "by moment";
  EXPECT_EQ(known->verdicts(0).verdict(), "clean");
  EXPECT_EQ(known->verdicts(1).findings(), 3u);
  EXPECT_GT(known->verdicts(1).checked_ns(), 0u);
  EXPECT_EQ(known->verdicts(1).at().time_ns(),
            parts_.answers(volume()).moment_of(SequenceNumber{2}).time.ns)
      << "as the history has it";
  ASSERT_NE(desk_.durations(id()), nullptr);
  EXPECT_EQ(desk_.durations(id())->sum(), 1'500'000'000u);
}

TEST_F(VerdictDeskTest, APartOfThem) {
  ASSERT_TRUE(save({verdict(1), verdict(2), verdict(3)}));
  api::VerdictsRequest part;
  part.mutable_since()->set_sequence(2);
  EXPECT_EQ(list(part)->verdicts_size(), 2);
  part.mutable_until()->set_sequence(2);
  EXPECT_EQ(list(part)->verdicts_size(), 1);
  part.mutable_since()->set_time_ns(1);
  EXPECT_EQ(list(part)->verdicts_size(), 2) << "from the beginning";
  part.mutable_until()->set_sequence(9);
  EXPECT_EQ(list(part).error().code, ErrorCode::kOutsideWindow);
}

TEST_F(VerdictDeskTest, WhatMakesNoSenseIsRefusedWhole) {
  EXPECT_EQ(save({}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(save({verdict(1)}, false, "db2").error().code, ErrorCode::kNotFound);
  EXPECT_THAT(
      save({verdict(1), verdict(2, "dirty")}).error().message,
      HasSubstr("the verdict on #2: expected clean, repairable or damaged, found \"dirty\""));
  EXPECT_THAT(save({verdict(1, "clean", 4)}).error().message,
              HasSubstr("expected a level of 1, 2 or 3, found 4"));
  EXPECT_EQ(save(std::vector<api::Verdict>(VerdictDesk::kAtOnceMax + 1, verdict(1))).error().code,
            ErrorCode::kLimit);
  EXPECT_EQ(list()->verdicts_size(), 0);
  EXPECT_EQ(desk_.durations(id()), nullptr);
}

TEST_F(VerdictDeskTest, WhatIsOutsideTheWindowIsLeftOut) {
  EXPECT_EQ(save({verdict(9)}).error().code, ErrorCode::kOutsideWindow);
  const auto saved = save({verdict(9), verdict(3)});
  ASSERT_TRUE(saved);
  EXPECT_EQ(saved->verdicts_size(), 1);
}

TEST_F(VerdictDeskTest, ADryRunKeepsNothing) {
  EXPECT_EQ(save({verdict(1)}, true)->verdicts_size(), 1);
  EXPECT_EQ(list()->verdicts_size(), 0);
}

}  // namespace
}  // namespace mariner::node
