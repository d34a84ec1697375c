// TLS over one socket: a thin file around OpenSSL, without waiting and without a thread.
//
// The stream does not own the socket, which outlives it. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "proto/error.h"
#include "server/peer/certificates.h"
#include "server/peer/tls_context.h"

struct ssl_st;

namespace mariner::peer {

enum class TlsRole : std::uint8_t { kDials, kAccepts };

class TlsStream {
 public:
  // On a connected socket, with `context` of that end. kIo when OpenSSL has no memory.
  [[nodiscard]] static Result<TlsStream> over(int socket, std::shared_ptr<const TlsContext> context,
                                              TlsRole role);

  // How an attempt has ended that did not fail. kWantsRead, kWantsWrite: not now; again when the
  // socket is readable or writable (on a socket that blocks: its time is over). kEnd: the other has
  // closed its side.
  enum class Progress : std::uint8_t { kDone, kWantsRead, kWantsWrite, kEnd };
  struct Outcome {
    Progress progress = Progress::kDone;
    std::size_t bytes = 0;  // of a read or a write that is done
  };

  // Errors, of each: kProtocol when the other does not speak TLS 1.3, or one does not accept the
  // other's certificate; kUnavailable when the connection is broken. Nothing but the destructor may
  // be called afterwards.
  [[nodiscard]] Result<Outcome> handshake();
  // `place` is not empty. At most the rest of one record at a time; decrypted in OpenSSL's buffer
  // (by the kernel where it has kernel TLS), then moved to `place`.
  [[nodiscard]] Result<Outcome> read(std::span<std::byte> place);
  // Whether it has received more than was read: part of a record, or records.
  [[nodiscard]] bool holds_more() const;
  // `bytes` is not empty. After kWantsWrite the next write has to begin with the same bytes.
  [[nodiscard]] Result<Outcome> write(std::span<const std::byte> bytes);
  // Tells the other that nothing more comes, if that can be said at once.
  void close();

  // After the handshake. The certificates that the other has shown, its own first.
  [[nodiscard]] std::vector<Certificate> shown() const;
  [[nodiscard]] bool kernel_sends() const;
  [[nodiscard]] bool kernel_receives() const;

 private:
  TlsStream(std::shared_ptr<ssl_st> ssl, std::shared_ptr<const TlsContext> context)
      : ssl_(std::move(ssl)), context_(std::move(context)) {}
  [[nodiscard]] Result<Outcome> outcome_of(int returned) const;

  std::shared_ptr<ssl_st> ssl_;
  std::shared_ptr<const TlsContext> context_;
};

}  // namespace mariner::peer
