// How a pack compresses: zstd (RFC 8878), for regions and for deltas. PACK.md section 1.
//
// The contexts are made once and used again, so that nothing is allocated for a block. Of one
// thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace mariner::logging {

class PackCompressor {
 public:
  explicit PackCompressor(int level);

  // Both return the bytes written to the front of `to`, or 0 when they would not fit there.
  [[nodiscard]] std::size_t compress(std::span<const std::byte> plain, std::span<std::byte> to);
  // What makes `block` from `base`, which differs: a frame without its magic number. (zstd finds
  // nothing in common when they are the same from end to end.)
  [[nodiscard]] std::size_t delta(std::span<const std::byte> base, std::span<const std::byte> block,
                                  std::span<std::byte> to);

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const noexcept;
  };
  std::unique_ptr<ZSTD_CCtx_s, Free> context_;
  std::vector<std::byte> frame_;  // of a delta, with its magic number
};

class PackDecompressor {
 public:
  PackDecompressor();

  // Both take any bytes, and are false when these do not make exactly `to.size()` bytes.
  [[nodiscard]] bool decompress(std::span<const std::byte> stored, std::span<std::byte> to);
  [[nodiscard]] bool apply(std::span<const std::byte> base, std::span<const std::byte> delta,
                           std::span<std::byte> to);

 private:
  struct Free {
    void operator()(ZSTD_DCtx_s* context) const noexcept;
  };
  std::unique_ptr<ZSTD_DCtx_s, Free> context_;
  std::vector<std::byte> frame_;
};

}  // namespace mariner::logging
