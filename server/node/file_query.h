// One question about files of the past while it is answered: the program that does it, from its
// start to its end. What it prints is read as fast as the client takes it, and no faster.
//
// It keeps itself alive until the program has ended. Loop's thread.
#pragma once

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "proto/executor.h"
#include "server/admin/files_source.h"
#include "server/node/child_program.h"

namespace mariner::node {

class FileQuery : public std::enable_shared_from_this<FileQuery> {
 public:
  static constexpr std::size_t kPieceBytes = 64u << 10;     // that are on their way at a time
  static constexpr std::size_t kErrorsBytesMax = 8u << 10;  // the rest is left out

  // Finds and starts the program, on a thread of its own.
  using Start = std::function<Result<ChildProgram>()>;
  struct Parts {  // the first two outlive it
    boost::asio::io_context& io;
    Executor& executor;
    std::chrono::nanoseconds still_max;  // nothing comes and nothing is taken for longer: it ends
    UniqueFunction<void()> ended;        // the program has, or never began
  };
  FileQuery(Parts parts, std::unique_ptr<admin::FilesReply> reply);
  ~FileQuery();
  FileQuery(const FileQuery&) = delete;
  FileQuery& operator=(const FileQuery&) = delete;

  void start(Start start);
  // Before the loop goes: nothing is posted from there afterwards.
  void wait_for_start();
  [[nodiscard]] bool runs(pid_t process) const { return child_ && child_->id() == process; }
  // The program is ended, and the client told why, if there is still one.
  void end(const Error& why);

 private:
  using Descriptor = boost::asio::posix::stream_descriptor;

  void started(Result<ChildProgram> child);
  void read_output();
  void read_errors();
  void wait_for_end();
  void add_error(std::string_view text);
  void moved();
  void answer();
  void finish();

  Parts parts_;
  std::unique_ptr<admin::FilesReply> reply_;  // null: nobody is interested any more
  std::jthread starter_;
  std::optional<ChildProgram> child_;
  Descriptor output_;
  Descriptor errors_;
  Descriptor process_;
  boost::asio::steady_timer still_;
  std::array<char, kPieceBytes> piece_{};
  std::array<char, 4096> error_piece_{};
  std::string error_text_;
  bool cut_ = false;  // some of it is left out
  bool output_ended_ = false;
  bool errors_ended_ = false;
  std::optional<ChildProgram::End> end_;
  bool finished_ = false;
};

}  // namespace mariner::node
