// The programs that understand file systems: a parser of foreign file systems is a process of its
// own, and this command hands over to it.
#pragma once

#include <string>
#include <vector>

#include "proto/error.h"
#include "server/client/context.h"

namespace mariner::client {

struct HelperProgram {
  const char* name;
  const char* folder;  // where it is built, from the root of the build
  const char* does;    // "..., which checks file systems, ..."
};
inline constexpr HelperProgram kFsckProgram{"ifsck", "ifsck/program", "checks file systems"};
inline constexpr HelperProgram kFilesProgram{"uvfs", "uvfs/program", "reads the files of the past"};

// Where it is: beside `self` (this command's file, as it was installed or built), or else in one of
// the folders of `path` ("/usr/local/bin:/usr/bin"). kNotFound.
struct HelperPlaces {
  std::string self;
  std::string path;
};
[[nodiscard]] Result<std::string> find_program(const HelperProgram& program,
                                               const HelperPlaces& places);
// Beside the running program, or in PATH.
[[nodiscard]] Result<std::string> find_program(const HelperProgram& program);

// Becomes the program, with the global flags that every one of them has behind `words`. Only
// returns when it cannot.
[[nodiscard]] Error hand_over(const Context& context, const HelperProgram& program,
                              std::vector<std::string> words);

// Becomes `program`, with `words` behind its name: its signals, output and exit code are this
// process's. Returns only if that was not possible, with the reason.
[[nodiscard]] Error become(const std::string& program, const std::vector<std::string>& words);

struct Ended {
  int exit_code = 0;
  std::string out;  // what it printed
};
inline constexpr std::size_t kOutputBytesMax = 16u << 20;

// Runs `program` and waits for it. What it reads is empty, what it says as errors goes where this
// process's does. kIo: it could not be started, or was ended by a signal; kLimit: it printed more
// than kOutputBytesMax.
[[nodiscard]] Result<Ended> run_program(const std::string& program,
                                        const std::vector<std::string>& words);

}  // namespace mariner::client
