// marinerd: the daemon. Reads the configuration, starts the node, tells systemd, and runs the loop.
#include <signal.h>
#include <systemd/sd-daemon.h>

#include <CLI/CLI.hpp>
#include <boost/asio/signal_set.hpp>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "proto/heap.h"
#include "server/node/cluster_node.h"
#include "server/node/config.h"
#include "server/node/config_desk.h"
#include "server/node/event_loop.h"
#include "server/node/log.h"
#include "server/node/node.h"

namespace {

using mariner::Config;
using mariner::Log;

// Reports to the watchdog from within the loop: a loop that hangs is restarted.
void feed_watchdog(mariner::node::EventLoop& loop, std::chrono::microseconds interval) {
  ::sd_notify(0, "WATCHDOG=1");
  loop.after(interval, [&loop, interval] { feed_watchdog(loop, interval); });
}

class SignalHandler {
 public:
  SignalHandler(mariner::node::EventLoop& loop, mariner::node::Daemon& node, Log& log,
                std::string config_path)
      : loop_(loop),
        node_(node),
        log_(log),
        config_path_(std::move(config_path)),
        signals_(loop.context(), SIGTERM, SIGINT, SIGHUP) {
    wait();
  }

 private:
  void wait() {
    signals_.async_wait([this](const boost::system::error_code& error, int signal) {
      if (error) return;
      if (signal == SIGHUP) {
        // (What is wrong has been logged.)
        static_cast<void>(mariner::node::reload_config(node_, config_path_, log_));
      } else if (stopping_) {
        log_.warning("a second signal: exiting at once; the log has what was acknowledged");
        std::_Exit(1);
      } else {
        stopping_ = true;
        ::sd_notify(0, "STOPPING=1");
        node_.stop([this] { loop_.stop(); });
      }
      wait();
    });
  }

  mariner::node::EventLoop& loop_;
  mariner::node::Daemon& node_;
  Log& log_;
  const std::string config_path_;
  boost::asio::signal_set signals_;
  bool stopping_ = false;
};

std::unique_ptr<mariner::node::Daemon> make_daemon(Config config, const std::string& config_path,
                                                   mariner::node::EventLoop& loop, Log& log) {
  if (config.standalone()) {
    return std::make_unique<mariner::node::Node>(std::move(config), config_path, loop, log);
  }
  return std::make_unique<mariner::node::ClusterNode>(std::move(config), config_path, loop, log);
}

// A start that goes on may take as long again as it takes to tell of the next step.
constexpr std::uint64_t kMoreTime_us = 60'000'000;

int run(const std::string& config_path, const Log::Options& log_options) {
  Log log(log_options);
  mariner::ConfigReading reading = mariner::load_config(config_path);
  mariner::node::log_problems(reading, log);
  if (!reading.config) return 2;
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);  // who starts it may ignore that, and how programs end is asked for
  // Payloads of pending writes come and go by the hundred megabytes.
  mariner::keep_freed_memory(64 << 20, 512 << 20);
  mariner::node::EventLoop loop;
  const std::unique_ptr<mariner::node::Daemon> node =
      make_daemon(*std::move(reading.config), config_path, loop, log);
  node->on_progress([](std::uint64_t records) {
    ::sd_notifyf(0, "EXTEND_TIMEOUT_USEC=%llu\nSTATUS=recovering the log: %llu records",
                 static_cast<unsigned long long>(kMoreTime_us),
                 static_cast<unsigned long long>(records));
  });
  if (const auto started = node->start(); !started) {
    log.error("cannot start", {{"error", to_string(started.error())}});
    // Volumes may be half started, with work that only the loop could complete. Nothing is lost
    // by leaving it: what was acknowledged is in the log.
    std::_Exit(1);
  }
  const SignalHandler signals(loop, *node, log, config_path);
  ::sd_notify(0, "READY=1\nSTATUS=");
  std::uint64_t watchdog_us = 0;
  if (::sd_watchdog_enabled(0, &watchdog_us) > 0) {
    feed_watchdog(loop, std::chrono::microseconds(watchdog_us / 3));
  }
  loop.run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("marinerd: an iSCSI target whose LUNs remember every write");
  std::string config_path{mariner::kDefaultConfigPath};
  std::string format = "text";
  bool debug = false;
  app.add_option("-c,--config", config_path, "configuration file")->capture_default_str();
  app.add_option("--log-format", format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.add_flag("--debug", debug, "log more");
  app.set_version_flag("--version", MARINER_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  }
  Log::Options options;
  options.format = format == "json" ? mariner::LogFormat::kJson : mariner::LogFormat::kText;
  if (debug) options.level = mariner::LogLevel::kDebug;
  return run(config_path, options);
}
