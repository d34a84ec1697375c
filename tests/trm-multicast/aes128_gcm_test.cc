#include "trm-multicast/aes128_gcm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "proto/bytes.h"
#include "tests/trm-multicast/hex.h"

namespace mariner::trm {
namespace {

using Bytes = std::vector<std::byte>;

struct Sealed {
  Bytes text;
  std::array<std::byte, Aes128Gcm::kTagBytes> tag{};
  friend bool operator==(const Sealed&, const Sealed&) = default;
};

Sealed seal(Aes128Gcm& gcm, const Aes128Gcm::Nonce& nonce, const Bytes& associated,
            const Bytes& text) {
  Sealed sealed{.text = Bytes(text.size())};
  gcm.seal(nonce, associated, text, sealed.text, sealed.tag);
  return sealed;
}

std::array<std::byte, 16> some_key() {
  std::array<std::byte, 16> key;
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::byte>(3 * i + 1);
  return key;
}

using Make = std::unique_ptr<Aes128Gcm> (*)(Aes128Gcm::Key);

class Aes128GcmTest : public testing::TestWithParam<Make> {
 protected:
  void SetUp() override {
    gcm_ = GetParam()(key_);
    ASSERT_TRUE(gcm_);
  }
  Bytes random(std::size_t size) {
    Bytes bytes(size);
    std::ranges::generate(bytes, [this] { return static_cast<std::byte>(random_()); });
    return bytes;
  }

  const std::array<std::byte, 16> key_ = some_key();
  std::unique_ptr<Aes128Gcm> gcm_;
  std::mt19937 random_{1};
};

// Test case 4 of the algorithm's submission to NIST ("The Galois/Counter Mode of Operation",
// appendix B), its tag cut to 96 bits.
TEST_P(Aes128GcmTest, GivesTheBytesOfTheStandardsExample) {
  const auto key = from_hex("feffe9928665731c6d6a8f9467308308");
  const auto iv = from_hex("cafebabefacedbaddecaf888");
  Aes128Gcm::Nonce nonce;
  std::ranges::copy(iv, nonce.begin());
  const auto gcm = GetParam()(std::span(key).first<16>());
  const Sealed sealed =
      seal(*gcm, nonce, from_hex("feedfacedeadbeeffeedfacedeadbeefabaddad2"),
           from_hex("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
                    "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"));
  EXPECT_EQ(to_hex(sealed.text),
            "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
            "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091");
  EXPECT_EQ(to_hex(sealed.tag), "5bc94fbc3221a5db94fae95a");
}

TEST_P(Aes128GcmTest, GivesWhatOpensslGivesAndOpensIt) {
  const auto openssl = aes128_gcm_of_openssl(key_);
  for (int i = 0; i < 2000; ++i) {
    Aes128Gcm::Nonce nonce{};
    nonce[i % 12] = static_cast<std::byte>(i);
    const Bytes associated = random(random_() % 4 == 0 ? random_() % 3000 : random_() % 64);
    const Bytes text = random(random_() % 8 == 0 ? 0 : random_() % 9000);
    const Sealed sealed = seal(*gcm_, nonce, associated, text);
    ASSERT_EQ(sealed, seal(*openssl, nonce, associated, text)) << i;
    Bytes opened(text.size());
    ASSERT_TRUE(gcm_->open(nonce, associated, sealed.text, opened, sealed.tag)) << i;
    ASSERT_EQ(opened, text) << i;
    Sealed changed = sealed;
    auto& place = random_() % 2 == 0 || text.empty() ? changed.tag[random_() % changed.tag.size()]
                                                     : changed.text[random_() % text.size()];
    place ^= static_cast<std::byte>(1 << (random_() % 8));
    ASSERT_FALSE(gcm_->open(nonce, associated, changed.text, opened, changed.tag)) << i;
  }
}

TEST_P(Aes128GcmTest, SealsInPlace) {
  const Bytes text = random(1344);
  const Sealed apart = seal(*gcm_, {}, {}, text);
  Sealed in_place{.text = text};
  gcm_->seal({}, {}, in_place.text, in_place.text, in_place.tag);
  EXPECT_EQ(in_place, apart);
}

// What the fastest is where the other one is not to be had.
std::vector<Make> those_of_this_machine() {
  std::vector<Make> all{&aes128_gcm_of_openssl};
  if (aes128_gcm_of_ipsec_mb(some_key())) all.push_back(&aes128_gcm_of_ipsec_mb);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Of, Aes128GcmTest, testing::ValuesIn(those_of_this_machine()),
                         [](const testing::TestParamInfo<Make>& each) {
                           return each.index == 0 ? "Openssl" : "IpsecMb";
                         });

#ifdef __x86_64__
TEST(Aes128Gcm, TheFastOneIsThereWhereTheProcessorHasWhatItNeeds) {
  if (__builtin_cpu_supports("aes") == 0 || __builtin_cpu_supports("pclmul") == 0) return;
  EXPECT_NE(aes128_gcm_of_ipsec_mb(some_key()), nullptr);
}
#endif

}  // namespace
}  // namespace mariner::trm
