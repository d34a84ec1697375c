#include "server/peer/tls_context.h"

#include <utility>

#include "server/peer/openssl.h"

namespace mariner::peer {
namespace {

// AES with 128 bits first: the fastest where processors have it, and what kernels know.
constexpr const char* kCipherSuites =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
// Two records and what is around them: small frames come with few reads. More does not help, since
// OpenSSL moves what is left to the front of its buffer for each record.
constexpr std::size_t kReadBufferBytes = 2 * (SSL3_RT_MAX_PLAIN_LENGTH + 256 + 5);

Error failed(std::string_view what) { return openssl_error(ErrorCode::kIo, what); }

Result<SslCtxPtr> make() {
  SslCtxPtr context(SSL_CTX_new(TLS_method()));
  const bool good = context && SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) == 1 &&
                    SSL_CTX_set_ciphersuites(context.get(), kCipherSuites) == 1 &&
                    SSL_CTX_set_num_tickets(context.get(), 0) == 1;
  if (!good) return failed("TLS: cannot set up TLS 1.3");
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context.get(), SSL_OP_ENABLE_KTLS);
  // Between nodes the authority is not shown: both have it.
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_NO_AUTO_CHAIN);
  SSL_CTX_set_read_ahead(context.get(), 1);
  SSL_CTX_set_default_read_buffer_len(context.get(), kReadBufferBytes);
  SSL_CTX_set_verify_depth(context.get(), 1);
  return context;
}

Result<void> show(SSL_CTX* context, const NodeIdentity& identity) {
  if (SSL_CTX_use_certificate(context, identity.certificate.get()) == 1 &&
      SSL_CTX_use_PrivateKey(context, identity.key.get()) == 1) {
    return {};
  }
  return failed("TLS: cannot use the node's certificate");
}

}  // namespace

Result<std::shared_ptr<const TlsContext>> TlsContext::for_peers(const NodeIdentity& identity) {
  auto context = make();
  if (!context) return context.error();
  SSL_CTX* const ctx = context->get();
  if (auto r = show(ctx, identity); !r) return r.error();
  if (X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), identity.authority.get()) != 1) {
    return failed("TLS: cannot use the cluster's authority");
  }
  SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return std::shared_ptr<const TlsContext>(
      new TlsContext({context->release(), SSL_CTX_free}, identity.name));
}

Result<std::shared_ptr<const TlsContext>> TlsContext::for_inviting(const NodeIdentity& identity) {
  auto context = make();
  if (!context) return context.error();
  SSL_CTX* const ctx = context->get();
  if (auto r = show(ctx, identity); !r) return r.error();
  if (SSL_CTX_add1_chain_cert(ctx, identity.authority.get()) != 1) {
    return failed("TLS: cannot show the cluster's authority");
  }
  SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, nullptr);
  return std::shared_ptr<const TlsContext>(
      new TlsContext({context->release(), SSL_CTX_free}, identity.name));
}

Result<std::shared_ptr<const TlsContext>> TlsContext::for_enrolling() {
  auto context = make();
  if (!context) return context.error();
  SSL_CTX_set_verify(context->get(), SSL_VERIFY_NONE, nullptr);
  return std::shared_ptr<const TlsContext>(
      new TlsContext({context->release(), SSL_CTX_free}, NodeName{}));
}

}  // namespace mariner::peer
