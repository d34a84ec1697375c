// Questions about files of the past, answered by a program beside the daemon: the bytes that it
// prints, and how it ends. API.md, "Files of the past".
//
// As Control: on the Executor's thread; requests are untrusted.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "proto/error.h"
#include "proto/files_query.pb.h"
#include "proto/unique_function.h"

namespace mariner::admin {

// Where one answer goes. What comes after its end, or when the client has gone, goes nowhere.
class FilesReply {
 public:
  virtual ~FilesReply() = default;

  // `gone` runs once if the client goes before the end.
  virtual void on_gone(UniqueFunction<void()> gone) = 0;
  // Some bytes; `taken` when the client has them. The next ones only then.
  virtual void write(std::string bytes, UniqueFunction<void()> taken) = 0;
  // The program's exit code, and what it said as errors. Not while bytes are being taken.
  virtual void end(int exit_code, std::string errors) = 0;
  // Instead of the end, at any time.
  virtual void fail(const Error& error) = 0;
};

class FilesSource {
 public:
  virtual ~FilesSource() = default;

  virtual void ask(const api::FilesRequest& request, std::unique_ptr<FilesReply> reply) = 0;
  // Whether it is a program that answers: it reads what may be forged, and may do no more here than
  // it has to.
  [[nodiscard]] virtual bool runs(pid_t process) const = 0;
};

}  // namespace mariner::admin
