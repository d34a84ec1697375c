// SPDX-License-Identifier: GPL-2.0-only
#include "server/tgt/abi_check.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "tests/server/tgt/tgtd_stand_in.h"

namespace mariner::tgt {
namespace {

TEST(TgtAbi, AsExpected) {
  stand_in.differs = "";
  EXPECT_EQ(abi_fault(), "");
}

TEST(TgtAbi, WhatDiffersIsFound) {
  for (const auto& [function, fault] : std::initializer_list<std::pair<const char*, const char*>>{
           {"get_backingstore_template", "the functions of a backing store"},
           {"bs_create_opcode_map", "a backing store's operations"},
           {"sense_data_build", "the sense data of a command"},
           {"bs_null_cmd_submit", "the result of a command"},
           {"spc_inquiry", "the buffers of a command"},
           {"update_lbppbe", "the block size of a unit"}}) {
    stand_in.differs = function;
    EXPECT_EQ(abi_fault(), fault) << function;
  }
  stand_in.differs = "";
}

struct LimitsPage {
  VpdPage page{.bytes = 60, .update = nullptr};
  std::array<std::uint8_t, 60> content{};
};

int perform(int /*host_no*/, ScsiCmd* /*command*/) { return 0; }

TEST(TgtAbi, AUnitIsLookedAtWhenItIsMade) {
  BackingStore store{};
  LimitsPage limits;
  std::array<ServiceAction, 2> actions = {ServiceAction{.code = 0x10, .perform = &perform}};
  auto lu = std::make_unique<ScsiLu>();
  const auto fault = [&] { return unit_fault(*lu, store); };
  EXPECT_EQ(fault(), "the backing store of a unit");
  lu->store = &store;
  EXPECT_EQ(fault(), "the end of a unit");
  lu->perform = &target_cmd_perform;
  EXPECT_EQ(fault(), "the block limits of a unit");
  lu->vpd[0x30] = &limits.page;
  EXPECT_EQ(fault(), "the operations of a unit");
  lu->operations[0x9E].service_actions = actions.data();
  EXPECT_EQ(fault(), "");
  limits.page.bytes = 12;
  EXPECT_EQ(fault(), "the block limits of a unit");
}

}  // namespace
}  // namespace mariner::tgt
