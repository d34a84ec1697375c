#include "server/client/helper_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <system_error>

extern char** environ;

namespace mariner::client {
namespace {

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
