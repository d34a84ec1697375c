#include "tests/sim/cluster/connection_ways.h"

#include <utility>

#include "proto/check.h"

namespace mariner::test {
namespace {

using replication::NodeId;
using Side = SimConnection::Side;

class OwnConnection final : public SimConversation {
 public:
  OwnConnection(SimConnectionPtr connection, const Directory& directory, SimWays::With with,
                replication::ConnectionId there)
      : connection_(std::move(connection)), directory_(directory), with_(with), there_(there) {}

  void tell(replication::FromCoordinator message) override {
    if (with_.logger) {
      auto told = replication::to_logger(std::move(message));
      CHECK(told.has_value());
      connection_->send(Side::kDialled, [directory = &directory_, node = with_.node, id = there_,
                                         told = std::move(*told)]() mutable {
        if (auto* log = directory->log(node)) log->received(id, std::move(told));
      });
    } else {
      auto told = replication::to_storage(std::move(message));
      CHECK(told.has_value());
      connection_->send(Side::kDialled, [directory = &directory_, node = with_.node, id = there_,
                                         told = std::move(*told)]() mutable {
        if (auto* part = directory->storage(node)) part->received(id, std::move(told));
      });
    }
  }
  void ask(const cluster::HistoryFrame& question) override {
    connection_->send(Side::kDialled,
                      [directory = &directory_, node = with_.node, id = there_, question] {
                        if (auto* part = directory->storage(node)) part->reads.asked(id, question);
                      });
  }
  void close() override { connection_->close(Side::kDialled); }

 private:
  const SimConnectionPtr connection_;
  const Directory& directory_;
  const SimWays::With with_;
  const replication::ConnectionId there_;
};

}  // namespace

std::unique_ptr<SimConversation> ConnectionWays::begin(const With& with, Heard heard) {
  const Directory& directory = directories_(with.volume);
  auto* const log = with.logger ? directory.log(with.node) : nullptr;
  auto* const part = with.logger ? nullptr : directory.storage(with.node);
  if (log == nullptr && part == nullptr) return nullptr;
  const SimConnectionPtr connection = network_.connect(node_, directory.node(with.node));
  if (connection == nullptr) return nullptr;
  const auto answer = [connection, told = std::move(heard.told)](const auto& message) {
    connection->send(Side::kAccepted, [told, message] { told(replication::widen(message)); });
  };
  const auto id = log != nullptr ? log->accept(answer) : part->host.accept(answer);
  connection->on_closed(Side::kAccepted, [directory = &directory, with, id] {
    if (with.logger) {
      if (auto* there = directory->log(with.node)) there->closed(id);
    } else if (auto* storage = directory->storage(with.node)) {
      storage->host.closed(id);
    }
  });
  connection->on_closed(Side::kDialled, [lost = std::move(heard.lost)] { lost(); });
  if (part != nullptr && with.asks) {
    part->reads.connected(
        id, [connection, answered = std::move(heard.answered)](const cluster::HistoryFrame& frame) {
          connection->send(Side::kAccepted, [answered, frame] { answered(frame); });
        });
  }
  return std::make_unique<OwnConnection>(connection, directory, with, id);
}

}  // namespace mariner::test
