#include "server/client/helper_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>

extern char** environ;

namespace mariner::client {
namespace {

namespace fs = std::filesystem;

bool is_program(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

Error not_started(const std::string& program, int error) {
  return {ErrorCode::kIo,
          fmt::format("{} cannot be started: {}", program, std::generic_category().message(error))};
}

// The words as exec wants them; they are only as long as `words` and `program` are.
std::vector<char*> arguments(const std::string& program, const std::vector<std::string>& words) {
  std::vector<char*> out{const_cast<char*>(program.c_str())};
  for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

// Everything up to the end, or nothing if it is too long.
std::optional<std::string> read_all(int fd) {
  std::string out;
  std::array<char, 1u << 16> buffer;
  for (;;) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return out;
    if (out.size() + static_cast<std::size_t>(count) > kOutputBytesMax) return std::nullopt;
    out.append(buffer.data(), static_cast<std::size_t>(count));
  }
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

Error hand_over(const Context& context, const HelperProgram& program,
                std::vector<std::string> words) {
  const auto found = find_program(program);
  if (!found) return found.error();
  const Flags& flags = context.flags;
  words.insert(words.end(), {"--socket", flags.socket});
  if (flags.json) words.emplace_back("--json");
  if (flags.quiet) words.emplace_back("--quiet");
  if (flags.no_color) words.emplace_back("--no-color");
  return become(*found, words);
}

Error become(const std::string& program, const std::vector<std::string>& words) {
  ::execv(program.c_str(), arguments(program, words).data());
  return not_started(program, errno);
}

Result<Ended> run_program(const std::string& program, const std::vector<std::string>& words) {
  std::array<int, 2> out{};
  if (::pipe2(out.data(), O_CLOEXEC) != 0) return not_started(program, errno);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  pid_t process = 0;
  const int error = ::posix_spawn(&process, program.c_str(), &actions, nullptr,
                                  arguments(program, words).data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(out[1]);
  if (error != 0) {
    ::close(out[0]);
    return not_started(program, error);
  }
  std::optional<std::string> printed = read_all(out[0]);
  ::close(out[0]);  // it ends if it has more to say
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (!printed) {
    return Error{ErrorCode::kLimit,
                 fmt::format("{} printed more than {} bytes", program, kOutputBytesMax)};
  }
  if (!WIFEXITED(status)) {
    return Error{ErrorCode::kIo,
                 fmt::format("{} was ended by signal {}", program, WTERMSIG(status))};
  }
  return Ended{WEXITSTATUS(status), *std::move(printed)};
}

}  // namespace mariner::client
