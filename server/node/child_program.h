// A program that runs beside the daemon, started with pipes for what it prints.
//
// It has nothing of the daemon but these: no other descriptor, no environment but what is given, no
// blocked or ignored signal, a process group of its own, and no protection against being ended when
// memory runs out. One thread at a time.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "proto/error.h"

namespace mariner::node {

class ChildProgram {
 public:
  struct Options {
    std::string program;                   // its file
    std::vector<std::string> words;        // behind its name
    std::vector<std::string> environment;  // "NAME=VALUE"
  };
  // Takes as long as the system takes to load a program: not on a thread that others wait for. kIo.
  [[nodiscard]] static Result<ChildProgram> start(const Options& options);
  ~ChildProgram();  // ends it, and does not wait for that
  ChildProgram(ChildProgram&& other) noexcept;
  ChildProgram& operator=(ChildProgram&&) = delete;

  // Owned by the caller from then on; each once.
  [[nodiscard]] int take_output();
  [[nodiscard]] int take_errors();
  [[nodiscard]] pid_t id() const { return id_; }
  // Readable when the program has ended.
  [[nodiscard]] int process() const { return process_; }

  // At once.
  void kill();
  static constexpr int kUnknown = 255;  // that it has ended is all that is known
  struct End {
    int exit_code = 0;
    int signal = 0;  // that ended it; 0: none
  };
  // After process() has become readable.
  [[nodiscard]] End end();

 private:
  ChildProgram() = default;

  int output_ = -1;
  int errors_ = -1;
  int process_ = -1;  // a pidfd
  pid_t id_ = 0;
};

}  // namespace mariner::node
