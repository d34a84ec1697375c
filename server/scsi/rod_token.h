// ROD tokens on the wire (SPC-4 5.17.6.4 and 5.17.6.5, SBC-4 4.28): 512 bytes that stand for data
// as of a moment.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>

#include "server/scsi/identity.h"

namespace mariner::scsi {

using RodTokenBytes = std::array<std::uint8_t, 512>;

enum class RodType : std::uint32_t {
  kPointInTimeDefault = 0x0080'0000,
  kPointInTimeChangeVulnerable = 0x0080'0001,
  kPointInTimePersistent = 0x0080'0002,
  kPointInTimeAny = 0x0080'FFFF,
  kBlockDeviceZero = 0xFFFF'0001,
};

// The header and the body of a token, without what makes it secret: a ROD management token.
inline constexpr std::size_t kRodManagementBytes = 96;

// Fills `bytes` with what cannot be predicted.
using SecureRandom = std::function<void(std::span<std::uint8_t> bytes)>;
void system_random(std::span<std::uint8_t> bytes);

// A point in time copy (default) that stands for `represented` bytes of this unit. More than 256
// bits of it are random.
[[nodiscard]] RodTokenBytes make_rod_token(std::uint64_t identifier, const Identity& unit,
                                           std::uint32_t block_bytes, std::uint64_t represented,
                                           const SecureRandom& random);

// Fields of any 512 bytes.
[[nodiscard]] RodType rod_type_of(std::span<const std::uint8_t, 512> token);
[[nodiscard]] bool has_rod_length(std::span<const std::uint8_t, 512> token);
[[nodiscard]] std::uint64_t rod_identifier_of(std::span<const std::uint8_t, 512> token);
// Whether it is laid out as make_rod_token() does it.
[[nodiscard]] bool well_formed_rod(std::span<const std::uint8_t, 512> token);
// In a time that tells nothing of where they differ.
[[nodiscard]] bool same_rod(std::span<const std::uint8_t, 512> a,
                            std::span<const std::uint8_t, 512> b);

}  // namespace mariner::scsi
