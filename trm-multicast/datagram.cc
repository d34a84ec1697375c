#include "trm-multicast/datagram.h"

#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::trm {
namespace {

constexpr std::uint8_t kVersion = 1;  // the upper half of the first byte
// So that no sum of a start and an offset overflows.
constexpr std::uint64_t kStartMax = UINT64_MAX - kPayloadBytesMax;

}  // namespace

DatagramHeaderBytes pack(const DatagramHeader& header) {
  CHECK(header.length >= 1 && header.length <= kPayloadBytesMax && header.offset < header.length);
  CHECK(header.start.value <= kStartMax);
  DatagramHeaderBytes bytes;
  const std::uint32_t kind = (kVersion << 4) | static_cast<std::uint8_t>(header.kind);
  store_le(bytes.data(), kind | ((header.length - 1) << 8));
  store_le(bytes.data() + 4, header.stream.value);
  store_le(bytes.data() + 8, header.start.value);
  store_le(bytes.data() + 16, header.offset);
  return bytes;
}

std::optional<SealedDatagram> parse(std::span<const std::byte> datagram) {
  if (datagram.size() <= kDatagramOverheadBytes) return std::nullopt;
  const auto first = load_le<std::uint32_t>(datagram.data());
  const auto kind = static_cast<std::uint8_t>(first & 0x0f);
  if (((first >> 4) & 0x0f) != kVersion) return std::nullopt;
  if (kind != static_cast<std::uint8_t>(DatagramKind::kPayload) &&
      kind != static_cast<std::uint8_t>(DatagramKind::kProbe)) {
    return std::nullopt;
  }
  const SealedDatagram parsed{
      {.stream = {load_le<std::uint32_t>(datagram.data() + 4)},
       .kind = static_cast<DatagramKind>(kind),
       .start = {load_le<std::uint64_t>(datagram.data() + 8)},
       .length = (first >> 8) + 1,
       .offset = load_le<std::uint32_t>(datagram.data() + 16)},
      datagram.first(kDatagramHeaderBytes),
      datagram.subspan(kDatagramHeaderBytes, datagram.size() - kDatagramOverheadBytes),
      datagram.last(kDatagramTagBytes)};
  const DatagramHeader& header = parsed.header;
  if (header.start.value > kStartMax || header.offset >= header.length ||
      parsed.body.size() > header.length - header.offset) {
    return std::nullopt;
  }
  return parsed;
}

}  // namespace mariner::trm
