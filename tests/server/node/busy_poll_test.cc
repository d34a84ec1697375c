#include "server/node/busy_poll.h"

#include <gtest/gtest.h>

namespace mariner::node {
namespace {

using namespace std::chrono_literals;

void wait(BusyPoll& poll, int times, BusyPoll::Time time) {
  for (int i = 0; i < times; ++i) poll.waited(time);
}

TEST(BusyPoll, LooksWhileEventsComeSoon) {
  BusyPoll poll(50us);
  EXPECT_EQ(poll.value(), 0us) << "not before it is known to pay";
  wait(poll, 23, 50us);
  EXPECT_EQ(poll.value(), 0us);
  wait(poll, 1, 20us);
  EXPECT_EQ(poll.value(), 50us);
}

TEST(BusyPoll, StopsWhenTheyDoNot) {
  BusyPoll poll(50us);
  wait(poll, 100, 20us);
  wait(poll, 8, 51us);
  EXPECT_EQ(poll.value(), 50us) << "a pause is no end";
  wait(poll, 1, 1s);
  EXPECT_EQ(poll.value(), 0us);
}

TEST(BusyPoll, NeverWhereItIsNotAllowed) {
  BusyPoll poll;
  EXPECT_FALSE(poll.allowed(false));
  EXPECT_FALSE(poll.allowed(true));
  wait(poll, 100, 1us);
  EXPECT_EQ(poll.value(), 0us);
}

TEST(BusyPoll, UnlessItIsToldOtherwiseItLooksForWhatHostsSend) {
  BusyPoll poll(std::nullopt, 2);
  EXPECT_TRUE(poll.allowed(false));
  EXPECT_FALSE(poll.allowed(true)) << "the log writes";
  wait(poll, 24, BusyPoll::kUnlessToldOtherwise);
  EXPECT_EQ(poll.value(), BusyPoll::kUnlessToldOtherwise);
}

TEST(BusyPoll, UnlessItIsToldOtherwiseALoneProcessorHasBetterToDo) {
  EXPECT_FALSE(BusyPoll(std::nullopt, 1).allowed(false));
  EXPECT_TRUE(BusyPoll(50us, 1).allowed(false)) << "it is told";
}

TEST(BusyPoll, LooksForAnythingWhenItIsTold) { EXPECT_TRUE(BusyPoll(50us, 2).allowed(true)); }

}  // namespace
}  // namespace mariner::node
