// The program `ifsck`, which checks file systems: a parser of foreign file systems is a process of
// its own, and this command hands over to it.
#pragma once

#include <string>
#include <vector>

#include "proto/error.h"

namespace mariner::client {

// Where it is: beside `self` (this command's file, as it was installed or built), or else in one of
// the folders of `path` ("/usr/local/bin:/usr/bin"). kNotFound.
[[nodiscard]] Result<std::string> find_fsck_program(const std::string& self,
                                                    const std::string& path);
// Beside the running program, or in PATH.
[[nodiscard]] Result<std::string> find_fsck_program();

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
