// Verbs that hand over to another program: in its place stands a script that says its words.
#pragma once

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/logging/temporary_directory.h"
#include "tests/server/client/daemon.h"

namespace mariner::client {

class StandInProgramTest : public DaemonTest {
 protected:
  // The script says "[WORDS]", as an error, and ends with `exit_code`.
  StandInProgramTest(const std::string& name, int exit_code) {
    const std::string program = folder_ + "/" + name;
    std::ofstream(program) << "#!/bin/sh\necho \"[$*]\" >&2\nexit " << exit_code << "\n";
    ::chmod(program.c_str(), 0755);
  }
  // Never returns if the program was found.
  void become(const std::vector<std::string>& words) {
    ::setenv("PATH", (folder_ + ":/bin").c_str(), 1);
    run_as_is(words);
    std::exit(code);
  }
  void run_without_program(const std::vector<std::string>& words) {
    const char* const set = std::getenv("PATH");
    const std::string path = set == nullptr ? "" : set;
    ::unsetenv("PATH");
    run(words);
    ::setenv("PATH", path.c_str(), 1);
  }

 private:
  logging::test::TemporaryDirectory made_;
  const std::string folder_ = made_.file("");
};

}  // namespace mariner::client
