#include "trm-multicast/sealer.h"

#include <openssl/rand.h>

#include <cstring>

#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::trm {
namespace {

static_assert(Aes128Gcm::kTagBytes == kDatagramTagBytes);

bool random(std::span<std::byte> to) {
  return RAND_bytes(reinterpret_cast<unsigned char*>(to.data()), static_cast<int>(to.size())) == 1;
}

}  // namespace

Result<StreamKey> StreamKey::generate() {
  StreamKey key;
  if (!random(key.key) || !random(key.salt)) {
    return Error{ErrorCode::kIo, "no random bytes for a multicast stream's key can be had"};
  }
  return key;
}

Sealer::Sealer(const StreamKey& key, bool encrypt)
    : salt_(key.salt), encrypt_(encrypt), gcm_(Aes128Gcm::make(key.key)) {}

Aes128Gcm::Nonce Sealer::nonce(Position position) const {
  Aes128Gcm::Nonce nonce;
  std::ranges::copy(salt_, nonce.begin());
  store_le(nonce.data() + salt_.size(), position.value);
  return nonce;
}

void Sealer::seal(const DatagramHeader& header, std::span<const std::byte> body,
                  std::span<std::byte> to) {
  CHECK(!body.empty() && body.size() <= header.length - header.offset);
  CHECK(to.size() == body.size() + kDatagramOverheadBytes);
  const DatagramHeaderBytes head = pack(header);
  std::memcpy(to.data(), head.data(), head.size());
  const std::span<std::byte> place = to.subspan(kDatagramHeaderBytes, body.size());
  const auto tag = to.last<kDatagramTagBytes>();
  const Aes128Gcm::Nonce once = nonce(header.position());
  if (encrypt_) return gcm_->seal(once, head, body, place, tag);
  std::memcpy(place.data(), body.data(), body.size());
  gcm_->seal(once, to.first(kDatagramHeaderBytes + body.size()), {}, {}, tag);
}

bool Sealer::open(const SealedDatagram& datagram, std::span<std::byte> to) {
  const auto [header, head, body, tag] = datagram;
  CHECK(to.size() == body.size() && head.data() + head.size() == body.data());
  const auto expected = tag.first<kDatagramTagBytes>();
  const Aes128Gcm::Nonce once = nonce(header.position());
  if (encrypt_) return gcm_->open(once, head, body, to, expected);
  if (!gcm_->open(once, {head.data(), head.size() + body.size()}, {}, {}, expected)) return false;
  std::memcpy(to.data(), body.data(), body.size());
  return true;
}

}  // namespace mariner::trm
