#include "trm-multicast/sealer.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <cstring>

#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::trm {
namespace {

const unsigned char* in(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* out(std::span<std::byte> bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}
int size_of(std::span<const std::byte> bytes) { return static_cast<int>(bytes.size()); }

void free_context(evp_cipher_ctx_st* context) { EVP_CIPHER_CTX_free(context); }

}  // namespace

Result<StreamKey> StreamKey::generate() {
  StreamKey key;
  if (RAND_bytes(out(key.key), static_cast<int>(key.key.size())) != 1 ||
      RAND_bytes(out(key.salt), static_cast<int>(key.salt.size())) != 1) {
    return Error{ErrorCode::kIo, "no random bytes for a multicast stream's key can be had"};
  }
  return key;
}

Sealer::Sealer(const StreamKey& key, bool encrypt)
    : salt_(key.salt),
      encrypt_(encrypt),
      sealing_(EVP_CIPHER_CTX_new(), free_context),
      opening_(EVP_CIPHER_CTX_new(), free_context) {
  // The key's schedule is made here, once; each datagram then sets its nonce alone.
  CHECK(sealing_ && opening_);
  const EVP_CIPHER* const cipher = EVP_aes_128_gcm();
  const unsigned char* const bytes = in(key.key);
  CHECK(EVP_EncryptInit_ex(sealing_.get(), cipher, nullptr, bytes, nullptr) == 1);
  CHECK(EVP_DecryptInit_ex(opening_.get(), cipher, nullptr, bytes, nullptr) == 1);
}

Sealer::~Sealer() = default;

Sealer::Nonce Sealer::nonce(Position position) const {
  Nonce nonce;
  std::memcpy(nonce.data(), salt_.data(), salt_.size());
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
  EVP_CIPHER_CTX* const context = sealing_.get();
  int written = 0;
  bool good = EVP_EncryptInit_ex(context, nullptr, nullptr, nullptr,
                                 nonce(header.position()).data()) == 1 &&
              EVP_EncryptUpdate(context, nullptr, &written, in(head), size_of(head)) == 1;
  if (encrypt_) {
    good = good && EVP_EncryptUpdate(context, out(place), &written, in(body), size_of(body)) == 1;
  } else {
    std::memcpy(place.data(), body.data(), body.size());
    good = good && EVP_EncryptUpdate(context, nullptr, &written, in(body), size_of(body)) == 1;
  }
  std::array<unsigned char, 16> nothing_left;
  good = good && EVP_EncryptFinal_ex(context, nothing_left.data(), &written) == 1 &&
         EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, kDatagramTagBytes,
                             to.last(kDatagramTagBytes).data()) == 1;
  CHECK(good);
}

bool Sealer::open(const SealedDatagram& datagram, std::span<std::byte> to) {
  CHECK(to.size() == datagram.body.size());
  EVP_CIPHER_CTX* const context = opening_.get();
  int written = 0;
  std::array<unsigned char, kDatagramTagBytes> tag;
  std::memcpy(tag.data(), datagram.tag.data(), tag.size());
  CHECK(EVP_DecryptInit_ex(context, nullptr, nullptr, nullptr,
                           nonce(datagram.header.position()).data()) == 1);
  CHECK(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, kDatagramTagBytes, tag.data()) == 1);
  CHECK(EVP_DecryptUpdate(context, nullptr, &written, in(datagram.header_bytes),
                          size_of(datagram.header_bytes)) == 1);
  CHECK(EVP_DecryptUpdate(context, encrypt_ ? out(to) : nullptr, &written, in(datagram.body),
                          size_of(datagram.body)) == 1);
  std::array<unsigned char, 16> nothing_left;
  if (EVP_DecryptFinal_ex(context, nothing_left.data(), &written) != 1) return false;
  if (!encrypt_) std::memcpy(to.data(), datagram.body.data(), datagram.body.size());
  return true;
}

}  // namespace mariner::trm
