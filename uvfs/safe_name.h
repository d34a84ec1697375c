// Names that stand in another system's directories, and what may be done with them.
#pragma once

#include <string_view>

namespace mariner::uvfs {

// It is the name of a thing in a directory: not "", ".", "..", and without '/' and NUL.
[[nodiscard]] inline bool is_safe_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

}  // namespace mariner::uvfs
