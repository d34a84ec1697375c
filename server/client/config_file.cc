#include "server/client/config_file.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <span>
#include <system_error>

#include "server/client/output_file.h"
#include "server/node/config.h"

namespace mariner::client {

Result<bool> differs_from(const std::string& path, std::string_view text) {
  const Result<std::string> found = read_config_text(path);
  if (!found) return Error{found.error().code, path + " " + found.error().message};
  return *found != text;
}

Result<std::string> replace_config(const std::string& path, std::string_view text) {
  std::error_code error;
  const std::string file = std::filesystem::canonical(path, error).string();
  if (error) return errno_error(error.value(), path);
  Result<std::unique_ptr<OutputFile>> fresh = OutputFile::open(file, true);
  if (!fresh) return fresh.error();
  if ((*fresh)->is_device()) return Error{ErrorCode::kInvalidArgument, file + " is no file"};
  if (Result<void> r = (*fresh)->keep_owner_and_mode(); !r) return r.error();
  if (Result<void> r = (*fresh)->write(0, std::as_bytes(std::span(text))); !r) return r.error();
  std::string former = file + ".old";
  if (::unlink(former.c_str()) != 0 && errno != ENOENT) return errno_error(errno, former);
  if (::link(file.c_str(), former.c_str()) != 0) return errno_error(errno, former);
  if (Result<void> r = (*fresh)->commit(); !r) return r.error();
  return former;
}

}  // namespace mariner::client
