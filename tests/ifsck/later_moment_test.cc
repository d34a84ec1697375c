#include "ifsck/later_moment.h"

#include <gtest/gtest.h>

#include "ifsck/moment_check.h"
#include "ifsck/past_behind.h"
#include "tests/ifsck/made_history.h"

namespace mariner::ifsck {
namespace {

using std::chrono::seconds;

// A history that is broken off somewhere.
class Broken final : public PastBehind {
 public:
  using PastBehind::PastBehind;
  Result<SequenceNumber> first_break(SequenceNumber from, SequenceNumber to) override {
    return at > from && at <= to ? at : SequenceNumber{};
  }
  SequenceNumber at;
};

class LaterMomentTest : public ::testing::Test {
 protected:
  LaterMomentTest() {
    (void)MadeMoment(*history_.past, {}).census(&known_.baseline);
    EXPECT_TRUE(then_.open().has_value());
  }
  Result<LaterMoment> find(SequenceNumber at, std::chrono::nanoseconds after = seconds(35)) {
    return LaterMoment::find(past_, at, after, then_, known_);
  }

  MadeHistory history_{"-t ext2 -b 4096", 5};
  Broken past_{*history_.past};
  KeptBaseline known_;
  Moment then_{past_, {}, known_.overlay};
};

TEST_F(LaterMomentTest, IsTheEndOfWhatFollows) {
  const SequenceNumber at{history_.ends[0].value / 2};
  const auto later = find(at);
  ASSERT_TRUE(later.has_value()) << later.error().message;
  ASSERT_NE(later->moment, nullptr) << later->why_not;
  EXPECT_EQ(later->moment->view().at(), history_.ends.back());
  EXPECT_TRUE(later->findings.empty());
  // (A write is a nanosecond.)
  const auto soon = find(at, std::chrono::nanoseconds(history_.ends[0].value - at.value));
  ASSERT_NE(soon->moment, nullptr);
  EXPECT_EQ(soon->moment->view().at(), history_.ends[0]);
  const auto sooner = find(at, std::chrono::nanoseconds(1));
  ASSERT_NE(sooner->moment, nullptr);
  EXPECT_EQ(sooner->moment->view().at(), at.next());
}

TEST_F(LaterMomentTest, IsNotBehindTheEndOrABreak) {
  EXPECT_EQ(find(history_.ends.back())->why_not, "nothing was written afterwards");
  const SequenceNumber at{history_.ends[0].value / 2};
  past_.at = at.next();
  EXPECT_EQ(find(at)->why_not, "a rollback or a gap in the history follows");
  EXPECT_EQ(find(at)->moment, nullptr);
  past_.at = history_.ends[0].next();
  const auto later = find(at);
  ASSERT_NE(later->moment, nullptr);
  EXPECT_EQ(later->moment->view().at(), history_.ends[0]);
}

}  // namespace
}  // namespace mariner::ifsck
