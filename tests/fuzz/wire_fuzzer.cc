// What another node says: any header, with any length of payload. What is understood comes back as
// it was when it is said again.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "proto/check.h"
#include "replication/wire.h"

using namespace mariner;
using namespace mariner::replication;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  // The first byte: how many blocks of payload come with it.
  const std::size_t bytes = std::size_t{data[0]} % 5 * kBlockBytes;
  const Payload payload = bytes == 0 ? Payload{} : Payload::allocate(bytes);
  const std::string_view header(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Result<Envelope> heard = decode(header, payload);
  if (!heard) {
    CHECK(heard.error().code == ErrorCode::kProtocol && !heard.error().message.empty());
    return 0;
  }
  CHECK(payload_of(*heard).length == bytes);
  const std::string said = encode(*heard);
  const Result<Envelope> again = decode(said, payload);
  CHECK(again.has_value());
  CHECK(encode(*again) == said);
  return 0;
}
