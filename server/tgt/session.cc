// SPDX-License-Identifier: GPL-2.0-only
#include "server/tgt/session.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace mariner::tgt {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPauseFirst{50};
constexpr milliseconds kPauseMax{1000};
constexpr milliseconds kConnectMax{5000};  // until a connection that says nothing is given up
constexpr milliseconds kSilenceMax{1000};  // until it is looked what became of the commands
constexpr int kSilentMax = 10;             // so often, until that look has become of nothing, too
// A marinerd whose host has gone silently: the connection is given up after some twenty seconds.
constexpr int kKeepAliveIdle_s = 5;
constexpr int kKeepAliveInterval_s = 5;
constexpr int kKeepAliveCount = 3;
constexpr int kUnacknowledgedMax_ms = 20'000;
constexpr int kTransportStatuses = 0x100;  // libiscsi's own are from here on
constexpr int kLun = 0;

}  // namespace

Session::Session(Options options, Reactor& reactor, Owner& owner)
    : options_(std::move(options)), reactor_(reactor), owner_(owner), pause_(kPauseFirst) {
  if (::getrandom(&isid_random_, sizeof isid_random_, 0) < 0 ||
      ::getrandom(&isid_qualifier_, sizeof isid_qualifier_, 0) < 0) {
    isid_random_ = static_cast<std::uint32_t>(Clock::now().time_since_epoch().count());
    isid_qualifier_ = static_cast<std::uint16_t>(reinterpret_cast<std::uintptr_t>(this) >> 4);
  }
  isid_random_ &= 0xFFFFFF;
}

Session::~Session() {
  forget_context();
  if (followed_) reactor_.remove(*this);
}

// -- Waiting, for the beginning ------------------------------------------------------------------

std::string Session::open(Clock::time_point until) {
  connect();
  while (state_ != State::kReady) {
    if (refused_ || Clock::now() >= until) return why_.empty() ? "no answer" : why_;
    const auto left = std::chrono::duration_cast<milliseconds>(until - Clock::now());
    if (state_ == State::kAway) {
      ::poll(nullptr, 0, static_cast<int>(std::min(left, pause_).count()));
      connect();
      continue;
    }
    pollfd one{.fd = iscsi_get_fd(context_),
               .events = static_cast<short>(iscsi_which_events(context_)),
               .revents = 0};
    if (::poll(&one, 1, static_cast<int>(left.count()) + 1) > 0) ready(one.revents);
  }
  return "";
}

bool Session::run(Command& command, Clock::time_point until) {
  const std::uint64_t answers = answers_;
  submit(command);
  settle();
  while (answers_ == answers) {
    if (state_ != State::kReady || Clock::now() >= until) return false;
    const auto left = std::chrono::duration_cast<milliseconds>(until - Clock::now());
    pollfd one{.fd = iscsi_get_fd(context_),
               .events = static_cast<short>(iscsi_which_events(context_)),
               .revents = 0};
    if (::poll(&one, 1, static_cast<int>(left.count()) + 1) > 0) ready(one.revents);
  }
  return !command.lost;
}

void Session::follow() {
  followed_ = true;
  reactor_.add(*this);
  reactor_.deadlines_changed();
  update_events();
}

// -- The session's life --------------------------------------------------------------------------

void Session::connect() {
  broken_ = false;
  refused_ = false;
  context_ = iscsi_create_context(options_.initiator.c_str());
  if (context_ == nullptr) return restart("out of memory");
  iscsi_set_noautoreconnect(context_, 1);
  iscsi_set_session_type(context_, ISCSI_SESSION_NORMAL);
  iscsi_set_header_digest(context_, ISCSI_HEADER_DIGEST_NONE);
  iscsi_set_targetname(context_, options_.target.c_str());
  iscsi_set_isid_random(context_, isid_random_, isid_qualifier_);
  iscsi_set_tcp_user_timeout(context_, kUnacknowledgedMax_ms);
  if (!options_.user.empty()) {
    iscsi_set_initiator_username_pwd(context_, options_.user.c_str(), options_.password.c_str());
  }
  state_ = State::kConnecting;
  set_deadline(kConnectMax);
  in_service_ = true;
  const int result =
      iscsi_connect_async(context_, options_.portal.c_str(), &Session::connected, this);
  in_service_ = false;
  if (result != 0) fail(iscsi_get_error(context_));
  settle();
}

void Session::connected(iscsi_context* context, int status, void* /*data*/, void* self) {
  auto* session = static_cast<Session*>(self);
  if (status != SCSI_STATUS_GOOD) return session->fail(iscsi_get_error(context));
  ::fcntl(iscsi_get_fd(context), F_SETFD, FD_CLOEXEC);
  iscsi_set_tcp_keepalive(context, kKeepAliveIdle_s, kKeepAliveCount, kKeepAliveInterval_s);
  if (iscsi_login_async(context, &Session::login_answered, session) != 0) {
    session->fail(iscsi_get_error(context));
  }
}

void Session::login_answered(iscsi_context* context, int status, void* /*data*/, void* self) {
  auto* session = static_cast<Session*>(self);
  if (status == SCSI_STATUS_GOOD) return session->probe();
  // Cancelled: the connection broke, and whoever listens there may be another one the next time.
  session->refused_ = status != SCSI_STATUS_CANCELLED;
  session->fail(iscsi_get_error(context));
}

void Session::probe() {
  probing_ = probe_sent_ = true;
  probe_ = {};
  sent_.append(probe_);
  send(probe_);
}

// What a TEST UNIT READY came back with.
void Session::probed() {
  probing_ = false;
  std::uint16_t code = 0;
  const bool attention = is_unit_attention(probe_, code);
  if (state_ == State::kReady && attention) owner_.attention(code);
  if (state_ != State::kConnecting) return;
  if (attention) return probe();  // each is told once, and there are few kinds
  state_ = State::kReady;
  silent_ = 0;
  pause_ = kPauseFirst;
  deadline.reset();
  send_waiting();
  if (std::exchange(was_lost_, false)) owner_.came_back();
}

void Session::fail(const std::string& why) {
  if (broken_) return;
  broken_ = true;
  why_ = why.substr(0, why.find_last_not_of(" \n") + 1);
  if (why_.empty()) why_ = "the connection was closed";
}

void Session::restart(const std::string& why) {
  fail(why);
  settle();
}

// Takes what was sent back to what waits, and tries again soon.
void Session::lose() {
  const bool was_ready = state_ == State::kReady;
  forget_context();
  broken_ = false;
  state_ = State::kAway;
  CommandList again;
  while (Command* command = sent_.take()) {
    if (command->repeatable) {
      again.append(*command);
    } else {
      command->lost = true;
      answered_.append(*command);
      ++answers_;
    }
  }
  again.put_before(waiting_);
  if (!was_ready) pause_ = std::min(pause_ * 2, kPauseMax);
  set_deadline(pause_);
  if (!followed_) return;
  if (was_ready) {
    was_lost_ = true;
    told_.clear();
    owner_.went_away(why_);
  } else if (told_ != why_) {
    told_ = why_;
    owner_.stays_away(why_);
  }
}

void Session::forget_context() {
  if (context_ == nullptr) return;
  if (fd_ >= 0) reactor_.unwatch(fd_);
  fd_ = -1;
  events_ = 0;
  iscsi_context* context = std::exchange(context_, nullptr);
  in_service_ = true;  // commands are told to be cancelled, or not: they are known anyway
  iscsi_destroy_context(context);
  in_service_ = false;
  for (Command* command = sent_.first(); command != nullptr; command = command->next) {
    if (command->task != nullptr) scsi_free_scsi_task(std::exchange(command->task, nullptr));
  }
  if (std::exchange(probe_sent_, false)) sent_.remove(probe_);
  probing_ = false;
}

CommandList Session::abandon() {
  forget_context();
  state_ = State::kAway;
  deadline.reset();
  CommandList all = std::exchange(sent_, {});
  all.put_before(waiting_);
  return std::exchange(waiting_, {});
}

// -- Commands ------------------------------------------------------------------------------------

void Session::submit(Command& command) {
  command.lost = command.dropped = false;
  waiting_.append(command);
  if (state_ != State::kReady) return;
  send_waiting();
  if (in_service_) return;  // what is sent leaves at its end
  in_service_ = true;
  if (iscsi_service(context_, POLLOUT) != 0) fail(iscsi_get_error(context_));
  in_service_ = false;
  update_events();
  settle_soon();
}

// As `settle`, but not within a call of the owner's.
void Session::settle_soon() {
  if (!broken_ && answered_.empty()) return;
  settle_at_once_ = true;
  set_deadline(milliseconds(0));
}

void Session::drop_unwanted() {
  for (Command* command = waiting_.first(); command != nullptr;) {
    Command* next = command->next;
    if (!owner_.wanted(*command)) {
      command->dropped = true;
      waiting_.remove(*command);
      answered_.append(*command);
    }
    command = next;
  }
}

void Session::send_waiting() {
  drop_unwanted();
  while (!broken_ && state_ == State::kReady) {
    Command* command = waiting_.take();
    if (command == nullptr) break;
    sent_.append(*command);
    send(*command);
  }
  if (!sent_.empty() && !deadline) {
    answers_at_deadline_ = answers_;
    set_deadline(kSilenceMax);
  }
}

void Session::send(Command& command) {
  command.task = scsi_create_task(kCdbBytes, command.cdb.data(), command.direction,
                                  static_cast<int>(command.vector.iov_len));
  if (command.task == nullptr) return fail("out of memory");
  if (command.direction == SCSI_XFER_WRITE) scsi_task_set_iov_out(command.task, &command.vector, 1);
  if (command.direction == SCSI_XFER_READ) scsi_task_set_iov_in(command.task, &command.vector, 1);
  command.session = this;
  if (iscsi_scsi_command_async(context_, kLun, command.task, &Session::command_answered, nullptr,
                               &command) != 0) {
    fail(iscsi_get_error(context_));
  }
}

void Session::command_answered(iscsi_context* /*context*/, int status, void* /*data*/,
                               void* private_data) {
  auto& command = *static_cast<Command*>(private_data);
  Session& session = *command.session;
  if (session.context_ == nullptr) return;  // it is being forgotten
  if (status >= kTransportStatuses) return session.fail(iscsi_get_error(session.context_));
  const scsi_task& task = *command.task;
  command.status = status;
  command.residual =
      task.residual_status == SCSI_RESIDUAL_UNDERFLOW  ? static_cast<std::int64_t>(task.residual)
      : task.residual_status == SCSI_RESIDUAL_OVERFLOW ? -static_cast<std::int64_t>(task.residual)
                                                       : 0;
  command.sense_bytes = 0;
  // Sense data has its length in front (RFC 7143 11.4.7).
  if (status == kCheckCondition && task.datain.data != nullptr && task.datain.size > 2) {
    const std::size_t there = static_cast<std::size_t>(task.datain.size) - 2;
    const std::size_t said =
        static_cast<std::size_t>(task.datain.data[0] << 8 | task.datain.data[1]);
    command.sense_bytes = std::min({there, said, command.sense.size()});
    std::memcpy(command.sense.data(), task.datain.data + 2, command.sense_bytes);
  }
  scsi_free_scsi_task(std::exchange(command.task, nullptr));
  session.sent_.remove(command);
  if (&command == &session.probe_) session.probe_sent_ = false;
  session.answered_.append(command);
  ++session.answers_;
}

// -- Events --------------------------------------------------------------------------------------

void Session::ready(std::uint32_t events) {
  if (context_ == nullptr) return;
  // What marinerd said before it closed is read first.
  const bool closed = (events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0;
  if (closed && state_ == State::kReady) {
    service(POLLIN);
    return restart("the connection was closed");
  }
  service(static_cast<int>(events & (EPOLLIN | EPOLLOUT | EPOLLHUP | EPOLLERR)));
}

void Session::service(int events) {
  in_service_ = true;
  const int result = iscsi_service(context_, events);
  in_service_ = false;
  if (result != 0) fail(iscsi_get_error(context_));
  settle();
}

// What is done when libiscsi has returned: a broken session is given up, what was answered is told,
// and what was submitted meanwhile is sent.
void Session::settle() {
  if (in_service_) return;
  settle_at_once_ = false;
  do {
    if (broken_) lose();
    in_service_ = true;
    tell_answers();
    const bool may_send = context_ != nullptr && !broken_ && (state_ == State::kReady || probing_);
    if (may_send && (iscsi_which_events(context_) & POLLOUT) != 0 &&
        iscsi_service(context_, POLLOUT) != 0) {
      fail(iscsi_get_error(context_));
    }
    in_service_ = false;
  } while (broken_ || !answered_.empty());
  update_events();
}

void Session::tell_answers() {
  while (Command* command = answered_.take()) {
    if (command != &probe_) {
      owner_.answered(*command);
    } else {
      probed();
    }
  }
}

void Session::update_events() {
  if (!followed_ || context_ == nullptr) return;
  const int fd = iscsi_get_fd(context_);
  const auto wanted = static_cast<std::uint32_t>(iscsi_which_events(context_)) | EPOLLRDHUP;
  if (fd == fd_ && wanted == events_) return;
  if (fd == fd_) {
    reactor_.change(fd, wanted, *this);
  } else {
    if (fd_ >= 0) reactor_.unwatch(fd_);
    fd_ = -1;
    if (fd < 0 || !reactor_.watch(fd, wanted, *this)) {
      fail("the socket cannot be watched");
      return settle_soon();
    }
    fd_ = fd;
  }
  events_ = wanted;
}

void Session::set_deadline(milliseconds after) {
  deadline = Clock::now() + after;
  if (followed_) reactor_.deadlines_changed();
}

void Session::due() {
  const bool at_once = std::exchange(settle_at_once_, false);
  drop_unwanted();
  settle();
  if (at_once) {
    if (!deadline) set_deadline(kSilenceMax);
    return;
  }
  if (state_ == State::kAway) return connect();
  if (state_ == State::kConnecting) return restart("no answer within 5 s");
  if (sent_.empty()) return;
  if (answers_ != answers_at_deadline_) {
    silent_ = 0;
  } else if (!probing_) {
    in_service_ = true;
    probe();
    in_service_ = false;
    settle();
  } else if (++silent_ >= kSilentMax) {
    return restart("no answer to TEST UNIT READY");
  }
  if (state_ != State::kReady) return;
  answers_at_deadline_ = answers_;
  set_deadline(kSilenceMax);
}

}  // namespace mariner::tgt
