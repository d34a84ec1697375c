// How other programs name a moment.
#pragma once

#include <string>
#include <string_view>

namespace mariner::uvfs {

// "GMT-2026.11.20-14.32.05", as Samba's shadow_copy2 names one, as a time that is understood
// everywhere: "2026-11-20T14:32:05Z". Anything else as it is.
[[nodiscard]] std::string as_time(std::string_view name);

}  // namespace mariner::uvfs
