// A daemon without a daemon: the real admin server over a FakeControl, and the command run against
// it as a person or a script would.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "server/admin/admin_server.h"
#include "server/client/command.h"
#include "tests/server/admin/fake_control.h"
#include "tests/server/client/zones.h"
#include "tests/server/web/raw_client.h"

namespace mariner::client {

class DaemonTest : public testing::Test {
 protected:
  static constexpr VersionTime kNow{1795181525'123456789};  // 2026-11-20T14:32:05.123456789+01:00

  DaemonTest()
      : socket((std::filesystem::temp_directory_path() / ("mariner-d-" + std::to_string(getpid())))
                   .string()) {
    thread_.run([this] {
      server_ = *admin::open_admin_server(thread_.io, socket, control);
      server_->start();
      return 0;
    });
  }
  ~DaemonTest() override {
    thread_.run([this] {
      server_.reset();
      return 0;
    });
  }

  // Runs `mariner WORDS --socket ...`; the result is in code, out and err.
  void run(std::vector<std::string> words) {
    words.push_back("--socket");
    words.push_back(socket);
    run_as_is(words);
  }

  void run_as_is(const std::vector<std::string>& words) {
    control.asked.clear();
    const ZoneOf zone("Europe/Berlin");
    std::istringstream in(typed);
    std::ostringstream out_stream;
    std::ostringstream err_stream;
    const Console console{.in = in,
                          .out = out_stream,
                          .err = err_stream,
                          .in_is_terminal = terminal,
                          .out_is_terminal = terminal};
    code = run_command(words, console, zone, [] { return kNow; });
    out = out_stream.str();
    err = err_stream.str();
  }

  // What `work` returns, run on the daemon's thread.
  template <typename Work>
  auto on_daemon(Work work) {
    return thread_.run(std::move(work));
  }

  static api::Moment moment(std::uint64_t sequence, std::uint64_t time_ns) {
    api::Moment moment;
    moment.set_sequence(sequence);
    moment.set_time_ns(time_ns);
    return moment;
  }

  std::string socket;
  admin::FakeControl control;
  bool terminal = false;  // whether a person sits there
  std::string typed;      // what the person types
  int code = -1;
  std::string out;
  std::string err;

 private:
  web::ServerThread thread_;
  std::unique_ptr<web::HttpServer> server_;
};

}  // namespace mariner::client
