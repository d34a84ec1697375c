// The certificates of a cluster (X.509, RFC 5280): its authority, and one for each node, with EC
// P-256 keys and ECDSA with SHA-256. In memory only; pki_folder.h has the files.
//
// A node's certificate names it by a URI (node_name.h) and is good for both ends of a connection.
// Both kinds live ten years, a node's never longer than its authority's. That is long: nothing
// renews them by itself, and a cluster that stops on an anniversary is worse than a key that lives
// long. A key that got lost to somebody else is answered by a new authority.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "proto/error.h"
#include "server/peer/node_name.h"

// OpenSSL's, so that whoever includes this need not.
struct x509_st;
struct evp_pkey_st;

namespace mariner::peer {

using WallTime = std::chrono::sys_seconds;

inline constexpr std::chrono::days kCertificateLife{3652};
// A new certificate is good from a day ago on, because clocks differ.
inline constexpr std::chrono::days kCertificateBackdated{1};

class PrivateKey {
 public:
  // A new one. kIo when OpenSSL has no randomness.
  [[nodiscard]] static Result<PrivateKey> generate();
  // PKCS #8, PEM. kInvalidArgument for what is none.
  [[nodiscard]] static Result<PrivateKey> from_pem(std::string_view pem);
  [[nodiscard]] std::string to_pem() const;
  [[nodiscard]] evp_pkey_st* get() const { return key_.get(); }

 private:
  explicit PrivateKey(std::shared_ptr<evp_pkey_st> key) : key_(std::move(key)) {}
  std::shared_ptr<evp_pkey_st> key_;
};

class Certificate {
 public:
  // Of X.509 in PEM (the first in the text) or DER. kInvalidArgument for what is none.
  [[nodiscard]] static Result<Certificate> from_pem(std::string_view pem);
  [[nodiscard]] static Result<Certificate> from_der(std::string_view der);
  // Takes a reference of its own.
  [[nodiscard]] static Certificate of(x509_st* certificate);

  [[nodiscard]] std::string to_pem() const;
  [[nodiscard]] std::string to_der() const;
  // SHA-256 of the DER bytes, 64 lower-case hexadecimal digits.
  [[nodiscard]] std::string fingerprint() const;
  // The node that it names. kInvalidArgument when it names none, or several.
  [[nodiscard]] Result<NodeName> node_name() const;
  [[nodiscard]] WallTime not_before() const;
  [[nodiscard]] WallTime not_after() const;
  [[nodiscard]] bool belongs_to(const PrivateKey& key) const;
  [[nodiscard]] x509_st* get() const { return certificate_.get(); }

 private:
  explicit Certificate(std::shared_ptr<x509_st> certificate)
      : certificate_(std::move(certificate)) {}
  std::shared_ptr<x509_st> certificate_;
};

// The cluster's authority: it signs nodes' certificates, and no other authority's.
struct Authority {
  Certificate certificate;
  PrivateKey key;
};

// `cluster` has been checked by check_name().
[[nodiscard]] Result<Authority> make_authority(std::string_view cluster, WallTime now);

// A request to sign `key` (PKCS #10, RFC 2986), DER. It names nobody: who signs it says who it is.
[[nodiscard]] Result<std::string> make_signing_request(const PrivateKey& key);

// The certificate of the node that has the key of the request. `signing_request` is foreign: the
// error is kInvalidArgument when it is none, its signature is wrong (so that who asks has the key),
// or its key is not EC P-256. Requires a checked name.
[[nodiscard]] Result<Certificate> sign_node(const Authority& authority, const NodeName& name,
                                            std::string_view signing_request, WallTime now);

// Whether `authority` has signed `node` and both are good at `now`. kInvalidArgument with the
// reason.
[[nodiscard]] Result<void> check_issued(const Certificate& node, const Certificate& authority,
                                        WallTime now);

}  // namespace mariner::peer
