// SPDX-License-Identifier: GPL-2.0-only
// A session with marinerd that is there again whenever marinerd is: commands wait meanwhile, and
// what was sent and not answered is sent again, in its order. Sans threads: `ready` and `due` are
// called by a Reactor, and nothing here waits but `open` and `run`.
//
// - Each login ends the session before it at marinerd (same initiator and ISID, RFC 7143 6.3.5), so
//   that nothing of it is carried out behind what is sent again.
// - A command that must not be carried out twice is not sent again; its owner is told.
// - A command that waits, and that nobody wants any more, is dropped: what a host has given up is
// not
//   written when marinerd comes back.
// - No command is answered within `submit`.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "server/tgt/command.h"
#include "server/tgt/options.h"
#include "server/tgt/reactor.h"

extern "C" {
#include <iscsi/iscsi.h>
}

namespace mariner::tgt {

class Session final : public Watched {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void answered(Command& command) = 0;
    // Whether a command that waits is still to be sent. Asked again and again.
    [[nodiscard]] virtual bool wanted(const Command& command) const = 0;
    // A unit attention that no command of the owner's brought. The code with its qualifier.
    virtual void attention(std::uint16_t code) = 0;
    // A session is there again, after one was lost. Whatever waited is on its way.
    virtual void came_back() = 0;
    // For the log: it was lost; and why it cannot be had back yet, as often as that changes.
    virtual void went_away(const std::string& why) = 0;
    virtual void stays_away(const std::string& why) = 0;
  };

  Session(Options options, Reactor& reactor, Owner& owner);
  ~Session() override;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Logs in, and waits for that, at most until then. Nobody who listens is waited for, too; a
  // login that is refused is not tried again. What was wrong; empty: nothing.
  [[nodiscard]] std::string open(Clock::time_point until);
  // Waits for the answer of one command, while nothing else is under way; before `follow`. False:
  // there is none.
  [[nodiscard]] bool run(Command& command, Clock::time_point until);
  // From now on the reactor serves it, and it reconnects by itself.
  void follow();

  void submit(Command& command);
  // Ends what the session knows of, so that all is sent again in a new one: commands that marinerd
  // has dropped without an answer (a reset by somebody else) are not answered in this one.
  void restart(const std::string& why);
  // Commands that are not answered yet, in their order; they are the owner's again. Used at the
  // end.
  CommandList abandon();
  [[nodiscard]] std::size_t waiting() const { return waiting_.size() + sent_.size(); }

  void ready(std::uint32_t events) override;
  void due() override;

 private:
  enum class State { kAway, kConnecting, kReady };

  void connect();
  void logged_in();
  void probe();
  void probed();
  void send(Command& command);
  void send_waiting();
  void drop_unwanted();
  void service(int events);
  void settle();
  void settle_soon();
  void lose();
  void tell_answers();
  void forget_context();
  void update_events();
  void set_deadline(std::chrono::milliseconds after);
  void fail(const std::string& why);
  static void connected(iscsi_context* context, int status, void* data, void* session);
  static void login_answered(iscsi_context* context, int status, void* data, void* session);
  static void command_answered(iscsi_context* context, int status, void* data, void* command);

  const Options options_;
  Reactor& reactor_;
  Owner& owner_;
  std::uint32_t isid_random_;
  std::uint16_t isid_qualifier_;

  State state_ = State::kAway;
  iscsi_context* context_ = nullptr;
  int fd_ = -1;               // that is watched
  std::uint32_t events_ = 0;  // for which it is watched
  bool followed_ = false;
  bool in_service_ = false;
  bool broken_ = false;          // the context is to be given up as soon as libiscsi has returned
  bool settle_at_once_ = false;  // that is what the deadline is for
  bool refused_ = false;         // marinerd is there, and does not let us in
  bool was_lost_ = false;        // and the owner has been told
  std::string why_;
  std::string told_;  // of the reasons for staying away, the last one that was told
  std::chrono::milliseconds pause_;

  Command
      probe_;  // TEST UNIT READY: takes the attentions of a new session, and finds lost commands
  bool probing_ = false;
  bool probe_sent_ = false;  // it is in `sent_`
  std::uint64_t answers_ = 0;
  std::uint64_t answers_at_deadline_ = 0;
  int silent_ = 0;  // deadlines since the probe was sent, without any answer
  CommandList waiting_;
  CommandList sent_;
  CommandList answered_;  // that the owner is to be told of when libiscsi has returned
};

}  // namespace mariner::tgt
