// Where the sources of the project lie, for tests of files that are in them.
#pragma once

#include <string>

namespace mariner::test {

// "/PATH/OF/THE/CLONE/" + `inside`.
[[nodiscard]] std::string source_path(const std::string& inside);

}  // namespace mariner::test
