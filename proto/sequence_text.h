// How a place in a volume's history is written.
#pragma once

#include <string>

#include "proto/units.h"

namespace mariner {

// "#12", as a SPEC has it.
[[nodiscard]] inline std::string sequence_text(SequenceNumber sequence) {
  return "#" + std::to_string(sequence.value);
}

}  // namespace mariner
