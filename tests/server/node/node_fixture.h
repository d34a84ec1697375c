// A node on real files and sockets in a directory of the test's own, its event loop on a thread of
// its own, asked through admin::Control and read and written with SCSI commands.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "proto/check.h"
#include "server/node/node.h"
#include "server/node/node_control.h"

struct iscsi_context;

namespace mariner::node::testing {

// A session of a real initiator over the network. Logs in when it is made, out when it is gone.
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

class NodeFixture : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kVolumeBytes = 1u << 20;
  static constexpr auto kPatience = std::chrono::seconds(20);

  NodeFixture();
  ~NodeFixture() override;

  void start();
  void stop();
  // The second half of stop(), for a test that has stopped the node itself.
  void stopped();
  [[nodiscard]] std::string path(const std::string& name) const { return directory_ + "/" + name; }
  // Of a node in the fixture's directory; a test may change it before the next start().
  [[nodiscard]] Config& config() { return config_; }
  [[nodiscard]] Log& log() { return log_; }
  [[nodiscard]] Node& node() { return *node_; }

  // What `work` returns, run on the loop's thread.
  template <typename Work>
  auto on_loop(Work work) {
    using Value = std::invoke_result_t<Work>;
    auto promise = std::make_shared<std::promise<Value>>();
    loop_->post([promise, work = std::move(work)]() mutable {
      if constexpr (std::is_void_v<Value>) {
        work();
        promise->set_value();
      } else {
        promise->set_value(work());
      }
    });
    return await(promise);
  }

  template <typename T, typename Request>
  Result<T> ask(void (NodeControl::*call)(const Request&, admin::Answer<T>),
                const std::type_identity_t<Request>& request) {
    auto promise = std::make_shared<std::promise<Result<T>>>();
    loop_->post([this, call, request, promise] {
      (control_.get()->*call)(
          request, [promise](Result<T> answer) { promise->set_value(std::move(answer)); });
    });
    return await(promise);
  }

  template <typename T>
  Result<T> ask(void (NodeControl::*call)(admin::Answer<T>)) {
    auto promise = std::make_shared<std::promise<Result<T>>>();
    loop_->post([this, call, promise] {
      (control_.get()->*call)(
          [promise](Result<T> answer) { promise->set_value(std::move(answer)); });
    });
    return await(promise);
  }

  Result<api::Volume> import(const api::ImportRequest& request);

  // A volume of kVolumeBytes.
  api::Volume create(const std::string& name);
  // 4 KiB, all of one byte, of a volume's or view's target.
  scsi::Status write(const std::string& iqn, std::uint64_t block, char byte);
  char read(const std::string& iqn, std::uint64_t block);
  std::unique_ptr<InitiatorSession> log_in(const std::string& iqn);

  // Whether it comes true while the node goes on.
  static bool eventually(const std::function<bool()>& condition);

  static api::MomentSpec at_sequence(std::uint64_t sequence);
  static api::MomentSpec at_time(std::uint64_t ns);
  static api::MomentSpec at_mark(const std::string& mark);

 private:
  template <typename Value>
  static Value await(const std::shared_ptr<std::promise<Value>>& promise) {
    std::future<Value> future = promise->get_future();
    CHECK_MSG(future.wait_for(kPatience) == std::future_status::ready,
              "what a test waits for does not come");
    return future.get();
  }
  scsi::Response execute(const std::string& iqn, const std::array<std::uint8_t, 16>& cdb,
                         const Payload& data);

  std::string directory_;
  const int null_;
  Log log_{{.fd = null_}};
  Config config_;
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<Node> node_;
  std::unique_ptr<NodeControl> control_;
  std::thread thread_;
};

}  // namespace mariner::node::testing
