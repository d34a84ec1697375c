// The programs that understand file systems: a parser of foreign file systems is a process of its
// own, and this command hands over to it.
#pragma once

#include <string>
#include <vector>

#include "proto/error.h"
#include "server/client/context.h"
#include "server/client/program_place.h"

namespace mariner::client {

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
