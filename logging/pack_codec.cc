#include "logging/pack_codec.h"

#include <zstd.h>

#include <cstring>

#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::logging {
namespace {

constexpr std::size_t kMagicBytes = 4;

void set(ZSTD_CCtx* context, ZSTD_cParameter parameter, int value) {
  CHECK(ZSTD_isError(ZSTD_CCtx_setParameter(context, parameter, value)) == 0);
}

}  // namespace

void PackCompressor::Free::operator()(ZSTD_CCtx_s* context) const noexcept {
  ZSTD_freeCCtx(context);
}

PackCompressor::PackCompressor(int level) : context_(ZSTD_createCCtx()) {
  CHECK_MSG(context_ != nullptr, "no memory for a zstd context");
  set(context_.get(), ZSTD_c_compressionLevel, level);
  // Sizes and checksums stand in the pack's table.
  set(context_.get(), ZSTD_c_contentSizeFlag, 0);
  set(context_.get(), ZSTD_c_checksumFlag, 0);
}

std::size_t PackCompressor::compress(std::span<const std::byte> plain, std::span<std::byte> to) {
  const std::size_t bytes =
      ZSTD_compress2(context_.get(), to.data(), to.size(), plain.data(), plain.size());
  return ZSTD_isError(bytes) != 0 ? 0 : bytes;
}

std::size_t PackCompressor::delta(std::span<const std::byte> base, std::span<const std::byte> block,
                                  std::span<std::byte> to) {
  frame_.resize(to.size() + kMagicBytes);
  // A frame that did not fit is still under way. The prefix is for this one frame.
  ZSTD_CCtx_reset(context_.get(), ZSTD_reset_session_only);
  CHECK(ZSTD_isError(ZSTD_CCtx_refPrefix(context_.get(), base.data(), base.size())) == 0);
  const std::size_t bytes =
      ZSTD_compress2(context_.get(), frame_.data(), frame_.size(), block.data(), block.size());
  if (ZSTD_isError(bytes) != 0) return 0;
  std::memcpy(to.data(), frame_.data() + kMagicBytes, bytes - kMagicBytes);
  return bytes - kMagicBytes;
}

void PackDecompressor::Free::operator()(ZSTD_DCtx_s* context) const noexcept {
  ZSTD_freeDCtx(context);
}

PackDecompressor::PackDecompressor() : context_(ZSTD_createDCtx()) {
  CHECK_MSG(context_ != nullptr, "no memory for a zstd context");
}

bool PackDecompressor::decompress(std::span<const std::byte> stored, std::span<std::byte> to) {
  return ZSTD_decompressDCtx(context_.get(), to.data(), to.size(), stored.data(), stored.size()) ==
         to.size();
}

bool PackDecompressor::apply(std::span<const std::byte> base, std::span<const std::byte> delta,
                             std::span<std::byte> to) {
  frame_.resize(delta.size() + kMagicBytes);
  store_le(frame_.data(), std::uint32_t{ZSTD_MAGICNUMBER});
  std::memcpy(frame_.data() + kMagicBytes, delta.data(), delta.size());
  ZSTD_DCtx_reset(context_.get(), ZSTD_reset_session_only);
  CHECK(ZSTD_isError(ZSTD_DCtx_refPrefix(context_.get(), base.data(), base.size())) == 0);
  return ZSTD_decompressDCtx(context_.get(), to.data(), to.size(), frame_.data(), frame_.size()) ==
         to.size();
}

}  // namespace mariner::logging
