#include "server/peer/tls_stream.h"

#include <fmt/format.h>
#include <openssl/err.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "proto/check.h"
#include "server/peer/openssl.h"

namespace mariner::peer {

Result<TlsStream> TlsStream::over(int socket, std::shared_ptr<const TlsContext> context,
                                  TlsRole role) {
  std::shared_ptr<ssl_st> ssl(SSL_new(context->get()), SSL_free);
  if (!ssl || SSL_set_fd(ssl.get(), socket) != 1) {
    return openssl_error(ErrorCode::kIo, "TLS: cannot begin");
  }
  if (role == TlsRole::kDials) {
    SSL_set_connect_state(ssl.get());
  } else {
    SSL_set_accept_state(ssl.get());
  }
  return TlsStream(std::move(ssl), std::move(context));
}

Result<TlsStream::Outcome> TlsStream::handshake() {
  ERR_clear_error();
  return outcome_of(SSL_do_handshake(ssl_.get()));
}

Result<TlsStream::Outcome> TlsStream::read(std::span<std::byte> place) {
  CHECK(!place.empty());
  ERR_clear_error();
  std::size_t bytes = 0;
  const int returned = SSL_read_ex(ssl_.get(), place.data(), place.size(), &bytes);
  if (returned == 1) return Outcome{.progress = Progress::kDone, .bytes = bytes};
  return outcome_of(returned);
}

bool TlsStream::holds_more() const { return SSL_has_pending(ssl_.get()) == 1; }

Result<TlsStream::Outcome> TlsStream::write(std::span<const std::byte> bytes) {
  CHECK(!bytes.empty());
  ERR_clear_error();
  std::size_t written = 0;
  const int returned = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &written);
  if (returned == 1) return Outcome{.progress = Progress::kDone, .bytes = written};
  return outcome_of(returned);
}

Result<TlsStream::Outcome> TlsStream::outcome_of(int returned) const {
  const int error_number = errno;
  if (returned == 1) return Outcome{};
  switch (SSL_get_error(ssl_.get(), returned)) {
    case SSL_ERROR_WANT_READ: return Outcome{.progress = Progress::kWantsRead};
    case SSL_ERROR_WANT_WRITE: return Outcome{.progress = Progress::kWantsWrite};
    case SSL_ERROR_ZERO_RETURN: return Outcome{.progress = Progress::kEnd};
    case SSL_ERROR_SYSCALL:
      ERR_clear_error();
      if (error_number == 0) return Outcome{.progress = Progress::kEnd};
      return Error{ErrorCode::kUnavailable,
                   fmt::format("the connection is broken: {}", std::strerror(error_number))};
    default: break;
  }
  // The other's process is gone, or it had nothing more to say: TCP's end instead of TLS's.
  if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
    ERR_clear_error();
    return Outcome{.progress = Progress::kEnd};
  }
  const long verified = SSL_get_verify_result(ssl_.get());
  const bool told = ERR_GET_REASON(ERR_peek_error()) > SSL_AD_REASON_OFFSET;  // an alert
  const std::string reason = openssl_reason();
  if (verified != X509_V_OK && (SSL_get_verify_mode(ssl_.get()) & SSL_VERIFY_PEER) != 0) {
    return Error{
        ErrorCode::kProtocol,
        fmt::format("its certificate is not accepted: {}; expected one that this cluster's "
                    "authority has issued",
                    X509_verify_cert_error_string(verified))};
  }
  if (told) {
    return Error{ErrorCode::kProtocol, fmt::format("it has refused this node: {}", reason)};
  }
  return Error{ErrorCode::kProtocol, fmt::format("TLS 1.3 was expected: {}", reason)};
}

void TlsStream::close() {
  ERR_clear_error();
  SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

std::vector<Certificate> TlsStream::shown() const {
  std::vector<Certificate> all;
  X509* const own = SSL_get0_peer_certificate(ssl_.get());
  if (own == nullptr) return all;
  all.push_back(Certificate::of(own));
  // Who accepts has the other's own certificate beside the chain, who dials has it in front of it.
  const STACK_OF(X509)* const chain = SSL_get_peer_cert_chain(ssl_.get());
  for (int i = 0; i < sk_X509_num(chain); ++i) {
    X509* const next = sk_X509_value(chain, i);
    if (X509_cmp(next, own) != 0) all.push_back(Certificate::of(next));
  }
  return all;
}

bool TlsStream::kernel_sends() const { return BIO_get_ktls_send(SSL_get_wbio(ssl_.get())) != 0; }

bool TlsStream::kernel_receives() const { return BIO_get_ktls_recv(SSL_get_rbio(ssl_.get())) != 0; }

}  // namespace mariner::peer
