// The first frame of either side: who speaks, and which version of the protocol (PROTOCOL.md 3).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "proto/error.h"
#include "server/peer/certificates.h"
#include "server/peer/frame.h"
#include "server/peer/node_name.h"

namespace mariner::peer {

inline constexpr std::uint32_t kProtocolVersion = 2;
// Nobody is known yet who could send more.
inline constexpr FrameBounds kHelloBounds{.header_bytes_max = 4096, .payload_bytes_max = 0};

[[nodiscard]] std::string make_hello(const NodeName& own);

// The node that says hello in `header`. kProtocol, naming both values, when it speaks another
// version, belongs to another cluster than `own`, is not who `certificate` says, has our own name,
// or is not `expected` ("": anybody).
[[nodiscard]] Result<NodeName> check_hello(std::string_view header, const Certificate& certificate,
                                           const NodeName& own, std::string_view expected);

}  // namespace mariner::peer
