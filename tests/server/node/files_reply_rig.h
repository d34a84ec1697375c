// A client of a FileQuery that a test turns by hand. What it has is looked at on the loop's thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "server/admin/files_source.h"

namespace mariner::node::testing {

// What a client has seen.
struct Seen {
  std::string bytes;
  int writes = 0;
  std::optional<int> exit_code;
  std::string errors;
  std::optional<Error> failed;
  bool takes = true;  // at once; else when take() says
  UniqueFunction<void()> taken;
  UniqueFunction<void()> gone;

  void take() {
    if (taken) std::exchange(taken, nullptr)();
  }
  [[nodiscard]] bool ended() const { return exit_code || failed; }
};

class ReplyTo final : public admin::FilesReply {
 public:
  explicit ReplyTo(std::shared_ptr<Seen> seen) : seen_(std::move(seen)) {}
  void on_gone(UniqueFunction<void()> gone) override { seen_->gone = std::move(gone); }
  void write(std::string bytes, UniqueFunction<void()> taken) override {
    seen_->bytes += bytes;
    ++seen_->writes;
    seen_->taken = std::move(taken);
    if (seen_->takes) seen_->take();
  }
  void end(int exit_code, std::string errors) override {
    seen_->exit_code = exit_code;
    seen_->errors = std::move(errors);
  }
  void fail(const Error& error) override { seen_->failed = error; }

 private:
  const std::shared_ptr<Seen> seen_;
};

}  // namespace mariner::node::testing
