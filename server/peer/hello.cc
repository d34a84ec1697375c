#include "server/peer/hello.h"

#include <fmt/format.h>

#include "proto/peer.pb.h"

namespace mariner::peer {
namespace {

Error mismatch(std::string_view what, std::string_view expected, std::string_view found) {
  constexpr std::size_t kShownMax = 2 * kNodeNameBytesMax;
  return {ErrorCode::kProtocol,
          fmt::format("{}: expected {}, found {}", what, expected, found.substr(0, kShownMax))};
}

}  // namespace

std::string make_hello(const NodeName& own) {
  wire::PeerHello hello;
  hello.set_protocol_version(kProtocolVersion);
  hello.set_cluster(own.cluster);
  hello.set_node(own.node);
  return hello.SerializeAsString();
}

Result<NodeName> check_hello(std::string_view header, const Certificate& certificate,
                             const NodeName& own, std::string_view expected) {
  wire::PeerHello hello;
  if (!hello.ParseFromArray(header.data(), static_cast<int>(header.size()))) {
    return Error{ErrorCode::kProtocol, "its first frame is no hello"};
  }
  if (hello.protocol_version() != kProtocolVersion) {
    return mismatch("the protocol's version", std::to_string(kProtocolVersion),
                    std::to_string(hello.protocol_version()));
  }
  const auto certified = certificate.node_name();
  if (!certified) return Error{ErrorCode::kProtocol, certified.error().message};
  if (hello.cluster() != own.cluster) return mismatch("its cluster", own.cluster, hello.cluster());
  const NodeName claimed{.cluster = hello.cluster(), .node = hello.node()};
  if (claimed != *certified) {
    return mismatch("its name", to_uri(*certified) + " as its certificate says", to_uri(claimed));
  }
  if (!expected.empty() && claimed.node != expected) {
    return mismatch("the node at this address", expected, claimed.node);
  }
  if (claimed.node == own.node) {
    return Error{ErrorCode::kProtocol,
                 fmt::format("it has this node's own name, {}: it is this node, or its files were "
                             "copied",
                             own.node)};
  }
  return claimed;
}

}  // namespace mariner::peer
