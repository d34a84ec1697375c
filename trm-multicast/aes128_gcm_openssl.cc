#include <openssl/evp.h>

#include <algorithm>

#include "proto/check.h"
#include "trm-multicast/aes128_gcm.h"

namespace mariner::trm {
namespace {

const unsigned char* in(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* out(std::span<std::byte> bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}
int size_of(std::span<const std::byte> bytes) { return static_cast<int>(bytes.size()); }

void free_context(EVP_CIPHER_CTX* context) { EVP_CIPHER_CTX_free(context); }

class OpensslGcm final : public Aes128Gcm {
 public:
  // The key's schedule is made here, once; each message then sets its nonce alone.
  explicit OpensslGcm(Key key)
      : sealing_(EVP_CIPHER_CTX_new(), free_context), opening_(EVP_CIPHER_CTX_new(), free_context) {
    CHECK(sealing_ && opening_);
    const EVP_CIPHER* const cipher = EVP_aes_128_gcm();
    CHECK(EVP_EncryptInit_ex(sealing_.get(), cipher, nullptr, in(key), nullptr) == 1);
    CHECK(EVP_DecryptInit_ex(opening_.get(), cipher, nullptr, in(key), nullptr) == 1);
  }

  void seal(const Nonce& nonce, std::span<const std::byte> associated,
            std::span<const std::byte> text, std::span<std::byte> to, Tag tag) override {
    CHECK(to.size() == text.size());
    EVP_CIPHER_CTX* const context = sealing_.get();
    int written = 0;
    CHECK(EVP_EncryptInit_ex(context, nullptr, nullptr, nullptr, in(nonce)) == 1);
    CHECK(associated.empty() ||
          EVP_EncryptUpdate(context, nullptr, &written, in(associated), size_of(associated)) == 1);
    CHECK(text.empty() ||
          EVP_EncryptUpdate(context, out(to), &written, in(text), size_of(text)) == 1);
    std::array<unsigned char, 16> nothing_left;
    CHECK(EVP_EncryptFinal_ex(context, nothing_left.data(), &written) == 1);
    CHECK(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, kTagBytes, tag.data()) == 1);
  }

  bool open(const Nonce& nonce, std::span<const std::byte> associated,
            std::span<const std::byte> text, std::span<std::byte> to,
            std::span<const std::byte, kTagBytes> tag) override {
    CHECK(to.size() == text.size());
    EVP_CIPHER_CTX* const context = opening_.get();
    int written = 0;
    std::array<std::byte, kTagBytes> expected;
    std::ranges::copy(tag, expected.begin());
    CHECK(EVP_DecryptInit_ex(context, nullptr, nullptr, nullptr, in(nonce)) == 1);
    CHECK(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, kTagBytes, expected.data()) == 1);
    CHECK(associated.empty() ||
          EVP_DecryptUpdate(context, nullptr, &written, in(associated), size_of(associated)) == 1);
    CHECK(text.empty() ||
          EVP_DecryptUpdate(context, out(to), &written, in(text), size_of(text)) == 1);
    std::array<unsigned char, 16> nothing_left;
    return EVP_DecryptFinal_ex(context, nothing_left.data(), &written) == 1;
  }

 private:
  using Context = std::unique_ptr<EVP_CIPHER_CTX, void (*)(EVP_CIPHER_CTX*)>;
  Context sealing_;
  Context opening_;
};

}  // namespace

std::unique_ptr<Aes128Gcm> aes128_gcm_of_openssl(Aes128Gcm::Key key) {
  return std::make_unique<OpensslGcm>(key);
}

std::unique_ptr<Aes128Gcm> Aes128Gcm::make(Key key) {
  if (auto fast = aes128_gcm_of_ipsec_mb(key)) return fast;
  return aes128_gcm_of_openssl(key);
}

}  // namespace mariner::trm
