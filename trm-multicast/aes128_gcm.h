// AES-128-GCM (NIST SP 800-38D) with tags of 96 bits, for many short messages under one key.
//
// Two implementations, which give the same bytes: OpenSSL's, which is everywhere, and that of
// Intel's Multi-Buffer Crypto for IPsec, for x86-64. A datagram of 1,344 bytes takes the first one
// 500 ns, half of it for its calls and parameters, and the second one 80 ns: at 1 Gbit/s that is
// more than a quarter of all that a sender of multicast does.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

namespace mariner::trm {

// One thread each.
class Aes128Gcm {
 public:
  static constexpr std::size_t kTagBytes = 12;
  using Key = std::span<const std::byte, 16>;
  using Nonce = std::array<std::byte, 12>;
  using Tag = std::span<std::byte, kTagBytes>;

  virtual ~Aes128Gcm() = default;

  // Encrypts `text` to `to`, which has its size, and authenticates it and what is `associated`. Any
  // of them may be empty. A nonce is used once.
  virtual void seal(const Nonce& nonce, std::span<const std::byte> associated,
                    std::span<const std::byte> text, std::span<std::byte> to, Tag tag) = 0;

  // The opposite. False: it is not what was sealed with this key, and what `to` has is garbage.
  [[nodiscard]] virtual bool open(const Nonce& nonce, std::span<const std::byte> associated,
                                  std::span<const std::byte> text, std::span<std::byte> to,
                                  std::span<const std::byte, kTagBytes> tag) = 0;

  // The fastest that this machine has.
  [[nodiscard]] static std::unique_ptr<Aes128Gcm> make(Key key);

 protected:
  Aes128Gcm() = default;
  Aes128Gcm(const Aes128Gcm&) = default;
  Aes128Gcm& operator=(const Aes128Gcm&) = default;
};

[[nodiscard]] std::unique_ptr<Aes128Gcm> aes128_gcm_of_openssl(Aes128Gcm::Key key);
// Null where it was not there to be built with, or the processor lacks what it needs.
[[nodiscard]] std::unique_ptr<Aes128Gcm> aes128_gcm_of_ipsec_mb(Aes128Gcm::Key key);

}  // namespace mariner::trm
