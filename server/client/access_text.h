// Who may use a volume's target, in words.
#pragma once

#include <string>

#include "proto/admin.pb.h"

namespace mariner::client {

// "any initiator", "nobody", or the names.
[[nodiscard]] std::string initiators_text(const api::Access& access);
// "none", or the names.
[[nodiscard]] std::string accounts_text(const api::Access& access);
// "-", or the address.
[[nodiscard]] std::string redirect_text(const api::Access& access);

}  // namespace mariner::client
