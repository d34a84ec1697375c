#include "server/iscsi/login.h"

#include <gtest/gtest.h>

#include "tests/server/iscsi/iscsi_testing.h"

namespace mariner::iscsi {
namespace {

class TestAdmission final : public LoginAdmission {
 public:
  std::optional<std::uint16_t> admit(const LoginIdentity&, std::uint16_t tsih,
                                     LoginRefusal& refusal) override {
    joined = tsih;
    if (full) refusal = {.status = LoginStatus::kOutOfResources, .message = "full", .address = {}};
    return full ? std::nullopt : std::optional<std::uint16_t>(42);
  }
  [[nodiscard]] std::optional<SessionParameters> parameters_of(std::uint16_t tsih) const override {
    if (tsih != 7) return std::nullopt;
    SessionParameters parameters;
    parameters.burst_bytes_max = 4096;
    parameters.connections_max = 2;
    parameters.data_digest = true;
    return parameters;
  }

  [[nodiscard]] std::chrono::nanoseconds authentication_wait() const override { return wait; }

  bool full = false;
  std::uint16_t joined = 0;
  std::chrono::nanoseconds wait{0};
};

class LoginTest : public testing::Test {
 protected:
  Login::Reply step(const InitiatorPdu& pdu) {
    return login.step(parse_login_request(pdu.bhs), pdu.data);
  }
  Login::Reply step(std::string_view text, std::uint8_t flags = kOperationalToFull) {
    return step(login_pdu(text, flags));
  }
  void expect_refusal(const Login::Reply& reply, LoginStatus status) {
    EXPECT_EQ(reply.header.status, status);
    EXPECT_FALSE(reply.header.transit);
    EXPECT_EQ(login.state(), Login::State::kFailed);
    EXPECT_EQ(login.refusal().status, status);
    EXPECT_FALSE(login.refusal().message.empty());
  }

  const std::string host = keys({"InitiatorName=iqn.2026-11.test:host"});
  const std::string names = host + keys({"TargetName=iqn.2026-11.org.mariner:disk"});
  NegotiationLimits limits;
  TestDirectory directory;
  TestAdmission admission;
  Login login{{.limits = limits,
               .portal_group = 1,
               .portal = "192.0.2.1:3260",
               .directory = directory,
               .admission = admission}};
};

// RFC 7143 11.13.5 and 13.8: where to, without a portal group tag.
TEST_F(LoginTest, ATargetThatIsElsewhere) {
  directory.elsewhere = {.address = "[2001:db8::7]:3261", .permanent = false};
  const auto reply = step(names);
  expect_refusal(reply, LoginStatus::kMovedTemporarily);
  EXPECT_EQ(reply.text, keys({"TargetAddress=[2001:db8::7]:3261"}));
  EXPECT_EQ(directory.came, "192.0.2.1:3260") << "the portal that it has come through";
}

TEST_F(LoginTest, ATargetThatIsElsewhereForEver) {
  directory.elsewhere = {.address = "192.0.2.9:3260", .permanent = true};
  expect_refusal(step(names), LoginStatus::kMovedPermanently);
}

TEST_F(LoginTest, WhoComesWhereTheTargetIsToBeUsedIsServed) {
  directory.elsewhere = {.address = "192.0.2.1:3260", .permanent = false};
  EXPECT_EQ(step(names).header.status, LoginStatus::kSuccess);
}

TEST_F(LoginTest, ARedirectionTellsNobodyWhoMayNotUseTheTarget) {
  directory.elsewhere = {.address = "192.0.2.9:3260", .permanent = false};
  const auto reply = step(
      keys({"InitiatorName=iqn.2026-11.test:stranger", "TargetName=iqn.2026-11.org.mariner:disk"}));
  expect_refusal(reply, LoginStatus::kAuthorizationFailure);
  EXPECT_EQ(reply.text, "");
}

TEST_F(LoginTest, OneRequestSuffices) {
  const auto reply = step(names + keys({"HeaderDigest=CRC32C"}));
  EXPECT_EQ(login.state(), Login::State::kDone);
  EXPECT_EQ(reply.header.status, LoginStatus::kSuccess);
  EXPECT_TRUE(reply.header.transit);
  EXPECT_EQ(reply.header.current_stage, 1);
  EXPECT_EQ(reply.header.next_stage, 3);
  EXPECT_EQ(reply.header.tsih, 42);
  EXPECT_EQ(reply.text, keys({"TargetPortalGroupTag=1", "HeaderDigest=CRC32C",
                              "MaxRecvDataSegmentLength=262144"}));
  EXPECT_EQ(login.identity().initiator, "iqn.2026-11.test:host");
  EXPECT_EQ(login.identity().device, directory.device);
  EXPECT_EQ(login.identity().parameters.receive_segment_bytes_max, 262144u);
}

TEST_F(LoginTest, SecurityThenOperational) {
  auto reply = step(names + keys({"AuthMethod=CHAP,None"}), kSecurityToOperational);
  EXPECT_TRUE(reply.header.transit);
  EXPECT_EQ(reply.header.next_stage, 1);
  EXPECT_EQ(reply.header.tsih, 0);
  EXPECT_EQ(reply.text, keys({"TargetPortalGroupTag=1", "AuthMethod=None"}));
  reply = step(keys({"InitialR2T=No"}), 1 << 2);
  EXPECT_FALSE(reply.header.transit);
  EXPECT_EQ(reply.text, keys({"InitialR2T=No", "MaxRecvDataSegmentLength=262144"}));
  reply = step("", kOperationalToFull);
  EXPECT_TRUE(reply.text.empty());
  EXPECT_EQ(login.state(), Login::State::kDone);
}

TEST_F(LoginTest, SecurityMayLeadToFullFeatureAtOnce) {
  const auto reply = step(names, kSecurityToFull);
  EXPECT_EQ(login.state(), Login::State::kDone);
  EXPECT_NE(reply.text.find("MaxRecvDataSegmentLength"), std::string::npos);
}

TEST_F(LoginTest, TextMayBeContinued) {
  const std::string text = names + keys({"InitialR2T=No"});
  const auto reply = step(std::string_view(text).substr(0, 20), 0x40 | (1 << 2));
  EXPECT_FALSE(reply.header.transit);
  EXPECT_TRUE(reply.text.empty());
  EXPECT_EQ(login.state(), Login::State::kInProgress);
  step(std::string_view(text).substr(20));
  EXPECT_EQ(login.state(), Login::State::kDone);
  EXPECT_FALSE(login.identity().parameters.initial_r2t);
}

TEST_F(LoginTest, NamesCompareInLowerCase) {
  step(host + keys({"TargetName=IQN.2026-11.org.Mariner:Disk"}));
  EXPECT_EQ(login.state(), Login::State::kDone);
}

TEST_F(LoginTest, DiscoveryNeedsNoTarget) {
  const auto reply = step(host + keys({"SessionType=Discovery", "HeaderDigest=CRC32C,None"}));
  EXPECT_EQ(login.state(), Login::State::kDone);
  EXPECT_TRUE(login.identity().discovery);
  EXPECT_EQ(login.identity().device, nullptr);
  EXPECT_EQ(reply.text.find("TargetPortalGroupTag"), std::string::npos);
  EXPECT_NE(reply.text.find("HeaderDigest=None"), std::string::npos);
}

TEST_F(LoginTest, MissingInitiatorName) {
  expect_refusal(step(keys({"TargetName=x"})), LoginStatus::kMissingParameter);
}
TEST_F(LoginTest, MissingTargetName) { expect_refusal(step(host), LoginStatus::kMissingParameter); }
TEST_F(LoginTest, UnknownTarget) {
  expect_refusal(step(host + keys({"TargetName=iqn.none"})), LoginStatus::kNotFound);
  EXPECT_EQ(login.refusal().message, "TargetName: offered iqn.none: there is no such target");
}
TEST_F(LoginTest, ForbiddenTarget) {
  expect_refusal(step(keys({"InitiatorName=iqn.2026-11.test:stranger",
                            "TargetName=iqn.2026-11.org.mariner:disk"})),
                 LoginStatus::kAuthorizationFailure);
}
TEST_F(LoginTest, UnavailableTarget) {
  expect_refusal(step(host + keys({"TargetName=iqn.2026-11.org.mariner:importing"})),
                 LoginStatus::kServiceUnavailable);
}
TEST_F(LoginTest, UnknownSessionType) {
  expect_refusal(step(names + keys({"SessionType=Other"})), LoginStatus::kSessionTypeNotSupported);
}
TEST_F(LoginTest, AuthenticationThatWeDoNotHave) {
  expect_refusal(step(names + keys({"AuthMethod=KRB5"}), kSecurityToOperational),
                 LoginStatus::kAuthenticationFailure);
}
TEST_F(LoginTest, VersionThatWeDoNotHave) {
  InitiatorPdu pdu = login_pdu(names, kOperationalToFull);
  pdu.bhs[2] = pdu.bhs[3] = std::byte{1};
  expect_refusal(step(pdu), LoginStatus::kUnsupportedVersion);
}
TEST_F(LoginTest, AnotherConnectionHasWhatWasAgreedForItsSession) {
  step(login_pdu(names + keys({"HeaderDigest=CRC32C"}), kOperationalToFull, 1, 7));
  EXPECT_EQ(login.state(), Login::State::kDone);
  EXPECT_EQ(admission.joined, 7);
  const SessionParameters& parameters = login.identity().parameters;
  EXPECT_EQ(parameters.burst_bytes_max, 4096u);
  EXPECT_TRUE(parameters.header_digest);
  EXPECT_FALSE(parameters.data_digest) << "its own, which it did not ask for";
}
TEST_F(LoginTest, NoSuchSession) {
  expect_refusal(step(login_pdu(names, kOperationalToFull, 1, 8)),
                 LoginStatus::kSessionDoesNotExist);
}
TEST_F(LoginTest, NoRoomForASession) {
  admission.full = true;
  expect_refusal(step(names), LoginStatus::kOutOfResources);
}
TEST_F(LoginTest, ContinuedTransition) {
  expect_refusal(step(names, 0xc0 | (1 << 2) | 3), LoginStatus::kInitiatorError);
}
TEST_F(LoginTest, TransitionBackwards) {
  expect_refusal(step(names, 0x80 | (1 << 2) | 0), LoginStatus::kInitiatorError);
}
TEST_F(LoginTest, TransitionToTheReservedStage) {
  expect_refusal(step(names, 0x80 | (1 << 2) | 2), LoginStatus::kInitiatorError);
}
TEST_F(LoginTest, BeginningInTheReservedStage) {
  expect_refusal(step(names, 2 << 2), LoginStatus::kInitiatorError);
}
TEST_F(LoginTest, StageThatWasNotAgreed) {
  step(names, 0);
  expect_refusal(step("", 1 << 2), LoginStatus::kInitiatorError);
}
TEST_F(LoginTest, ChangedIsid) {
  step(names, 0);
  InitiatorPdu pdu = login_pdu("", 0);
  pdu.bhs[9] = std::byte{9};
  expect_refusal(step(pdu), LoginStatus::kInvalidDuringLogin);
}
TEST_F(LoginTest, TextWithoutEnd) {
  expect_refusal(step("InitiatorName=iqn"), LoginStatus::kInitiatorError);
}
TEST_F(LoginTest, TextWithoutBound) {
  InitiatorPdu pdu = login_pdu(std::string(8192, 'a'), 0x40);
  for (std::size_t i = 0; i < kTextBytesMax / 8192; ++i) {
    ASSERT_EQ(step(pdu).header.status, LoginStatus::kSuccess);
  }
  expect_refusal(step(pdu), LoginStatus::kInitiatorError);
}
TEST_F(LoginTest, NamesThatWouldSpoilALog) {
  expect_refusal(step(keys({"InitiatorName=iqn.x\nroot logged in", "TargetName=x"})),
                 LoginStatus::kInitiatorError);
}
// RFC 7143 4.2.7. What is kept of an initiator could not be read again.
TEST_F(LoginTest, AnInitiatorsNameThatIsNoUtf8) {
  expect_refusal(step(keys({"InitiatorName=iqn.x\xFF", "TargetName=iqn.2026-11.org.mariner:disk"})),
                 LoginStatus::kInitiatorError);
  EXPECT_EQ(login.refusal().message, "InitiatorName: no iSCSI name");
}
TEST_F(LoginTest, ATargetsNameThatIsNoUtf8) {
  expect_refusal(step(host + keys({"TargetName=iqn.\xC3"})), LoginStatus::kInitiatorError);
}
TEST_F(LoginTest, ANameThatIsUtf8) {
  step(
      keys({"InitiatorName=iqn.B\xC3\xBC"
            "cher",
            "TargetName=iqn.2026-11.org.mariner:disk"}));
  EXPECT_EQ(login.state(), Login::State::kDone);
  EXPECT_EQ(login.identity().initiator,
            "iqn.b\xC3\xBC"
            "cher");
}

// RFC 7143 12.1.3. The digest's own tests are in chap_test.cc.
class ChapLoginTest : public LoginTest {
 protected:
  ChapLoginTest() { directory.chap_accounts = {{"alice", "twelve chars", "", ""}}; }
  // From the challenge in an answer, what alice responds.
  static std::string response_to(const std::string& text) {
    const auto value = [&](const std::string& key) {
      const std::size_t from = text.find(key + "=") + key.size() + 1;
      return text.substr(from, text.find('\0', from) - from);
    };
    TextWriter writer;
    writer.add_binary("CHAP_R",
                      chap_response(ChapAlgorithm::kSha256,
                                    static_cast<std::uint8_t>(*parse_number(value("CHAP_I"))),
                                    "twelve chars", *parse_binary(value("CHAP_C"), 1024)));
    return writer.take();
  }
};

TEST_F(ChapLoginTest, TheStageIsLeftWhenAuthenticationIsDone) {
  auto reply = step(names + keys({"AuthMethod=CHAP,None"}), kSecurityToOperational);
  EXPECT_EQ(reply.header.status, LoginStatus::kSuccess);
  EXPECT_FALSE(reply.header.transit) << "not yet";
  EXPECT_EQ(reply.text, keys({"TargetPortalGroupTag=1", "AuthMethod=CHAP"}));
  reply = step(keys({"CHAP_A=7,5"}), 0);
  const std::string response = response_to(reply.text);
  reply = step(keys({"CHAP_N=alice"}) + response, kSecurityToOperational);
  EXPECT_TRUE(reply.header.transit);
  EXPECT_EQ(reply.header.next_stage, 1);
  (void)step("", kOperationalToFull);
  EXPECT_EQ(login.state(), Login::State::kDone);
}

TEST_F(ChapLoginTest, TheSecurityStageCannotBeSkipped) {
  expect_refusal(step(names), LoginStatus::kAuthenticationFailure);
}

TEST_F(ChapLoginTest, NoneIsNotEnough) {
  expect_refusal(step(names + keys({"AuthMethod=None"}), kSecurityToOperational),
                 LoginStatus::kAuthenticationFailure);
}

TEST_F(ChapLoginTest, AWrongResponseIsRefused) {
  (void)step(names + keys({"AuthMethod=CHAP"}), 0);
  (void)step(keys({"CHAP_A=7"}), 0);
  expect_refusal(step(keys({"CHAP_N=alice", "CHAP_R=0x00"}), kSecurityToOperational),
                 LoginStatus::kAuthenticationFailure);
}

TEST_F(ChapLoginTest, WhoHasFailedTooOftenWaits) {
  admission.wait = std::chrono::milliseconds(1500);
  expect_refusal(step(names + keys({"AuthMethod=CHAP"}), 0), LoginStatus::kServiceUnavailable);
  EXPECT_NE(login.refusal().message.find("try again in 2 s"), std::string::npos);
}

TEST_F(ChapLoginTest, DiscoveryAsksForItToo) {
  expect_refusal(step(host + keys({"SessionType=Discovery"})), LoginStatus::kAuthenticationFailure);
}

}  // namespace
}  // namespace mariner::iscsi
