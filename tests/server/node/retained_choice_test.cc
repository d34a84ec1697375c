#include "server/node/retained_choice.h"

#include <gtest/gtest.h>

namespace mariner::node {
namespace {

using index::IndexMoment;
using index::KeptMoment;

IndexMoment moment(std::uint64_t sequence, std::uint64_t time) { return {{sequence}, {time}}; }

// Of the period (100, 200].
class RetainedChoiceTest : public ::testing::Test {
 protected:
  RetainedChoice choose() {
    const std::vector<RetainedChoice> chosen =
        choose_retained({{{200}, "hourly", {100}}}, {oldest_, kept_, clean_});
    EXPECT_EQ(chosen.size(), 1U);
    return chosen.front();
  }
  IndexMoment oldest_ = moment(1, 50);
  std::vector<KeptMoment> kept_;
  std::vector<IndexMoment> clean_;
};

TEST_F(RetainedChoiceTest, TheLastWriteIfNothingIsKnown) {
  EXPECT_EQ(choose().moment, std::nullopt);
  EXPECT_EQ(choose().asked.time, VersionTime{200});
}

TEST_F(RetainedChoiceTest, TheNewestCleanOneOfThePeriod) {
  clean_ = {moment(3, 90), moment(4, 100), moment(5, 101), moment(6, 160), moment(9, 201)};
  EXPECT_EQ(choose().moment, moment(6, 160));
  EXPECT_TRUE(choose().clean);
  clean_ = {moment(4, 100), moment(9, 200)};
  EXPECT_EQ(choose().moment, moment(9, 200)) << "the end is part of it";
  clean_ = {moment(4, 100), moment(9, 201)};
  EXPECT_EQ(choose().moment, std::nullopt) << "the beginning is not";
}

TEST_F(RetainedChoiceTest, OnlyOneThatCanBeOpened) {
  clean_ = {moment(5, 110), moment(6, 160), moment(7, 170)};
  oldest_ = moment(8, 190);
  EXPECT_EQ(choose().moment, std::nullopt) << "the end of the period can be";
  kept_ = {{moment(6, 160), {160}}};
  EXPECT_EQ(choose().moment, moment(6, 160));
  clean_ = {{{0}, {150}}};
  EXPECT_EQ(choose().moment, std::nullopt) << "0 means the base";
}

TEST_F(RetainedChoiceTest, WhatWasChosenStaysWhenItsVerdictHasGone) {
  oldest_ = moment(20, 300);
  kept_ = {{moment(3, 90), {95}}, {moment(5, 110), {110}}, {moment(6, 160), {160}}};
  EXPECT_EQ(choose().moment, moment(6, 160));
  EXPECT_FALSE(choose().clean);
  EXPECT_TRUE(stands_for(kept_[2], choose()));
  EXPECT_FALSE(stands_for(kept_[1], choose()));
  // That was the last write before the end.
  kept_.push_back({moment(7, 170), {250}});
  EXPECT_EQ(choose().moment, std::nullopt);
  EXPECT_TRUE(stands_for(kept_[3], choose()));
  EXPECT_FALSE(stands_for(kept_[2], choose()));
  kept_ = {{moment(3, 90), {95}}};
  EXPECT_EQ(choose().moment, std::nullopt) << "nothing of the period is left";
}

TEST_F(RetainedChoiceTest, TheLastWriteMayBeLongBefore) {
  oldest_ = moment(20, 300);
  kept_ = {{moment(3, 20), {299}}};
  EXPECT_EQ(choose().moment, std::nullopt);
  EXPECT_TRUE(stands_for(kept_[0], choose()));
}

}  // namespace
}  // namespace mariner::node
