// How far the image is with what a rollback changed, in a few words.
#pragma once

#include <string>

#include "proto/admin.pb.h"

namespace mariner::client {

// "restoring: 1 GiB of 4 GiB (25 %), 800 MiB/s, about 4 s left".
[[nodiscard]] std::string restoring_text(const api::Restoring& restore);

}  // namespace mariner::client
