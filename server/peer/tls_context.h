// What both ends of a TLS connection are set up with: TLS 1.3 (RFC 8446) only.
//
// Between nodes each shows its certificate, and takes one that the cluster's authority has issued
// and nothing else; sessions are not resumed, so that every connection is checked. For enrolling,
// the new node has no certificate yet: it shows none, and checks the other by the fingerprint of
// the authority. Kernel TLS is used where the kernel and OpenSSL have it.
//
// The process must ignore SIGPIPE: OpenSSL writes with write(). Immutable: any thread.
#pragma once

#include <memory>

#include "proto/error.h"
#include "server/peer/pki_folder.h"

struct ssl_ctx_st;

namespace mariner::peer {

class TlsContext {
 public:
  // For both ends between nodes.
  [[nodiscard]] static Result<std::shared_ptr<const TlsContext>> for_peers(
      const NodeIdentity& identity);
  // For the node that new ones enrol at: shows its certificate and the authority's, asks for none.
  [[nodiscard]] static Result<std::shared_ptr<const TlsContext>> for_inviting(
      const NodeIdentity& identity);
  // For a node without a certificate. Accepts whom it does not know: see enrolled_by().
  [[nodiscard]] static Result<std::shared_ptr<const TlsContext>> for_enrolling();

  [[nodiscard]] ssl_ctx_st* get() const { return context_.get(); }
  // Who this end is; nobody for enrolling.
  [[nodiscard]] const NodeName& name() const { return name_; }

 private:
  TlsContext(std::shared_ptr<ssl_ctx_st> context, NodeName name)
      : context_(std::move(context)), name_(std::move(name)) {}

  std::shared_ptr<ssl_ctx_st> context_;
  NodeName name_;
};

}  // namespace mariner::peer
