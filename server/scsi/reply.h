// Responses, made of what they say.
#pragma once

#include <cstdint>
#include <span>

#include "proto/error.h"
#include "server/scsi/sense.h"
#include "server/scsi/target_device.h"

namespace mariner::scsi {

// CHECK CONDITION with this sense.
[[nodiscard]] Response check_condition(const Sense& sense, SenseFormat format);

// GOOD with parameter data, cut to the allocation length (SPC-4 4.2.5.6).
[[nodiscard]] Response parameter_data(std::span<const std::uint8_t> data,
                                      std::uint32_t allocation_bytes);

enum class Access { kRead, kWrite };

// What an initiator is told when the layer below failed to read or write at `lba`.
[[nodiscard]] Response layer_failure(const Error& error, Access access, std::uint64_t lba,
                                     SenseFormat format);

}  // namespace mariner::scsi
