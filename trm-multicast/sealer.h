// Seals the datagrams of one stream, and opens them: AES-128-GCM (NIST SP 800-38D) with tags of 96
// bits, under a key that the sender has chosen and told each receiver over TLS.
//
// The header is authenticated; the body, too, and encrypted where the stream is. The nonce is the
// stream's salt and the body's position: a position is sent once in the life of a key, so no nonce
// comes twice. Whoever has the key can forge: those are the cluster's nodes, which trust each other
// with the data anyhow. One thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "proto/error.h"
#include "trm-multicast/aes128_gcm.h"
#include "trm-multicast/datagram.h"

namespace mariner::trm {

struct StreamKey {
  std::array<std::byte, 16> key{};
  std::array<std::byte, 4> salt{};

  // At random. kIo when the system has no randomness.
  [[nodiscard]] static Result<StreamKey> generate();
  friend bool operator==(const StreamKey&, const StreamKey&) = default;
};

class Sealer {
 public:
  // `encrypt`: bodies are unreadable without the key; else they are sent as they are.
  Sealer(const StreamKey& key, bool encrypt);

  // Writes the whole datagram to `to`, which has body.size() + kDatagramOverheadBytes. Requires a
  // header that pack() takes, and a position that was never sealed before.
  void seal(const DatagramHeader& header, std::span<const std::byte> body, std::span<std::byte> to);

  // Writes the body to `to`, which has its size. False: it is not what this stream's sender has
  // sealed, and what `to` has is garbage.
  [[nodiscard]] bool open(const SealedDatagram& datagram, std::span<std::byte> to);

 private:
  [[nodiscard]] Aes128Gcm::Nonce nonce(Position position) const;

  const std::array<std::byte, 4> salt_;
  const bool encrypt_;
  const std::unique_ptr<Aes128Gcm> gcm_;
};

}  // namespace mariner::trm
