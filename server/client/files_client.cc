#include "server/client/files_client.h"

#include <charconv>
#include <system_error>

#include "server/admin/json.h"
#include "server/admin/query.h"

namespace mariner::client {

Result<FilesEnd> ask_files(const FilesDaemon& daemon, const api::FilesRequest& request,
                           const OnBytes& on_bytes) {
  auto answer = http_call(daemon.socket, {"POST", "/v1/files", admin::to_request_json(request)},
                          daemon.timeout, {}, on_bytes);
  if (!answer) return answer.error();
  if (answer->status != 200) return admin::error_from_json(answer->body);
  const std::string& exit = answer->trailers["Mariner-Exit"];
  const auto errors = admin::percent_decoded(answer->trailers["Mariner-Errors"]);
  FilesEnd end;
  const auto read = std::from_chars(exit.data(), exit.data() + exit.size(), end.exit_code);
  if (read.ec != std::errc{} || !errors) {
    return Error{ErrorCode::kProtocol, "the daemon does not say how its answer ended"};
  }
  end.errors = *errors;
  return end;
}

}  // namespace mariner::client
