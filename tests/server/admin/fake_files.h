// A FilesSource that notes what it is asked, and answers what a test has set.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "server/admin/files_source.h"

namespace mariner::admin {

class FakeFiles final : public FilesSource {
 public:
  std::string asked;  // the request, in text format
  // Instead of an answer. By default there is no program that could answer.
  std::optional<Error> error = Error{ErrorCode::kNotFound, "there is no uvfs"};
  std::string bytes;
  int exit_code = 0;
  std::string errors;
  pid_t running = -1;

  void ask(const api::FilesRequest& request, std::unique_ptr<FilesReply> reply) override {
    asked = request.ShortDebugString();
    if (error) return reply->fail(*error);
    if (bytes.empty()) return reply->end(exit_code, errors);
    // (It is moved into what keeps it until its bytes are taken.)
    FilesReply& to = *reply;
    to.write(bytes, [reply = std::move(reply), this] { reply->end(exit_code, errors); });
  }
  [[nodiscard]] bool runs(pid_t process) const override { return process == running; }
};

}  // namespace mariner::admin
