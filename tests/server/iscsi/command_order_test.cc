#include "server/iscsi/command_order.h"

#include <gtest/gtest.h>

#include <string>

namespace mariner::iscsi {
namespace {

class CommandOrderTest : public testing::Test {
 protected:
  void deliver(std::uint32_t cmd_sn, std::uint32_t connection = 1) {
    order.deliver(cmd_sn, connection, [this, cmd_sn] { acted += std::to_string(cmd_sn) + " "; });
  }
  void when_received(std::uint32_t cmd_sn, std::uint32_t connection = 1) {
    order.when_received(cmd_sn, connection,
                        [this, cmd_sn] { acted += "<" + std::to_string(cmd_sn) + " "; });
  }

  CommandOrder order{1, 8};
  std::string acted;
};

TEST_F(CommandOrderTest, ActsInOrderWhateverComesFirst) {
  deliver(3);
  deliver(2);
  EXPECT_EQ(acted, "");
  deliver(1);
  deliver(4);
  EXPECT_EQ(acted, "1 2 3 4 ");
}

TEST_F(CommandOrderTest, WhoWaitsForThoseBeforeItGoesBetweenThem) {
  when_received(1);
  EXPECT_EQ(acted, "<1 ") << "nothing is before it";
  when_received(3);
  deliver(3);
  deliver(2);
  deliver(1);
  EXPECT_EQ(acted, "<1 1 2 <3 3 ");
  when_received(900);
  EXPECT_EQ(acted, "<1 1 2 <3 3 <900 ") << "beyond the window: nothing to wait for";
}

TEST_F(CommandOrderTest, WhatItsConnectionTakesAlongNeverActs) {
  deliver(2, 1);
  deliver(3, 2);
  when_received(4, CommandOrder::kNoConnection);
  order.drop(1);
  deliver(1, 2);
  EXPECT_EQ(acted, "1 3 <4 ");
}

TEST_F(CommandOrderTest, PluggedNumbersLetOthersGoOn) {
  deliver(2);
  EXPECT_TRUE(order.window().abort_unreceived(1, 2));
  order.run_ready();
  EXPECT_EQ(acted, "2 ");
}

TEST_F(CommandOrderTest, WhatActsMayBringMore) {
  order.deliver(2, 1, [this] {
    acted += "2 ";
    deliver(4);
    deliver(3);
  });
  deliver(1);
  EXPECT_EQ(acted, "1 2 3 4 ");
}

}  // namespace
}  // namespace mariner::iscsi
