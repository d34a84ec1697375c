#include "server/iscsi/chap.h"

#include <gtest/gtest.h>

#include <numeric>

namespace mariner::iscsi {
namespace {

std::vector<std::uint8_t> ascending(std::size_t count) {
  std::vector<std::uint8_t> bytes(count);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
  return bytes;
}
// As a value of a key.
std::string hex(std::span<const std::uint8_t> bytes) {
  TextWriter writer;
  writer.add_binary("k", bytes);
  const std::string text = writer.take();
  return text.substr(2, text.size() - 3);
}

TEST(ChapResponse, IsTheDigestOfIdentifierSecretAndChallenge) {
  const auto response = [](ChapAlgorithm algorithm) {
    return hex(chap_response(algorithm, 0x17, "twelve chars", ascending(16)));
  };
  EXPECT_EQ(response(ChapAlgorithm::kMd5), "0x4db7d0c70b374ef5f844c4267e597854");
  EXPECT_EQ(response(ChapAlgorithm::kSha1), "0xe1ca291f415f3d62a9a6afd88147c058482d30f6");
  EXPECT_EQ(response(ChapAlgorithm::kSha256),
            "0x8f23d7090a0725c47cb61e0c7d1d8bb700dc0af60e45ca6c1abe8a192ccc4ec9");
  EXPECT_EQ(response(ChapAlgorithm::kSha3_256),
            "0x22309b474cad3ddf15cf38128661916bffe4c6a8ba61b382b401bfb85ae9eb47");
}

TEST(ChapAlgorithmNumber, KnowsFour) {
  EXPECT_EQ(chap_algorithm("5"), ChapAlgorithm::kMd5);
  EXPECT_EQ(chap_algorithm("8"), ChapAlgorithm::kSha3_256);
  EXPECT_EQ(chap_algorithm("4"), std::nullopt);
  EXPECT_EQ(chap_algorithm("MD5"), std::nullopt);
}

const ChapAccount kAlice{"alice", "twelve chars", "", ""};
const ChapAccount kBob{"bob", "another secret", "mariner", "the mutual one", "account2"};

class ChapTest : public ::testing::Test {
 protected:
  // One request; the answer, or "!" and why not.
  std::string step(const std::vector<std::string>& keys) {
    std::vector<TextPair> pairs;
    for (const std::string& key : keys) {
      const std::size_t equals = key.find('=');
      pairs.push_back(
          {std::string_view(key).substr(0, equals), std::string_view(key).substr(equals + 1)});
    }
    TextWriter answers;
    if (const auto done = chap_.step(pairs, answers); !done) return "!" + done.error().message;
    std::string text = answers.take();
    for (char& c : text) {
      if (c == '\0') c = ' ';
    }
    return text;
  }
  void up_to_challenge(const std::string& algorithm = "7") {
    EXPECT_EQ(step({"AuthMethod=CHAP,None"}), "AuthMethod=CHAP ");
    EXPECT_EQ(step({"CHAP_A=" + algorithm}),
              "CHAP_A=" + algorithm + " CHAP_I=7 CHAP_C=" + hex(challenge_) + " ");
  }
  static std::string response(ChapAlgorithm algorithm, const std::string& secret,
                              std::span<const std::uint8_t> challenge,
                              std::uint8_t identifier = 7) {
    return hex(chap_response(algorithm, identifier, secret, challenge));
  }

  // What is random in reality: identifier and challenge are sevens.
  const std::vector<std::uint8_t> challenge_ = std::vector<std::uint8_t>(32, 7);
  ChapAuthenticator chap_{{kAlice, kBob},
                          [](std::span<std::uint8_t> bytes) { std::ranges::fill(bytes, 7); }};
};

TEST_F(ChapTest, OneWay) {
  EXPECT_FALSE(chap_.satisfied());
  up_to_challenge();
  EXPECT_EQ(step({"CHAP_N=alice",
                  "CHAP_R=" + response(ChapAlgorithm::kSha256, "twelve chars", challenge_)}),
            "");
  EXPECT_TRUE(chap_.satisfied());
}

TEST_F(ChapTest, Mutual) {
  up_to_challenge("8");
  EXPECT_EQ(step({"CHAP_N=bob",
                  "CHAP_R=" + response(ChapAlgorithm::kSha3_256, "another secret", challenge_),
                  "CHAP_I=200", "CHAP_C=" + hex(ascending(24))}),
            "CHAP_N=mariner CHAP_R=" +
                response(ChapAlgorithm::kSha3_256, "the mutual one", ascending(24), 200) + " ");
  EXPECT_TRUE(chap_.satisfied());
  EXPECT_EQ(chap_.account(), "account2");
}

TEST_F(ChapTest, TheFirstAlgorithmThatIsKnownIsTaken) {
  step({"AuthMethod=None,CHAP"});
  EXPECT_EQ(step({"CHAP_A=99,6,5,8"}).substr(0, 9), "CHAP_A=6 ");
}

TEST_F(ChapTest, MethodAndAlgorithmMayComeTogether) {
  EXPECT_EQ(step({"AuthMethod=CHAP", "CHAP_A=5"}).substr(0, 25), "AuthMethod=CHAP CHAP_A=5 ");
}

TEST_F(ChapTest, OtherKeysAreNotItsBusiness) {
  EXPECT_EQ(step({"HeaderDigest=None"}), "");
  EXPECT_FALSE(chap_.handles("HeaderDigest"));
  EXPECT_TRUE(chap_.handles("CHAP_C"));
}

TEST_F(ChapTest, WhatIsRefused) {
  EXPECT_EQ(step({"AuthMethod=None"}), "!AuthMethod: offered None, required CHAP");
  EXPECT_EQ(step({"CHAP_A=5"}), "!CHAP_A: not now");
  EXPECT_EQ(step({"CHAP_N=alice", "CHAP_R=0x00"}), "!CHAP_R: not now");
  EXPECT_EQ(step({"AuthMethod=CHAP", "AuthMethod=CHAP"}), "!AuthMethod is given twice");
  step({"AuthMethod=CHAP"});
  EXPECT_EQ(step({"AuthMethod=CHAP"}), "!AuthMethod: is chosen already");
  EXPECT_EQ(step({"CHAP_A=4"}), "!CHAP_A: offered 4, required one of 8,7,6,5");
  EXPECT_EQ(step({"CHAP_A=5", "CHAP_N=alice", "CHAP_R=0x00"}), "!CHAP_R: before the challenge");
  step({"CHAP_A=5"});
  EXPECT_EQ(step({"CHAP_A=5"}), "!CHAP_A: not now") << "no second try with the same challenge";
  EXPECT_EQ(step({"CHAP_R=0x00"}), "!CHAP_N: not offered, required");
  EXPECT_EQ(step({"CHAP_N=alice"}), "!CHAP_R: not offered, required");
  EXPECT_EQ(step({"CHAP_N=alice", "CHAP_R=zz"}), "!CHAP_R: no binary value");
  EXPECT_EQ(step({"CHAP_N=alice", "CHAP_R=0x00"}), "!CHAP_R: wrong for the user \"alice\"");
  EXPECT_EQ(step({"CHAP_N=e\nve", "CHAP_R=0x00"}), "!CHAP_N: there is no user \"e?ve\" here");
  EXPECT_FALSE(chap_.satisfied());
}

TEST_F(ChapTest, AnothersSecretIsWrong) {
  up_to_challenge();
  EXPECT_EQ(step({"CHAP_N=alice",
                  "CHAP_R=" + response(ChapAlgorithm::kSha256, "another secret", challenge_)}),
            "!CHAP_R: wrong for the user \"alice\"");
}

TEST_F(ChapTest, ATargetThatHasNoProofSaysSo) {
  up_to_challenge();
  EXPECT_EQ(step({"CHAP_N=alice",
                  "CHAP_R=" + response(ChapAlgorithm::kSha256, "twelve chars", challenge_),
                  "CHAP_I=1", "CHAP_C=0x0102"}),
            "!CHAP_C: the target is asked for a proof, but no mutual secret is configured for "
            "\"alice\"");
}

class MutualChapTest : public ChapTest {
 protected:
  std::string asking(const std::vector<std::string>& more) {
    ChapAuthenticator fresh({kBob},
                            [](std::span<std::uint8_t> bytes) { std::ranges::fill(bytes, 7); });
    std::vector<TextPair> pairs;
    TextWriter ignored;
    const std::vector<TextPair> first{{"AuthMethod", "CHAP"}, {"CHAP_A", "7"}};
    EXPECT_TRUE(fresh.step(first, ignored));
    const std::string answer = response(ChapAlgorithm::kSha256, "another secret", challenge_);
    pairs.push_back({"CHAP_N", "bob"});
    pairs.push_back({"CHAP_R", answer});
    for (const std::string& key : more) {
      const std::size_t equals = key.find('=');
      pairs.push_back(
          {std::string_view(key).substr(0, equals), std::string_view(key).substr(equals + 1)});
    }
    TextWriter answers;
    const auto done = fresh.step(pairs, answers);
    return done ? "ok" : done.error().message;
  }
};

TEST_F(MutualChapTest, ChallengesThatAreNone) {
  EXPECT_EQ(asking({"CHAP_I=1",
                    "CHAP_C=0b"
                    "AQID"}),
            "ok")
      << "base64";
  EXPECT_EQ(asking({"CHAP_I=1"}), "CHAP_I and CHAP_C: one without the other");
  EXPECT_EQ(asking({"CHAP_I=256", "CHAP_C=0x01"}), "CHAP_I: expected 0 to 255");
  EXPECT_EQ(asking({"CHAP_I=1", "CHAP_C=0x"}),
            "CHAP_C: expected 1 to 1024 bytes, in hexadecimal or base64");
  EXPECT_EQ(asking({"CHAP_I=1", "CHAP_C=0x" + std::string(2050, '1')}),
            "CHAP_C: expected 1 to 1024 bytes, in hexadecimal or base64");
  EXPECT_EQ(asking({"CHAP_I=1", "CHAP_C=" + hex(challenge_)}),
            "CHAP_C: is the target's own challenge");
}

TEST(ChapAuthenticator, ChallengesDiffer) {
  const auto challenge = [] {
    ChapAuthenticator chap({kAlice});
    TextWriter answers;
    const std::vector<TextPair> pairs{{"AuthMethod", "CHAP"}, {"CHAP_A", "7"}};
    EXPECT_TRUE(chap.step(pairs, answers));
    return answers.take();
  };
  EXPECT_NE(challenge(), challenge());
}

}  // namespace
}  // namespace mariner::iscsi
