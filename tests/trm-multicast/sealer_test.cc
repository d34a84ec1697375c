#include "trm-multicast/sealer.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>
#include <vector>

#include "proto/bytes.h"
#include "tests/trm-multicast/hex.h"

namespace mariner::trm {
namespace {

StreamKey test_key() {
  StreamKey key;
  for (std::size_t i = 0; i < key.key.size(); ++i) key.key[i] = static_cast<std::byte>(i);
  for (std::size_t i = 0; i < key.salt.size(); ++i) key.salt[i] = static_cast<std::byte>(0xa0 + i);
  return key;
}

const DatagramHeader kHeader{.stream = {0xc0ffee42},
                             .kind = DatagramKind::kPayload,
                             .start = {0x0102030405},
                             .length = 24,
                             .offset = 8};
constexpr std::string_view kBody = "track-based log";

std::vector<std::byte> sealed(Sealer& sealer, const DatagramHeader& header = kHeader) {
  std::vector<std::byte> bytes(kBody.size() + kDatagramOverheadBytes);
  sealer.seal(header, as_byte_span(kBody), bytes);
  return bytes;
}

std::string opened(Sealer& sealer, std::span<const std::byte> datagram) {
  const auto parsed = parse(datagram);
  if (!parsed) return "not one";
  std::string body(parsed->body.size(), '?');
  const bool good = sealer.open(*parsed, std::as_writable_bytes(std::span(body)));
  return good ? body : "refused";
}

// Made by another implementation of AES-GCM.
TEST(Sealer, EncryptedDatagramHasTheseBytes) {
  Sealer sealer(test_key(), true);
  EXPECT_EQ(to_hex(sealed(sealer)),
            "1117000042eeffc0050403020100000008000000be074af3da6c17331085119a1594cf"
            "dfaf0fb28ac6f86f4b28e313");
}

TEST(Sealer, AuthenticatedDatagramHasTheseBytes) {
  Sealer sealer(test_key(), false);
  EXPECT_EQ(to_hex(sealed(sealer)),
            "1117000042eeffc0050403020100000008000000747261636b2d6261736564206c6f67"
            "cf78b9ab30f9e5b29ccad24a");
}

TEST(Sealer, OpensWhatItHasSealedAgainAndAgain) {
  for (const bool encrypt : {true, false}) {
    Sealer sender(test_key(), encrypt);
    Sealer receiver(test_key(), encrypt);
    for (std::uint32_t offset = 0; offset < 9; ++offset) {
      DatagramHeader header = kHeader;
      header.offset = offset;
      const auto datagram = sealed(sender, header);
      EXPECT_EQ(opened(receiver, datagram), kBody);
      EXPECT_EQ(opened(receiver, datagram), kBody);  // it remembers nothing
    }
  }
}

TEST(Sealer, RefusesWhateverBitWasChanged) {
  for (const bool encrypt : {true, false}) {
    Sealer sealer(test_key(), encrypt);
    const auto good = sealed(sealer);
    int refused = 0;
    for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
      auto bad = good;
      bad[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
      const std::string body = opened(sealer, bad);
      EXPECT_NE(body, kBody) << "bit " << bit;
      if (body == "refused") ++refused;
    }
    EXPECT_GT(refused, static_cast<int>(kBody.size() * 8 + kDatagramTagBytes * 8));
    EXPECT_EQ(opened(sealer, good), kBody);
  }
}

TEST(Sealer, RefusesOtherKeysAndSalts) {
  Sealer sealer(test_key(), true);
  const auto good = sealed(sealer);
  StreamKey other_key = test_key();
  other_key.key[3] ^= std::byte{1};
  StreamKey other_salt = test_key();
  other_salt.salt[3] ^= std::byte{1};
  Sealer with_other_key(other_key, true);
  Sealer with_other_salt(other_salt, true);
  EXPECT_EQ(opened(with_other_key, good), "refused");
  EXPECT_EQ(opened(with_other_salt, good), "refused");
}

TEST(Sealer, KeysAreNeverTheSame) {
  std::set<std::string> keys;
  for (int i = 0; i < 100; ++i) {
    const auto key = StreamKey::generate();
    ASSERT_TRUE(key.has_value());
    keys.insert(to_hex(key->key) + to_hex(key->salt));
  }
  EXPECT_EQ(keys.size(), 100u);
}

}  // namespace
}  // namespace mariner::trm
