// Where the programs are that understand file systems: each is a process of its own, which the
// command becomes, or the daemon runs beside itself.
#pragma once

#include <string>

#include "proto/error.h"

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

}  // namespace mariner::client
