#include "server/scsi/nexus.h"

#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

using enum Attention;

const NexusId kHost{{"iqn.2026-11.org.example:a", {0x80, 0, 0, 0, 0, 1}}};
const NexusId kSameHostOtherSession{{"iqn.2026-11.org.example:a", {0x80, 0, 0, 0, 0, 2}}};
const NexusId kOtherPort{kHost.initiator, 2};

TEST(AttentionSet, EmptyAtFirst) {
  AttentionSet set;
  EXPECT_TRUE(set.empty());
  EXPECT_EQ(set.take(), std::nullopt);
}

TEST(AttentionSet, ReportsInOrderOfPrecedence) {
  AttentionSet set;
  set.add(kMediumChanged);
  set.add(kCapacityChanged);
  set.add(kParametersChanged);
  EXPECT_EQ(set.take(), kCapacityChanged);
  EXPECT_EQ(set.take(), kParametersChanged);
  EXPECT_EQ(set.take(), kMediumChanged);
  EXPECT_TRUE(set.empty());
}

TEST(AttentionSet, HoldsEachKindOnce) {
  AttentionSet set;
  for (int i = 0; i < 1000; ++i) set.add(kCapacityChanged);
  EXPECT_EQ(set.take(), kCapacityChanged);
  EXPECT_TRUE(set.empty());
}

TEST(AttentionSet, AResetClearsWhatItImplies) {
  AttentionSet set;
  set.add(kCapacityChanged);
  set.add(kLogicalUnitReset);
  EXPECT_EQ(set.take(), kLogicalUnitReset);
  EXPECT_TRUE(set.empty());
}

TEST(AttentionSet, AHigherResetStaysAheadOfALowerOne) {
  AttentionSet set;
  set.add(kPowerOn);
  set.add(kLogicalUnitReset);
  EXPECT_EQ(set.take(), kPowerOn);
  EXPECT_TRUE(set.empty());
}

TEST(AttentionSet, WhatHappensAfterAResetIsReportedAfterIt) {
  AttentionSet set;
  set.add(kPowerOn);
  set.add(kMediumChanged);
  EXPECT_EQ(set.take(), kPowerOn);
  EXPECT_EQ(set.take(), kMediumChanged);
}

TEST(Attention, AllAreUnitAttentions) {
  for (const Attention attention :
       {kPowerOn, kTargetReset, kLogicalUnitReset, kCommandsCleared, kAccessStateChanged,
        kCapacityChanged, kParametersChanged, kMediumChanged, kReservationsPreempted,
        kReservationsReleased, kRegistrationsPreempted, kLogParametersChanged,
        kFailurePredictedInTest, kSelfTestFailed}) {
    EXPECT_EQ(sense_of(attention).key, SenseKey::kUnitAttention);
  }
  EXPECT_EQ(sense_of(kAccessStateChanged).code, AdditionalSense{0x2A06});
  EXPECT_EQ(sense_of(kCapacityChanged).code, AdditionalSense{0x2A09});
  EXPECT_EQ(sense_of(kMediumChanged).code, AdditionalSense{0x2800});
  EXPECT_EQ(sense_of(kTargetReset).code, AdditionalSense{0x2902});
  EXPECT_EQ(sense_of(kLogicalUnitReset).code, AdditionalSense{0x2903});
  EXPECT_EQ(sense_of(kCommandsCleared).code, AdditionalSense{0x2F00});
}

TEST(NexusTable, ANewNexusStartsWithPowerOnForEveryUnit) {
  NexusTable table(2);
  const auto nexus = table.attach(kHost);
  EXPECT_EQ(nexus->attentions(0).take(), kPowerOn);
  EXPECT_EQ(nexus->attentions(1).take(), kPowerOn);
}

TEST(NexusTable, ReinstatementKeepsTheNexusWhileAnySessionHoldsIt) {
  NexusTable table(1);
  const auto old_session = table.attach(kHost);
  EXPECT_EQ(table.attach(kHost), old_session);
}

TEST(NexusTable, ANexusEndsWithItsLastSession) {
  NexusTable table(1);
  auto nexus = table.attach(kHost);
  (void)nexus->attentions(0).take();
  nexus.reset();
  EXPECT_FALSE(table.attach(kHost)->attentions(0).empty());
}

TEST(NexusTable, TheIsidTellsNexusesApart) {
  NexusTable table(1);
  const auto first = table.attach(kHost);
  EXPECT_NE(table.attach(kSameHostOtherSession), first);
}

TEST(NexusTable, EstablishesForAllButTheOneExcepted) {
  NexusTable table(1);
  const auto first = table.attach(kHost);
  const auto second = table.attach(kSameHostOtherSession);
  (void)first->attentions(0).take();
  (void)second->attentions(0).take();
  table.establish(0, kCommandsCleared, first.get());
  EXPECT_TRUE(first->attentions(0).empty());
  EXPECT_EQ(second->attentions(0).take(), kCommandsCleared);
}

TEST(NexusTable, EstablishesForOneInitiatorPort) {
  NexusTable table(1);
  const auto first = table.attach(kHost);
  const auto other_port = table.attach(kOtherPort);
  const auto other_session = table.attach(kSameHostOtherSession);
  for (const auto& nexus : {first, other_port, other_session}) (void)nexus->attentions(0).take();
  table.establish_for(0, kReservationsReleased, kOtherPort);
  EXPECT_TRUE(first->attentions(0).empty());
  EXPECT_EQ(other_port->attentions(0).take(), kReservationsReleased);
  EXPECT_TRUE(other_session->attentions(0).empty());
}

}  // namespace
}  // namespace mariner::scsi
