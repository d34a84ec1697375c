// What the simulated initiators write: bytes that name the write, so that whoever gets another
// one's, or not all of them, finds out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "proto/units.h"
#include "replication/messages.h"

namespace mariner::test {

// An attempt's write. Most repeat one block, which costs the least that multicast takes; some bring
// every block of the extent.
[[nodiscard]] replication::WriteRequest sim_write(BlockRange extent, std::uint64_t attempt);

// The attempt that its bytes name; of what has none (a rollback), the one that the request does.
[[nodiscard]] std::uint64_t attempt_of(const replication::WriteRequest& request);

// What is wrong with a write that has arrived: every byte is looked at. Nothing: it is the one that
// its request says.
[[nodiscard]] std::optional<std::string> payload_fault(const replication::WriteRequest& request);

}  // namespace mariner::test
