// Where a node keeps its certificate, its key and its cluster's authority, as PEM:
//
//   ca.crt    the cluster's authority                  on every node
//   ca.key    the authority's key, mode 0600           only where nodes are invited
//   node.crt  this node's certificate                  on every node
//   node.key  this node's key, mode 0600               on every node
//
// The folder is made whole or not at all: the files are written and synced beside it, then it gets
// its name. Nothing here ever replaces one. Blocking; any thread.
#pragma once

#include <string>

#include "proto/error.h"
#include "server/peer/certificates.h"

namespace mariner::peer {

// What a node shows to others, and what it checks them with.
struct NodeIdentity {
  NodeName name;
  Certificate authority;
  Certificate certificate;
  PrivateKey key;
};

class PkiFolder {
 public:
  static constexpr const char* kDefaultPath = "/var/lib/mariner/pki";

  explicit PkiFolder(std::string path) : path_(std::move(path)) {}

  // Makes a cluster: its authority, and the certificate of its first node. On return both are
  // durable. kAlreadyExists when the folder is there and not empty; kInvalidArgument for a name.
  [[nodiscard]] Result<NodeIdentity> create_cluster(const NodeName& name, WallTime now) const;

  // Keeps what a node has got by enrolling. Durable on return. kAlreadyExists as above.
  [[nodiscard]] Result<void> store(const NodeIdentity& identity) const;

  // kAlreadyExists when there is something in the folder: to be asked before an invitation is
  // spent.
  [[nodiscard]] Result<void> check_vacant() const;

  // Reads and checks this node's part: that the key is readable by its owner only and is the
  // certificate's, and that the authority has issued it and it is good at `now`. kNotFound,
  // kInvalidArgument or kIo, naming the file and what to do.
  [[nodiscard]] Result<NodeIdentity> load(WallTime now) const;

  // The authority with its key. kNotFound where this node does not have it.
  [[nodiscard]] Result<Authority> load_authority(WallTime now) const;

 private:
  [[nodiscard]] std::string file(const char* name) const { return path_ + "/" + name; }
  [[nodiscard]] Result<std::string> read(const char* name) const;
  [[nodiscard]] Result<PrivateKey> read_key(const char* name) const;
  [[nodiscard]] Result<Certificate> read_certificate(const char* name, WallTime now) const;
  [[nodiscard]] Result<void> write(const NodeIdentity& identity,
                                   const PrivateKey* authority_key) const;

  std::string path_;
};

}  // namespace mariner::peer
