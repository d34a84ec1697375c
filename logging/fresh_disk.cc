#include "logging/fresh_disk.h"

#include <algorithm>
#include <string>

#include "proto/payload.h"

namespace mariner::logging {

Result<void> check_fresh(Disk& disk, const std::string& path) {
  const std::uint64_t size = disk.size_bytes() / kBlockBytes * kBlockBytes;
  const std::uint64_t bytes = std::min(kSignatureBytes, size);
  Payload piece = Payload::allocate(bytes);
  for (const std::uint64_t from : {std::uint64_t{0}, size - bytes}) {
    if (Result<void> r = disk.read(from, piece.bytes()); !r) return r;
    const auto held =
        std::ranges::find_if(piece.bytes(), [](std::byte b) { return b != std::byte{}; });
    if (held == piece.bytes().end()) continue;
    const auto at = from + static_cast<std::uint64_t>(held - piece.bytes().begin());
    return Error{
        ErrorCode::kAlreadyExists,
        path + ": expected an empty device to make a log disk of, found data at byte " +
            std::to_string(at) +
            "; is it the right one? If nothing on it is needed, write zeros over its first and "
            "its last MiB (blkdiscard -z, or dd)"};
  }
  return {};
}

}  // namespace mariner::logging
