// SPDX-License-Identifier: GPL-2.0-only
// Whether the tgtd that loaded this module lays its structures out as `tgt_abi.h` says. tgtd has
// no number of its interface, so its own functions are asked: each is given a blank structure and
// has to read and write just where it is expected to.
#pragma once

#include <string>

#include "server/tgt/tgt_abi.h"

namespace mariner::tgt {

// What differs, in words; empty: nothing that can be told.
[[nodiscard]] std::string abi_fault();

// The same of a unit that tgt has just made for `store`.
[[nodiscard]] std::string unit_fault(const ScsiLu& lu, const BackingStore& store);

}  // namespace mariner::tgt
