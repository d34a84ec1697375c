#include "server/peer/enrolment.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "proto/peer.pb.h"
#include "server/peer/hello.h"

namespace mariner::peer {

Result<Certificate> Inviter::sign(std::string_view request, std::string_view address,
                                  std::chrono::nanoseconds now, WallTime wall) {
  wire::EnrolRequest message;
  if (!message.ParseFromArray(request.data(), static_cast<int>(request.size()))) {
    return Error{ErrorCode::kProtocol, "this is no request to enrol"};
  }
  if (message.protocol_version() != kProtocolVersion) {
    return Error{ErrorCode::kProtocol, fmt::format("the protocol's version: expected {}, found {}",
                                                   kProtocolVersion, message.protocol_version())};
  }
  const auto node = book_.redeem(message.secret(), address, now);
  if (!node) return node.error();
  return sign_node(authority_, {.cluster = cluster_, .node = *node}, message.signing_request(),
                   wall);
}

Inviter::Answer Inviter::answer(std::string_view request, std::string_view address,
                                std::chrono::nanoseconds now, WallTime wall) {
  const auto certificate = sign(request, address, now, wall);
  wire::EnrolReply reply;
  if (!certificate) {
    reply.set_refusal(certificate.error().message);
    return {reply.SerializeAsString(), certificate.error()};
  }
  reply.set_certificate(certificate->to_der());
  return {reply.SerializeAsString(), certificate->node_name()};
}

Result<Certificate> find_authority(std::span<const Certificate> shown, std::string_view fingerprint,
                                   WallTime now) {
  const auto authority = std::ranges::find_if(shown, [&](const Certificate& certificate) {
    return certificate.fingerprint() == fingerprint;
  });
  if (authority == shown.end() || authority == shown.begin()) {
    return Error{
        ErrorCode::kProtocol,
        "whoever answers there is not of the cluster that has made the invitation: it does "
        "not show the authority with the invitation's fingerprint; check the address"};
  }
  if (const auto issued = check_issued(shown.front(), *authority, now); !issued) {
    return Error{ErrorCode::kProtocol,
                 fmt::format("whoever answers there is not of the cluster that has made the "
                             "invitation: {}; check the address, and the clocks of both nodes",
                             issued.error().message)};
  }
  return *authority;
}

std::string make_enrol_request(std::string_view secret, std::string_view signing_request) {
  wire::EnrolRequest request;
  request.set_protocol_version(kProtocolVersion);
  request.set_secret(std::string(secret));
  request.set_signing_request(std::string(signing_request));
  return request.SerializeAsString();
}

Result<NodeIdentity> take_enrol_reply(std::string_view reply, const PrivateKey& key,
                                      const Certificate& authority, WallTime now) {
  wire::EnrolReply message;
  if (!message.ParseFromArray(reply.data(), static_cast<int>(reply.size()))) {
    return Error{ErrorCode::kProtocol, "what came is no reply to a request to enrol"};
  }
  if (!message.refusal().empty()) {
    return Error{ErrorCode::kNotFound, fmt::format("refused: {}", message.refusal())};
  }
  const auto bad = [](const Error& why) {
    return Error{ErrorCode::kProtocol,
                 fmt::format("the certificate that came is not this node's: {}", why.message)};
  };
  const auto certificate = Certificate::from_der(message.certificate());
  if (!certificate) return bad(certificate.error());
  if (!certificate->belongs_to(key)) return bad({ErrorCode::kProtocol, "it has another key"});
  if (const auto issued = check_issued(*certificate, authority, now); !issued) {
    return bad(issued.error());
  }
  const auto name = certificate->node_name();
  if (!name) return bad(name.error());
  return NodeIdentity{
      .name = *name, .authority = authority, .certificate = *certificate, .key = key};
}

}  // namespace mariner::peer
