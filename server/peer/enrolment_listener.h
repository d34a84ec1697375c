// Where new nodes connect to, to get their certificates. Nobody has one yet, so anybody may come:
// few at a time, each for a short time, with one short request.
//
// Executor's thread. Nothing is called from within a call to the listener.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "proto/endpoint.h"
#include "proto/error.h"
#include "server/peer/channel.h"
#include "server/peer/enrolment.h"

namespace mariner::peer {

class EnrolmentObserver {
 public:
  virtual ~EnrolmentObserver() = default;
  // A certificate was made for this node, for who asked from there.
  virtual void enrolled(const NodeName& name, std::string_view remote) = 0;
  // Somebody got none; the message has the address. As often as they come.
  virtual void refused(const Error& reason) = 0;
};

struct EnrolmentListenerOptions {
  std::vector<Endpoint> addresses;
  std::size_t connections_max = 16;  // where a new one is one too many, the oldest goes
};

class EnrolmentListener {
 public:
  // Binds and listens on every address, or none: kIo. `environment` has TlsContext::for_inviting();
  // its handshake time is that of a whole enrolment. `inviter`, `observer` and what `environment`
  // refers to outlive the listener.
  [[nodiscard]] static Result<std::unique_ptr<EnrolmentListener>> open(
      Channel::Environment environment, const EnrolmentListenerOptions& options, Inviter& inviter,
      EnrolmentObserver& observer);
  // Begins to accept. Once.
  void start();
  // Cuts who is there. Not from within a callback.
  ~EnrolmentListener();
  EnrolmentListener(const EnrolmentListener&) = delete;
  EnrolmentListener& operator=(const EnrolmentListener&) = delete;

  // The addresses that are listened on, with the ports that were chosen.
  [[nodiscard]] std::vector<Endpoint> addresses() const;
  [[nodiscard]] std::size_t connections() const;

 private:
  class Impl;
  explicit EnrolmentListener(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace mariner::peer
