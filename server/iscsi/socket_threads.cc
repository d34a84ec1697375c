// A loan with something to do waits in its thread's queue. It is put there by whoever comes last:
// the loop, which asks, or the thread, which finds the socket ready. The thread looks after one at
// a time, with at most one system call of each kind, and holds no lock while it is in the kernel.
#include "server/iscsi/socket_threads.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>

#include "proto/check.h"

namespace mariner::iscsi {
namespace {

constexpr std::uint64_t kWakeId = 0;          // in an event: nobody's socket
constexpr std::size_t kCallPlacesMax = 1024;  // of one system call (IOV_MAX)

// Leaves out the first `bytes` of `places`; returns how many of them that uses up.
std::size_t advance(std::span<iovec> places, std::size_t bytes) {
  const auto leave_out = [](iovec& place, std::size_t part) {
    place.iov_base = static_cast<std::byte*>(place.iov_base) + part;
    place.iov_len -= part;
  };
  std::size_t used = 0;
  for (; used < places.size() && bytes >= places[used].iov_len; ++used) {
    bytes -= places[used].iov_len;
    leave_out(places[used], places[used].iov_len);
  }
  if (bytes > 0) leave_out(places[used], bytes);
  return used;
}

bool not_yet(int error_number) { return error_number == EAGAIN || error_number == EWOULDBLOCK; }

}  // namespace

class SocketThread : public std::enable_shared_from_this<SocketThread> {
 public:
  explicit SocketThread(Executor& executor) : executor_(executor) {}
  ~SocketThread();

  [[nodiscard]] Result<void> start();
  void stop();

  [[nodiscard]] std::unique_ptr<SocketLoan> lend(int fd, SocketClient& client);
  [[nodiscard]] std::size_t lent() const { return loans_.size(); }

  void end(SocketLoan& loan);
  void receive(SocketLoan& loan, std::span<const iovec> places, std::size_t bytes_min);
  [[nodiscard]] bool take_back_receive(SocketLoan& loan);
  void send(SocketLoan& loan, std::span<const iovec> places);

 private:
  using Lock = std::unique_lock<std::mutex>;

  struct Done {
    std::uint64_t id = 0;
    bool received = false;  // or sent
    std::size_t bytes = 0;
    int error_number = 0;
  };

  // What one system call has come to.
  enum class Call : std::uint8_t {
    kNone,     // there was none
    kDone,     // what was asked for; there may be more
    kDrained,  // likewise, and the socket was left empty (but for may_have_more_)
    kPart,     // some of it
    kShort,    // some of it, and likewise
    kNotYet,   // the socket could not
  };

  // On the thread itself.
  void run();
  void look_for_events(Lock& lock);
  void notice(const epoll_event& event);
  void look_after(SocketLoan& loan, Lock& lock);
  [[nodiscard]] static Call receive_now(SocketLoan& loan, Done& done);
  [[nodiscard]] static Call send_now(SocketLoan& loan, Done& done);
  void tell(Lock& lock);

  void hear();
  // The thread for what `asked` says.
  void ask(SocketLoan& loan, bool& asked);
  // Queues `loan` if there is something to do for it.
  void queue_if_ready(SocketLoan& loan);
  void wake(Lock& lock);

  Executor& executor_;
  int epoll_ = -1;
  int wake_ = -1;
  std::thread thread_;

  mutable std::mutex mutex_;
  std::condition_variable idle_;  // a loan is no longer busy
  bool stopping_ = false;
  bool sleeping_ = false;
  bool told_ = false;  // the loop will hear what is in done_
  // Changed by the loop alone, under the lock.
  std::unordered_map<std::uint64_t, SocketLoan*> loans_;
  std::uint64_t next_id_ = kWakeId + 1;
  std::deque<SocketLoan*> queue_;
  std::vector<Done> done_;
  std::vector<Done> heard_;  // the loop's own
};

SocketThread::~SocketThread() {
  CHECK_MSG(!thread_.joinable(), "a socket thread is stopped before it is destroyed");
  if (epoll_ >= 0) ::close(epoll_);
  if (wake_ >= 0) ::close(wake_);
}

Result<void> SocketThread::start() {
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0) return errno_error(errno, "socket threads: epoll_create1");
  wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_ < 0) return errno_error(errno, "socket threads: eventfd");
  // Edge-triggered: each write to it is an event, and nobody needs to read it.
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.u64 = kWakeId}};
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event) != 0) {
    return errno_error(errno, "socket threads: epoll_ctl");
  }
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    return errno_error(error.code().value(), "socket threads: a thread");
  }
  ::pthread_setname_np(thread_.native_handle(), "sockets");
  return {};
}

void SocketThread::stop() {
  if (!thread_.joinable()) return;
  {
    Lock lock(mutex_);
    CHECK_MSG(loans_.empty(), "loans of sockets end before their threads do");
    stopping_ = true;
    wake(lock);
  }
  thread_.join();
}

std::unique_ptr<SocketLoan> SocketThread::lend(int fd, SocketClient& client) {
  std::unique_ptr<SocketLoan> loan(new SocketLoan(shared_from_this(), client, fd, next_id_++));
  {
    const Lock lock(mutex_);
    loans_.emplace(loan->id_, loan.get());
  }
  epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDHUP | EPOLLET,
                    .data = {.u64 = loan->id_}};
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) loan.reset();
  return loan;
}

void SocketThread::end(SocketLoan& loan) {
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, loan.fd_, nullptr);  // fails where lend() did
  Lock lock(mutex_);
  idle_.wait(lock, [&] { return !loan.busy_; });
  if (loan.queued_) std::erase(queue_, &loan);
  // Its id is not used again: what is still to be heard of it, or of its socket, is nobody's.
  loans_.erase(loan.id_);
}

void SocketThread::receive(SocketLoan& loan, std::span<const iovec> places, std::size_t bytes_min) {
  CHECK(!loan.receiving_ && !places.empty() && places.size() <= 2 && bytes_min >= 1);
  loan.receiving_ = true;
  std::ranges::copy(places, loan.receive_places_);
  loan.receive_count_ = places.size();
  loan.receive_min_ = bytes_min;
  loan.received_ = 0;
  ask(loan, loan.receive_asked_);
}

bool SocketThread::take_back_receive(SocketLoan& loan) {
  CHECK(loan.receiving_);
  Lock lock(mutex_);
  idle_.wait(lock, [&] { return !loan.busy_; });
  if (!std::exchange(loan.receive_asked_, false)) return false;
  if (loan.received_ > 0) {
    done_.push_back({.id = loan.id_, .received = true, .bytes = loan.received_});
    tell(lock);
    return false;
  }
  loan.receiving_ = false;
  return true;
}

void SocketThread::send(SocketLoan& loan, std::span<const iovec> places) {
  CHECK(!loan.sending_ && !places.empty());
  loan.sending_ = true;
  loan.send_places_.assign(places.begin(), places.end());
  loan.send_at_ = 0;
  ask(loan, loan.send_asked_);
}

void SocketThread::ask(SocketLoan& loan, bool& asked) {
  Lock lock(mutex_);
  asked = true;
  queue_if_ready(loan);
  wake(lock);
}

void SocketThread::queue_if_ready(SocketLoan& loan) {
  const bool ready =
      (loan.receive_asked_ && loan.readable_) || (loan.send_asked_ && loan.writable_);
  // One that is busy is looked at again when it is not.
  if (!ready || loan.queued_ || loan.busy_) return;
  loan.queued_ = true;
  queue_.push_back(&loan);
}

void SocketThread::wake(Lock& lock) {
  if ((queue_.empty() && !stopping_) || !std::exchange(sleeping_, false)) return;
  lock.unlock();
  const std::uint64_t one = 1;
  CHECK(::write(wake_, &one, sizeof one) == sizeof one);
}

void SocketThread::run() {
  Lock lock(mutex_);
  while (!stopping_) {
    // Those that are queued meanwhile wait until events have been looked for, so that sockets which
    // always have something to do do not keep the others out.
    for (std::size_t left = queue_.size(); left > 0 && !queue_.empty(); --left) {
      SocketLoan& loan = *queue_.front();
      queue_.pop_front();
      loan.queued_ = false;
      look_after(loan, lock);
      tell(lock);
    }
    look_for_events(lock);
  }
}

void SocketThread::look_for_events(Lock& lock) {
  std::array<epoll_event, 64> events;
  sleeping_ = queue_.empty() && !stopping_;
  const int patience_ms = sleeping_ ? -1 : 0;
  lock.unlock();
  const int count =
      ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), patience_ms);
  CHECK(count >= 0 || errno == EINTR);
  lock.lock();
  sleeping_ = false;
  for (int i = 0; i < count; ++i) notice(events[static_cast<std::size_t>(i)]);
}

void SocketThread::notice(const epoll_event& event) {
  const auto found = loans_.find(event.data.u64);
  if (found == loans_.end()) return;  // gone meanwhile, or only woken
  SocketLoan& loan = *found->second;
  const bool broken = (event.events & (EPOLLHUP | EPOLLERR)) != 0;
  // An end is an event only once, and a read stops where urgent data would be.
  if (broken || (event.events & (EPOLLRDHUP | EPOLLPRI)) != 0) loan.may_have_more_ = true;
  if (loan.may_have_more_ || (event.events & EPOLLIN) != 0) loan.readable_ = true;
  if (broken || (event.events & EPOLLOUT) != 0) loan.writable_ = true;
  queue_if_ready(loan);
}

void SocketThread::look_after(SocketLoan& loan, Lock& lock) {
  const bool sends = loan.send_asked_ && loan.writable_;
  const bool receives = loan.receive_asked_ && loan.readable_;
  Done sent{.id = loan.id_};
  Done received{.id = loan.id_, .received = true};
  loan.busy_ = true;
  lock.unlock();
  const Call send = sends ? send_now(loan, sent) : Call::kNone;
  const Call receive = receives ? receive_now(loan, received) : Call::kNone;
  lock.lock();
  loan.busy_ = false;
  if (send == Call::kNotYet) loan.writable_ = false;
  // What comes later is an event.
  if (receive == Call::kDrained || receive == Call::kShort) loan.readable_ = loan.may_have_more_;
  if (receive == Call::kNotYet) loan.readable_ = false;
  if (send == Call::kDone) {
    loan.send_asked_ = false;
    done_.push_back(sent);
  }
  if (receive == Call::kDone || receive == Call::kDrained) {
    loan.receive_asked_ = false;
    done_.push_back(received);
  }
  queue_if_ready(loan);  // for the rest, or for what was asked meanwhile
  idle_.notify_all();
}

SocketThread::Call SocketThread::receive_now(SocketLoan& loan, Done& done) {
  const std::span<iovec> places = std::span(loan.receive_places_).first(loan.receive_count_);
  const std::size_t room = bytes_of(places);
  msghdr message{};
  message.msg_iov = places.data();
  message.msg_iovlen = places.size();
  const ssize_t bytes = ::recvmsg(loan.fd_, &message, MSG_DONTWAIT);
  done.bytes = loan.received_;
  if (bytes < 0) {
    if (errno == EINTR) return Call::kPart;
    if (not_yet(errno)) return Call::kNotYet;
    // What has come before is told first; the next call finds the connection at its end.
    if (loan.received_ == 0) done.error_number = errno;
    return Call::kDone;
  }
  if (bytes == 0) return Call::kDone;
  loan.received_ += static_cast<std::size_t>(bytes);
  done.bytes = loan.received_;
  const bool drained = static_cast<std::size_t>(bytes) < room;
  if (loan.received_ >= loan.receive_min_) return drained ? Call::kDrained : Call::kDone;
  advance(places, static_cast<std::size_t>(bytes));
  return drained ? Call::kShort : Call::kPart;
}

SocketThread::Call SocketThread::send_now(SocketLoan& loan, Done& done) {
  const std::span<iovec> places = std::span(loan.send_places_).subspan(loan.send_at_);
  msghdr message{};
  message.msg_iov = places.data();
  message.msg_iovlen = std::min(places.size(), kCallPlacesMax);
  const ssize_t bytes = ::sendmsg(loan.fd_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (bytes < 0) {
    if (errno == EINTR) return Call::kPart;
    if (not_yet(errno)) return Call::kNotYet;
    done.error_number = errno;
    return Call::kDone;
  }
  loan.send_at_ += advance(places, static_cast<std::size_t>(bytes));
  return loan.send_at_ == loan.send_places_.size() ? Call::kDone : Call::kPart;
}

// The loop is told once for all that it has not heard of.
void SocketThread::tell(Lock& lock) {
  if (done_.empty() || std::exchange(told_, true)) return;
  lock.unlock();
  executor_.post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->hear();
  });
  lock.lock();
}

void SocketThread::hear() {
  {
    const Lock lock(mutex_);
    told_ = false;
    heard_.swap(done_);
  }
  for (const Done& done : heard_) {
    // Only this thread changes the map. Whoever hears may end others' loans.
    const auto found = loans_.find(done.id);
    if (found == loans_.end()) continue;
    SocketLoan& loan = *found->second;
    if (done.received) {
      loan.receiving_ = false;
      loan.client_.receive_done(done.bytes, done.error_number);
    } else {
      loan.sending_ = false;
      loan.client_.send_done(done.error_number);
    }
  }
  heard_.clear();
}

SocketLoan::~SocketLoan() { thread_->end(*this); }
void SocketLoan::receive(std::span<const iovec> places, std::size_t bytes_min) {
  thread_->receive(*this, places, bytes_min);
}
bool SocketLoan::take_back_receive() { return thread_->take_back_receive(*this); }
void SocketLoan::send(std::span<const iovec> places) { thread_->send(*this, places); }

Result<std::unique_ptr<SocketThreads>> SocketThreads::start(std::size_t count, Executor& executor) {
  CHECK(count >= 1);
  std::unique_ptr<SocketThreads> all(new SocketThreads);
  for (std::size_t i = 0; i < count; ++i) {
    all->threads_.push_back(std::make_shared<SocketThread>(executor));
    const Result<void> started = all->threads_.back()->start();
    if (!started) return started.error();
  }
  return all;
}

SocketThreads::~SocketThreads() {
  for (const auto& thread : threads_) thread->stop();
}

std::unique_ptr<SocketLoan> SocketThreads::lend(int fd, SocketClient& client) {
  const auto least =
      std::ranges::min_element(threads_, {}, [](const auto& thread) { return thread->lent(); });
  return (*least)->lend(fd, client);
}

std::size_t SocketThreads::lent() const {
  std::size_t all = 0;
  for (const auto& thread : threads_) all += thread->lent();
  return all;
}

}  // namespace mariner::iscsi
