#include "server/iscsi/negotiation.h"

#include <gtest/gtest.h>

#include "tests/server/iscsi/iscsi_testing.h"

namespace mariner::iscsi {
namespace {

struct Outcome {
  std::string answer;
  SessionParameters parameters;
  bool failed = false;
};

Outcome offer(std::initializer_list<std::string_view> offers,
              NegotiationPhase phase = NegotiationPhase::kNormalLogin) {
  const std::string text = keys(offers);
  const auto pairs = parse_text(text);
  EXPECT_TRUE(pairs);
  Outcome outcome;
  TextWriter answers;
  const NegotiationLimits limits;
  outcome.failed = !negotiate(*pairs, phase, limits, outcome.parameters, answers);
  outcome.answer = answers.take();
  for (char& c : outcome.answer) c = c == '\0' ? ' ' : c;
  if (!outcome.answer.empty()) outcome.answer.pop_back();
  return outcome;
}

// One line a rule: what is offered, what is answered.
TEST(NegotiationTest, EachKeyHasItsRule) {
  const std::pair<std::string_view, std::string_view> rules[] = {
      {"HeaderDigest=None", "HeaderDigest=None"},
      {"HeaderDigest=CRC32C", "HeaderDigest=CRC32C"},
      {"HeaderDigest=None,CRC32C", "HeaderDigest=None"},
      {"DataDigest=X-mine,CRC32C,None", "DataDigest=CRC32C"},
      {"DataDigest=X-mine", "DataDigest=Reject"},
      {"MaxConnections=8", "MaxConnections=4"},
      {"MaxConnections=0", "MaxConnections=Reject"},
      {"InitialR2T=No", "InitialR2T=No"},
      {"InitialR2T=Yes", "InitialR2T=Yes"},
      {"InitialR2T=maybe", "InitialR2T=Reject"},
      {"ImmediateData=Yes", "ImmediateData=Yes"},
      {"ImmediateData=No", "ImmediateData=No"},
      {"MaxRecvDataSegmentLength=65536", ""},
      {"MaxRecvDataSegmentLength=511", "MaxRecvDataSegmentLength=Reject"},
      {"MaxRecvDataSegmentLength=16777216", "MaxRecvDataSegmentLength=Reject"},
      {"MaxBurstLength=16776192", "MaxBurstLength=1048576"},
      {"MaxBurstLength=0x2000", "MaxBurstLength=8192"},
      {"MaxBurstLength=511", "MaxBurstLength=Reject"},
      {"FirstBurstLength=65536", "FirstBurstLength=65536"},
      {"FirstBurstLength=16777215", "FirstBurstLength=262144"},
      {"MaxOutstandingR2T=1", "MaxOutstandingR2T=1"},
      {"MaxOutstandingR2T=65535", "MaxOutstandingR2T=4"},
      {"MaxOutstandingR2T=65536", "MaxOutstandingR2T=Reject"},
      {"DataPDUInOrder=No", "DataPDUInOrder=Yes"},
      {"DataSequenceInOrder=No", "DataSequenceInOrder=Yes"},
      {"DefaultTime2Wait=2", "DefaultTime2Wait=2"},
      {"DefaultTime2Wait=3601", "DefaultTime2Wait=Reject"},
      {"DefaultTime2Retain=20", "DefaultTime2Retain=0"},
      {"ErrorRecoveryLevel=2", "ErrorRecoveryLevel=1"},
      {"ErrorRecoveryLevel=0", "ErrorRecoveryLevel=0"},
      {"ErrorRecoveryLevel=3", "ErrorRecoveryLevel=Reject"},
      {"IFMarker=Yes", "IFMarker=No"},
      {"OFMarker=No", "OFMarker=No"},
      {"IFMarkInt=2048", "IFMarkInt=Irrelevant"},
      {"OFMarkInt=2048~8192", "OFMarkInt=Irrelevant"},
      {"TaskReporting=FastAbort,RFC3720", "TaskReporting=RFC3720"},
      {"TaskReporting=FastAbort", "TaskReporting=Reject"},
      {"iSCSIProtocolLevel=2", "iSCSIProtocolLevel=1"},
      {"InitiatorAlias=a host", ""},
      {"X-com.example.key=1", "X-com.example.key=NotUnderstood"},
      {"Whatever=NotUnderstood", ""},
      {"MaxBurstLength=Reject", ""},
  };
  for (const auto& [offered, answered] : rules) EXPECT_EQ(offer({offered}).answer, answered);
}

TEST(NegotiationTest, WithRecoveryOneR2tIsOutstanding) {
  EXPECT_EQ(offer({"MaxOutstandingR2T=4", "ErrorRecoveryLevel=1"}).answer,
            "MaxOutstandingR2T=1 ErrorRecoveryLevel=1");
}

TEST(NegotiationTest, AConnectionThatJoinsHasItsOwnDigestsAndSegments) {
  SessionParameters session;
  session.burst_bytes_max = 4096;
  session.header_digest = true;
  session.send_segment_bytes_max = 4096;
  SessionParameters joining = parameters_of_joining(session);
  EXPECT_FALSE(joining.header_digest);
  EXPECT_EQ(joining.send_segment_bytes_max, 8192u);
  EXPECT_TRUE(same_session(session, joining));
  joining.burst_bytes_max = 8192;
  EXPECT_FALSE(same_session(session, joining));
}

TEST(NegotiationTest, DefaultsHoldForWhatIsNotOffered) {
  const SessionParameters p = offer({}).parameters;
  EXPECT_FALSE(p.header_digest || p.data_digest);
  EXPECT_TRUE(p.initial_r2t && p.immediate_data);
  EXPECT_EQ(p.send_segment_bytes_max, 8192u);
  EXPECT_EQ(p.burst_bytes_max, 262144u);
  EXPECT_EQ(p.first_burst_bytes_max, 65536u);
  EXPECT_EQ(p.outstanding_r2t_max, 1u);
}

TEST(NegotiationTest, ResultsReachTheParameters) {
  const SessionParameters p =
      offer({"HeaderDigest=CRC32C", "DataDigest=CRC32C,None", "InitialR2T=No", "ImmediateData=No",
             "MaxRecvDataSegmentLength=131072", "MaxBurstLength=524288", "FirstBurstLength=131072",
             "MaxOutstandingR2T=2"})
          .parameters;
  EXPECT_TRUE(p.header_digest && p.data_digest);
  EXPECT_FALSE(p.initial_r2t || p.immediate_data);
  EXPECT_EQ(p.send_segment_bytes_max, 131072u);
  EXPECT_EQ(p.burst_bytes_max, 524288u);
  EXPECT_EQ(p.first_burst_bytes_max, 131072u);
  EXPECT_EQ(p.outstanding_r2t_max, 2u);
}

TEST(NegotiationTest, FirstBurstNeverExceedsMaxBurstWhateverTheOrder) {
  for (const auto& outcome : {offer({"FirstBurstLength=65536", "MaxBurstLength=4096"}),
                              offer({"MaxBurstLength=4096", "FirstBurstLength=65536"})}) {
    EXPECT_NE(outcome.answer.find("FirstBurstLength=4096"), std::string::npos);
    EXPECT_EQ(outcome.parameters.first_burst_bytes_max, 4096u);
  }
  EXPECT_EQ(offer({"MaxBurstLength=4096"}).parameters.first_burst_bytes_max, 4096u);
}

TEST(NegotiationTest, DiscoveryHasNoDigests) {
  const auto outcome =
      offer({"HeaderDigest=CRC32C,None", "DataDigest=CRC32C"}, NegotiationPhase::kDiscoveryLogin);
  EXPECT_EQ(outcome.answer, "HeaderDigest=None DataDigest=Reject");
  EXPECT_FALSE(outcome.parameters.header_digest || outcome.parameters.data_digest);
}

TEST(NegotiationTest, ARunningSessionChangesOnlyItsSegmentLength) {
  const auto outcome =
      offer({"MaxRecvDataSegmentLength=4096", "MaxBurstLength=1024", "HeaderDigest=CRC32C"},
            NegotiationPhase::kFullFeature);
  EXPECT_EQ(outcome.answer, "MaxBurstLength=Reject HeaderDigest=Reject");
  EXPECT_EQ(outcome.parameters.send_segment_bytes_max, 4096u);
  EXPECT_EQ(outcome.parameters.burst_bytes_max, 262144u);
}

TEST(NegotiationTest, AKeyIsNegotiatedOnce) {
  EXPECT_TRUE(offer({"InitialR2T=No", "InitialR2T=Yes"}).failed);
}

TEST(NegotiationTest, WhatIsRefusedInTheMiddleChangesNothing) {
  const Outcome outcome = offer({"MaxBurstLength=2048", "ImmediateData=No", "MaxBurstLength=4096"});
  EXPECT_TRUE(outcome.failed);
  const SessionParameters before;
  EXPECT_EQ(outcome.parameters.burst_bytes_max, before.burst_bytes_max);
  EXPECT_EQ(outcome.parameters.first_burst_bytes_max, before.first_burst_bytes_max);
  EXPECT_EQ(outcome.parameters.immediate_data, before.immediate_data);
}

}  // namespace
}  // namespace mariner::iscsi
