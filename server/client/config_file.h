// The file that marinerd reads, replaced as a whole.
#pragma once

#include <string>
#include <string_view>

#include "proto/error.h"

namespace mariner::client {

// Whether `path` has another content than `text`, or none. kIo: it cannot be read.
[[nodiscard]] Result<bool> differs_from(const std::string& path, std::string_view text);

// `path` contains `text` from then on, durably, and never anything in between; its owner and mode
// stay. Where a link leads, the file there is replaced. Returns where the former content is
// (".old" behind its name; that of the time before is gone). On an error `path` is as it was.
[[nodiscard]] Result<std::string> replace_config(const std::string& path, std::string_view text);

}  // namespace mariner::client
