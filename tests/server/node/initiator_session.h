// A session of a real initiator over the network. Logs in when it is made, out when it is gone.
#pragma once

#include <string>

struct iscsi_context;

namespace mariner::node::testing {

class InitiatorSession {
 public:
  static constexpr const char* kName = "iqn.2026-11.org.example:initiator";

  InitiatorSession(const std::string& address, const std::string& target);
  ~InitiatorSession();
  InitiatorSession(const InitiatorSession&) = delete;
  InitiatorSession& operator=(const InitiatorSession&) = delete;

  // A command that reads the first block.
  void use();

 private:
  iscsi_context* const context_;
};

}  // namespace mariner::node::testing
