#include "server/node/file_query.h"

#include <fmt/format.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <cstring>
#include <utility>

namespace mariner::node {

using boost::system::error_code;

FileQuery::FileQuery(Parts parts, std::unique_ptr<admin::FilesReply> reply)
    : parts_(std::move(parts)),
      reply_(std::move(reply)),
      output_(parts_.io),
      errors_(parts_.io),
      process_(parts_.io),
      still_(parts_.io) {}

FileQuery::~FileQuery() = default;

void FileQuery::start(Start start) {
  reply_->on_gone([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->reply_.reset();
    self->end({ErrorCode::kAborted, "the client has gone"});
  });
  starter_ = std::jthread([self = shared_from_this(), start = std::move(start)]() mutable {
    Executor& executor = self->parts_.executor;
    executor.post(
        [self = std::move(self), child = start()]() mutable { self->started(std::move(child)); });
  });
}

void FileQuery::wait_for_start() {
  if (starter_.joinable()) starter_.join();
}

void FileQuery::started(Result<ChildProgram> child) {
  wait_for_start();
  if (!child) {
    if (reply_ != nullptr) std::exchange(reply_, nullptr)->fail(child.error());
    return finish();
  }
  child_.emplace(*std::move(child));
  error_code error;
  process_.assign(::dup(child_->process()), error);
  if (error) {
    if (reply_ != nullptr) std::exchange(reply_, nullptr)->fail(errno_error(error.value(), "uvfs"));
    child_.reset();  // ends it
    return finish();
  }
  wait_for_end();
  output_.assign(child_->take_output());
  errors_.assign(child_->take_errors());
  if (reply_ == nullptr) return child_->kill();
  moved();
  read_output();
  read_errors();
}

void FileQuery::read_output() {
  output_.async_read_some(boost::asio::buffer(piece_), [self = shared_from_this()](
                                                           error_code error, std::size_t count) {
    if (self->reply_ == nullptr) return;
    if (error) {
      self->output_ended_ = true;
      return self->answer();
    }
    self->moved();
    self->reply_->write({self->piece_.data(), count}, [weak = self->weak_from_this()] {
      const auto still = weak.lock();
      if (still == nullptr || still->reply_ == nullptr) return;
      still->moved();
      still->read_output();
    });
  });
}

void FileQuery::read_errors() {
  errors_.async_read_some(boost::asio::buffer(error_piece_),
                          [self = shared_from_this()](error_code error, std::size_t count) {
                            if (self->reply_ == nullptr) return;
                            if (error) {
                              self->errors_ended_ = true;
                              return self->answer();
                            }
                            self->moved();
                            self->add_error({self->error_piece_.data(), count});
                            self->read_errors();
                          });
}

void FileQuery::wait_for_end() {
  process_.async_wait(Descriptor::wait_read, [self = shared_from_this()](error_code error) {
    if (error) return;
    self->end_ = self->child_->end();
    self->answer();
    if (self->reply_ == nullptr) self->finish();
  });
}

void FileQuery::add_error(std::string_view text) {
  const std::size_t room = kErrorsBytesMax - error_text_.size();
  cut_ = cut_ || text.size() > room;
  error_text_ += text.substr(0, room);
}

void FileQuery::moved() {
  still_.expires_after(
      std::chrono::duration_cast<boost::asio::steady_timer::duration>(parts_.still_max));
  still_.async_wait([weak = weak_from_this()](error_code error) {
    const auto self = weak.lock();
    if (error || self == nullptr) return;
    self->end(
        {ErrorCode::kAborted,
         fmt::format("ended: nothing has come, or been taken, for {} s",
                     std::chrono::round<std::chrono::seconds>(self->parts_.still_max).count())});
  });
}

// When all has been said.
void FileQuery::answer() {
  if (reply_ == nullptr || !end_ || !output_ended_ || !errors_ended_) return;
  if (cut_) error_text_ += "...\n";
  if (end_->signal != 0) {
    error_text_ +=
        fmt::format("uvfs was ended by signal {} ({})\n", end_->signal, ::strsignal(end_->signal));
  }
  std::exchange(reply_, nullptr)->end(end_->exit_code, std::move(error_text_));
  finish();
}

void FileQuery::end(const Error& why) {
  if (finished_) return;
  still_.cancel();
  if (reply_ != nullptr) std::exchange(reply_, nullptr)->fail(why);
  error_code ignored;
  output_.close(ignored);
  errors_.close(ignored);
  if (child_ && !end_) child_->kill();
  if (end_) finish();
}

void FileQuery::finish() {
  if (std::exchange(finished_, true)) return;
  still_.cancel();
  if (parts_.ended) std::exchange(parts_.ended, nullptr)();
}

}  // namespace mariner::node
