// A node on real files and sockets in a directory of the test's own, its event loop on a thread of
// its own, asked through admin::Control and read and written with SCSI commands.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "server/node/node.h"
#include "server/node/node_control.h"
#include "tests/server/node/initiator_session.h"
#include "tests/server/node/loop_thread.h"

namespace mariner::node::testing {

class NodeFixture : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kVolumeBytes = 1u << 20;

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
    return loop_->run(std::move(work));
  }

  template <typename T, typename Request>
  Result<T> ask(void (NodeControl::*call)(const Request&, admin::Answer<T>),
                const std::type_identity_t<Request>& request) {
    return loop_->answer<Result<T>>(
        [this, call, request](auto done) { (control_.get()->*call)(request, std::move(done)); });
  }

  template <typename T>
  Result<T> ask(void (NodeControl::*call)(admin::Answer<T>)) {
    return loop_->answer<Result<T>>(
        [this, call](auto done) { (control_.get()->*call)(std::move(done)); });
  }

  // What `ask` is answered with, asked on the loop's thread.
  template <typename T, typename Ask>
  Result<T> answer(Ask ask) {
    return loop_->answer<Result<T>>(std::move(ask));
  }
  [[nodiscard]] NodeControl& node_control() { return *control_; }

  Result<api::Volume> import(const api::ImportRequest& request);
  Result<api::Clone> clone(const api::CloneRequest& request);

  // A volume of kVolumeBytes.
  api::Volume create(const std::string& name);
  // 4 KiB, all of one byte, of a volume's or view's target.
  scsi::Status write(const std::string& iqn, std::uint64_t block, char byte);
  char read(const std::string& iqn, std::uint64_t block);
  // Repairs of a moment: the blocks, all of one byte. Their id; empty: it was refused.
  std::string hand_over(const std::string& volume, std::uint64_t sequence,
                        const std::vector<std::uint64_t>& blocks, char byte);
  std::unique_ptr<InitiatorSession> log_in(const std::string& iqn);

  // Whether it comes true while the node goes on.
  static bool eventually(const std::function<bool()>& condition) {
    return LoopThread::eventually(condition);
  }

  static api::MomentSpec at_sequence(std::uint64_t sequence);
  static api::MomentSpec at_time(std::uint64_t ns);
  static api::MomentSpec at_mark(const std::string& mark);

 private:
  std::string directory_;
  const int null_;
  Log log_{{.fd = null_}};
  Config config_;
  std::unique_ptr<LoopThread> loop_;
  std::unique_ptr<Node> node_;
  std::unique_ptr<NodeControl> control_;
};

}  // namespace mariner::node::testing
