// Questions about files of the past, put to a daemon: server/admin/API.md, "Files of the past".
#pragma once

#include <chrono>
#include <string>

#include "proto/error.h"
#include "proto/files_query.pb.h"
#include "server/client/http_client.h"

namespace mariner::client {

// How the program ended that answered.
struct FilesEnd {
  int exit_code = 0;
  std::string errors;  // what it said
};

struct FilesDaemon {
  std::string socket;
  std::chrono::seconds timeout;  // for each part of the answer
};

// What the program prints goes to `on_bytes`, as it comes. Errors are those that the daemon answers
// in its place, and of http_call(); kNotFound: it has no such program, or is too old to know the
// question.
[[nodiscard]] Result<FilesEnd> ask_files(const FilesDaemon& daemon,
                                         const api::FilesRequest& request, const OnBytes& on_bytes);

}  // namespace mariner::client
