// A payload: the bytes of one write or read, in memory that a disk can read and write directly.
//
// Shared by reference count between the session that received it, the log's batch and the table
// of pending writes, so that it is never copied on its way. Whoever fills it does so before
// handing it on; from then on it is immutable. The count is atomic: the last reference may be
// dropped on any thread.
//
// Whoever fills it may leave with it the CRCs of its blocks, so that nobody computes them again.
// They are part of what is filled: one is set when its block has its last byte, and where that is
// filled anew, the CRC is forgotten first. Only the payload that was filled has them, never a copy
// of its bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "proto/check.h"
#include "proto/units.h"

namespace mariner {

class Payload {
 public:
  Payload() = default;

  // `bytes` of uninitialised memory aligned to kBlockBytes; capacity is rounded up to whole blocks
  // and the bytes past `bytes` are unspecified. Aborts when the system has no memory.
  [[nodiscard]] static Payload allocate(std::size_t bytes);

  // The same, zeroed.
  [[nodiscard]] static Payload zeroed(std::size_t bytes);

  // A copy of `bytes`.
  [[nodiscard]] static Payload copy_of(std::span<const std::byte> bytes);

  Payload(const Payload& other) noexcept : control_(other.control_) { retain(); }
  Payload(Payload&& other) noexcept : control_(std::exchange(other.control_, nullptr)) {}
  Payload& operator=(const Payload& other) noexcept {
    Payload copy(other);
    std::swap(control_, copy.control_);
    return *this;
  }
  Payload& operator=(Payload&& other) noexcept {
    std::swap(control_, other.control_);
    return *this;
  }
  ~Payload() { release(); }

  explicit operator bool() const { return control_ != nullptr; }
  [[nodiscard]] std::size_t size() const { return control_ == nullptr ? 0 : control_->size; }
  [[nodiscard]] std::byte* data() { return control_ == nullptr ? nullptr : control_->data; }
  [[nodiscard]] const std::byte* data() const {
    return control_ == nullptr ? nullptr : control_->data;
  }
  [[nodiscard]] std::span<std::byte> bytes() { return {data(), size()}; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return {data(), size()}; }

  // The CRC32C of block `index` (of the kBlockBytes from index * kBlockBytes on), if it is known.
  [[nodiscard]] std::optional<std::uint32_t> block_crc(std::size_t index) const {
    if (control_ == nullptr) return std::nullopt;
    if (index == 0) return control_->first_crc;
    if (index > control_->other_crcs.size()) return std::nullopt;
    return control_->other_crcs[index - 1];
  }
  // `crc` is that of block `index`, which is whole and has its final bytes. By whoever fills the
  // payload, before it is handed on.
  void set_block_crc(std::size_t index, std::uint32_t crc);
  // Blocks [first, last) have other bytes, or may have: their CRCs are not known any more. By
  // whoever fills the payload, too.
  void forget_block_crcs(std::size_t first, std::size_t last);

  // It is about to be kept or let go, like many others: where each is counted is far from the last.
  void prefetch() const noexcept { __builtin_prefetch(control_, 1); }

  // Bytes held by all payloads of this process, for limits and metrics.
  [[nodiscard]] static std::uint64_t total_bytes() noexcept;

 private:
  struct Control {
    std::atomic<std::uint32_t> references{1};
    std::size_t size = 0;
    std::size_t capacity = 0;
    std::byte* data = nullptr;
    std::optional<std::uint32_t> first_crc;                // apart: most payloads are of one block
    std::vector<std::optional<std::uint32_t>> other_crcs;  // from block 1 on; empty: none is known
  };

  void retain() noexcept {
    if (control_ != nullptr) control_->references.fetch_add(1, std::memory_order_relaxed);
  }
  void release() noexcept {
    if (control_ != nullptr && control_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      destroy(control_);
    }
    control_ = nullptr;
  }
  static void destroy(Control* control) noexcept;

  struct ControlCache;  // of those that are free
  static thread_local ControlCache t_controls;
  static Control* new_control();
  static void free_control(Control* control) noexcept;

  Control* control_ = nullptr;
};

// Part of a payload. Keeps the whole alive.
struct PayloadSlice {
  Payload payload;
  std::size_t offset = 0;
  std::size_t length = 0;

  [[nodiscard]] std::span<const std::byte> bytes() const {
    CHECK(offset + length <= payload.size());
    return payload.bytes().subspan(offset, length);
  }

  // The CRC32C of the block that begins `at` bytes into it, if it is known: the payload's, too, has
  // a whole block there.
  [[nodiscard]] std::optional<std::uint32_t> block_crc(std::size_t at) const {
    if ((offset + at) % kBlockBytes != 0 || at + kBlockBytes > length) return std::nullopt;
    return payload.block_crc((offset + at) / kBlockBytes);
  }
};

}  // namespace mariner
