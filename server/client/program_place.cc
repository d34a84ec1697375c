#include "server/client/program_place.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

namespace mariner::client {
namespace {

namespace fs = std::filesystem;

bool is_program(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

Result<std::string> find_program(const HelperProgram& program, const HelperPlaces& places) {
  const fs::path folder = fs::path(places.self).parent_path();
  // As installed; as built.
  std::vector<fs::path> candidates{folder / program.name,
                                   folder / ".." / ".." / program.folder / program.name};
  const std::string& path = places.path;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    if (end > at) candidates.push_back(fs::path(path.substr(at, end - at)) / program.name);
    at = end + 1;
  }
  for (const fs::path& candidate : candidates) {
    if (is_program(candidate)) return candidate.string();
  }
  return Error{ErrorCode::kNotFound,
               fmt::format("the program {}, which {}, is neither in {} beside this command nor in "
                           "PATH: install it",
                           program.name, program.does, folder.string())};
}

Result<std::string> find_program(const HelperProgram& program) {
  std::error_code ignored;
  const fs::path self = fs::read_symlink("/proc/self/exe", ignored);
  const char* const path = std::getenv("PATH");
  return find_program(program, {.self = self.string(), .path = path == nullptr ? "" : path});
}

}  // namespace mariner::client
