#include "trm-multicast/aes128_gcm.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>

#include "proto/check.h"

#ifdef MARINER_HAS_IPSEC_MB
#include <intel-ipsec-mb.h>
#endif

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

#ifdef MARINER_HAS_IPSEC_MB

// The library's table of functions for this processor, which notes errors in itself: one for each
// thread. Null: it has none.
IMB_MGR* manager() {
  static thread_local const std::unique_ptr<IMB_MGR, void (*)(IMB_MGR*)> mine = [] {
    std::unique_ptr<IMB_MGR, void (*)(IMB_MGR*)> made(alloc_mb_mgr(0), free_mb_mgr);
    IMB_ARCH arch = IMB_ARCH_NONE;
    if (made) init_mb_mgr_auto(made.get(), &arch);
    // (Without AES instructions the library has a slow emulation.)
    if (arch == IMB_ARCH_NONE || arch == IMB_ARCH_NOAESNI) made.reset();
    return made;
  }();
  return mine.get();
}

class IpsecMbGcm final : public Aes128Gcm {
 public:
  explicit IpsecMbGcm(Key key) { IMB_AES128_GCM_PRE(manager(), key.data(), &key_); }
  ~IpsecMbGcm() override { OPENSSL_cleanse(&key_, sizeof(key_)); }
  IpsecMbGcm(const IpsecMbGcm&) = delete;
  IpsecMbGcm& operator=(const IpsecMbGcm&) = delete;

  void seal(const Nonce& nonce, std::span<const std::byte> associated,
            std::span<const std::byte> text, std::span<std::byte> to, Tag tag) override {
    CHECK(to.size() == text.size());
    IMB_AES128_GCM_ENC(manager(), &key_, &context_, out(to), in(text), text.size(), in(nonce),
                       in(associated), associated.size(), out(tag), tag.size());
  }

  bool open(const Nonce& nonce, std::span<const std::byte> associated,
            std::span<const std::byte> text, std::span<std::byte> to,
            std::span<const std::byte, kTagBytes> tag) override {
    CHECK(to.size() == text.size());
    std::array<std::byte, kTagBytes> seen;
    IMB_AES128_GCM_DEC(manager(), &key_, &context_, out(to), in(text), text.size(), in(nonce),
                       in(associated), associated.size(), out(seen), seen.size());
    return CRYPTO_memcmp(seen.data(), tag.data(), seen.size()) == 0;
  }

 private:
  // (The library demands it.)
  alignas(64) gcm_key_data key_;
  alignas(64) gcm_context_data context_;
};

#endif

}  // namespace

std::unique_ptr<Aes128Gcm> aes128_gcm_of_openssl(Aes128Gcm::Key key) {
  return std::make_unique<OpensslGcm>(key);
}

#ifdef MARINER_HAS_IPSEC_MB
std::unique_ptr<Aes128Gcm> aes128_gcm_of_ipsec_mb(Aes128Gcm::Key key) {
  if (manager() == nullptr) return nullptr;
  return std::make_unique<IpsecMbGcm>(key);
}
#else
std::unique_ptr<Aes128Gcm> aes128_gcm_of_ipsec_mb(Aes128Gcm::Key /*key*/) { return nullptr; }
#endif

std::unique_ptr<Aes128Gcm> Aes128Gcm::make(Key key) {
  if (auto fast = aes128_gcm_of_ipsec_mb(key)) return fast;
  return aes128_gcm_of_openssl(key);
}

}  // namespace mariner::trm
