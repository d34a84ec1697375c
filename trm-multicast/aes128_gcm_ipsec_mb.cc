#include "trm-multicast/aes128_gcm.h"

#ifdef MARINER_HAS_IPSEC_MB

#include <intel-ipsec-mb.h>
#include <openssl/crypto.h>

#include "proto/check.h"

namespace mariner::trm {
namespace {

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
  static const std::uint8_t* in(std::span<const std::byte> bytes) {
    return reinterpret_cast<const std::uint8_t*>(bytes.data());
  }
  static std::uint8_t* out(std::span<std::byte> bytes) {
    return reinterpret_cast<std::uint8_t*>(bytes.data());
  }

  // (The library demands it.)
  alignas(64) gcm_key_data key_;
  alignas(64) gcm_context_data context_;
};

}  // namespace

std::unique_ptr<Aes128Gcm> aes128_gcm_of_ipsec_mb(Aes128Gcm::Key key) {
  if (manager() == nullptr) return nullptr;
  return std::make_unique<IpsecMbGcm>(key);
}

}  // namespace mariner::trm

#else

namespace mariner::trm {

std::unique_ptr<Aes128Gcm> aes128_gcm_of_ipsec_mb(Aes128Gcm::Key /*key*/) { return nullptr; }

}  // namespace mariner::trm

#endif
