#include "server/cluster/base_capture.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/server/cluster/letters_base.h"
#include "tests/server/volume/asked_history.h"
#include "tests/server/volume/logged_rig.h"

namespace mariner::cluster {
namespace {

using test::AskedHistory;
using test::LoggedRig;
using volume::History;
using volume::PastRun;

constexpr BlockRange kFour{{4}, {4}};

std::string text_of(const Result<void>& r) {
  return std::string(r ? "done" : error_code_name(r.error().code));
}

// Another node's image, which that node writes to while it is read.
class OverwrittenBase final : public volume::Base {
 public:
  explicit OverwrittenBase(std::function<void()> overwrite) : overwrite_(std::move(overwrite)) {}
  void read(BlockRange range, std::span<std::byte> to, volume::Done done) override {
    overwrite_();
    letters_.read(range, to, std::move(done));
  }
  [[nodiscard]] bool may_move() const override { return true; }

 private:
  const std::function<void()> overwrite_;
  test::LettersBase letters_;
};

// A logger that calls four blocks the images' base.
class BaseCaptureTest : public ::testing::Test {
 protected:
  BaseCaptureTest() { rig_.base.add(kFour); }
  std::string capture(volume::Base& other) {
    std::string out = "...";
    capture_base(rig_.history, other, kFour, [&](const Result<void>& r) { out = text_of(r); });
    rig_.executor.run_ready();
    return out;
  }
  std::string read() {
    Payload to = Payload::zeroed(kFour.count.bytes());
    std::string out = "...";
    rig_.history.read(kFour, {1}, to.bytes(), [&](const Result<std::vector<BlockRange>>& base) {
      out = base && base->empty() ? LoggedRig::text_of(to.bytes()) : "base";
    });
    rig_.executor.run_ready();
    return out;
  }

  LoggedRig rig_{false};
  test::LettersBase other_;
};

TEST_F(BaseCaptureTest, WhatTheOtherImageHoldsIsLogged) {
  EXPECT_EQ(read(), "base");
  EXPECT_EQ(capture(other_), "done");
  EXPECT_EQ(read(), "EFGH");
}

TEST_F(BaseCaptureTest, WhatTheOtherNodeHasLoggedStays) {
  rig_.capture({{4}, {1}}, 'e');
  OverwrittenBase other([this] { rig_.capture({{6}, {1}}, 'g'); });
  EXPECT_EQ(capture(other), "done");
  EXPECT_EQ(read(), "eFgH");
  EXPECT_EQ(rig_.log.payload_bytes(), 4 * kBlockBytes) << "each once";
}

TEST_F(BaseCaptureTest, AnImageThatCannotBeReadIsAnError) {
  other_.good = false;
  EXPECT_EQ(capture(other_), "unavailable");
  EXPECT_EQ(read(), "base");
}

TEST(BaseCaptureFailures, SoIsALogThatCannotBeAsked) {
  AskedHistory log;
  test::LettersBase other;
  std::string out = "...";
  capture_base(log, other, kFour, [&](const Result<void>& r) { out = text_of(r); });
  AskedHistory::next(log.locates).done(Error{ErrorCode::kUnavailable, "away"});
  EXPECT_EQ(out, "unavailable");
  EXPECT_TRUE(log.before_images.empty());
}

TEST(BaseCaptureFailures, SoIsOneThatDoesNotTakeIt) {
  AskedHistory log;
  test::LettersBase other;
  std::string out = "...";
  capture_base(log, other, kFour, [&](const Result<void>& r) { out = text_of(r); });
  AskedHistory::next(log.locates)
      .done(History::Located{{{{{4}, {1}}, PastRun::Source::kBase, false, {}},
                              {{{5}, {2}}, PastRun::Source::kLog, false, {}},
                              {{{7}, {1}}, PastRun::Source::kBase, false, {}}},
                             {}});
  AskedHistory::BeforeImage first = AskedHistory::next(log.before_images);
  AskedHistory::BeforeImage second = AskedHistory::next(log.before_images);
  EXPECT_EQ(first.range, (BlockRange{{4}, {1}}));
  EXPECT_EQ(LoggedRig::text_of(second.bytes.bytes()), "H");
  first.done(Error{ErrorCode::kNoSpace, "full"});
  EXPECT_EQ(out, "...") << "the other one is under way";
  second.done({});
  EXPECT_EQ(out, error_code_name(ErrorCode::kNoSpace));
}

}  // namespace
}  // namespace mariner::cluster
