// The messages of a stream's sender and receivers as bytes: a header (proto/trm.proto) and, behind
// that of a repair, its bytes. Checked here, once: what decode() returns is within its bounds.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "proto/error.h"
#include "proto/payload.h"
#include "trm-multicast/messages.h"

namespace mariner::trm {

inline constexpr std::uint64_t kWindowBytesMax = 256u << 20;

using Control = std::variant<FromSender, FromReceiver>;

[[nodiscard]] std::string encode(const FromSender& message);
[[nodiscard]] std::string encode(const FromReceiver& message);
// A repair's.
[[nodiscard]] PayloadSlice payload_of(const FromSender& message);

// kProtocol, with what was expected and what was found. `payload`: the bytes that came with it.
[[nodiscard]] Result<Control> decode(std::string_view header, Payload payload);

// A reference in a frame's header, in front of the message: at most kReferenceBytesMax bytes. Most
// references begin where the one before ended, on the same stream: `before`, which both ends keep
// for each connection, makes them small.
struct ReferenceCoder {
  Reference before{};
};
inline constexpr std::size_t kReferenceBytesMax = 28;
void append(std::string& to, const Reference& reference, ReferenceCoder& coder);
// Takes it from the front of `from`. kProtocol: there is none, or beyond the bounds.
[[nodiscard]] Result<Reference> take_reference(std::string_view& from, ReferenceCoder& coder);

}  // namespace mariner::trm
