#include "server/client/raw_stream.h"

#include <algorithm>
#include <array>
#include <ostream>

namespace mariner::client {

Result<void> RawStream::put(std::span<const std::byte> bytes) {
  out_.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  end_ += bytes.size();
  if (out_) return {};
  return Error{ErrorCode::kIo, "the standard output cannot be written to"};
}

Result<void> RawStream::fill(std::uint64_t to) {
  static constexpr std::array<std::byte, 65536> kZeros{};
  while (end_ < to) {
    const auto part = std::span(kZeros).first(std::min<std::uint64_t>(kZeros.size(), to - end_));
    if (Result<void> r = put(part); !r) return r;
  }
  return {};
}

Result<void> RawStream::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (Result<void> r = fill(offset); !r) return r;
  return put(bytes);
}

Result<void> RawStream::finish() {
  if (Result<void> r = fill(size_bytes_); !r) return r;
  out_.flush();
  return put({});
}

}  // namespace mariner::client
