// What a volume has at a moment, if it is no file system that is understood: for messages.
#pragma once

#include <string>

#include "ifsck/past.h"
#include "proto/error.h"

namespace mariner::uvfs {

// "a partition table (GPT)"; whatever it is. Errors: of the past.
[[nodiscard]] Result<std::string> guess_of_volume(ifsck::Past& past, SequenceNumber at);

// kNotFound: what was looked for, what is there, and what to do. Others: of the past.
[[nodiscard]] Error no_file_system(ifsck::Past& past, SequenceNumber at);

}  // namespace mariner::uvfs
