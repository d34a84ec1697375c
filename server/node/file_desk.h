// Where questions about files of the past are answered: by `uvfs`, beside the daemon and in its
// sandbox, which reads what it needs over the admin API. Nothing that a file system holds is parsed
// here, and a program that crashes or hangs is its client's error alone.
//
// Bounded: questions at a time, how long one may stand still, and what is under way of each
// (FileQuery). Loop's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "proto/executor.h"
#include "server/admin/files_source.h"
#include "server/node/file_query.h"

namespace mariner::node {

class FileDesk final : public admin::FilesSource {
 public:
  static constexpr std::size_t kQueriesMax = 8;
  // Neither has the program printed anything, nor the client taken anything.
  static constexpr std::chrono::minutes kStillMax{30};

  struct Options {
    std::string socket;  // the admin API, for the program
    std::function<Result<std::string>()>
        find{};  // the program; empty: beside the daemon, or in PATH
    std::chrono::nanoseconds still_max = kStillMax;
  };
  // Both outlive it.
  FileDesk(boost::asio::io_context& io, Executor& executor, Options options);
  ~FileDesk() override;
  FileDesk(const FileDesk&) = delete;
  FileDesk& operator=(const FileDesk&) = delete;

  // kInvalidArgument; kLimit: kQueriesMax; kNotFound: there is no such program; kUnavailable.
  void ask(const api::FilesRequest& request, std::unique_ptr<admin::FilesReply> reply) override;
  [[nodiscard]] bool runs(pid_t process) const override;
  // Ends all of them, and answers no more.
  void stop();

  [[nodiscard]] std::size_t queries() const { return queries_->size(); }

 private:
  using Queries = std::set<std::shared_ptr<FileQuery>>;

  boost::asio::io_context& io_;
  Executor& executor_;
  const Options options_;
  const std::shared_ptr<Queries> queries_ = std::make_shared<Queries>();  // that have not ended
  bool stopped_ = false;
};

// The words with which `uvfs` is asked. kInvalidArgument: it is none of its questions, or has what
// would be another word.
[[nodiscard]] Result<std::vector<std::string>> words_of(const api::FilesRequest& request,
                                                        const std::string& socket);

}  // namespace mariner::node
