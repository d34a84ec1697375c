// A question about files of the past as HTTP: what the program prints is the body, in chunks as it
// comes; its end is in the trailers. API.md, "Files of the past".
#pragma once

#include "server/admin/files_source.h"
#include "server/web/http_message.h"

namespace mariner::admin {

inline constexpr const char* kExitTrailer = "Mariner-Exit";      // a number
inline constexpr const char* kErrorsTrailer = "Mariner-Errors";  // percent-encoded

void answer_files(const api::FilesRequest& request, web::HttpReply reply, FilesSource& source);

}  // namespace mariner::admin
