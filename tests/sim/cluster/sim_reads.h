// What a storage node of the simulated cluster answers to a target that stores nothing: the
// production's questions, sessions and reads over the contents that the node has.
#pragma once

#include <map>
#include <memory>

#include "replication/storage_host.h"
#include "server/cluster/history_session.h"
#include "server/cluster/served_reads.h"
#include "tests/sim/cluster/sim_storage.h"

namespace mariner::test {

// A block as bytes, and back.
[[nodiscard]] PayloadSlice bytes_of(const BlockValue& value);
[[nodiscard]] BlockValue value_of(const PayloadSlice& bytes);
// As the receiver of frames has it: a payload of its own.
[[nodiscard]] Payload received_payload(const PayloadSlice& sent);

class SimReads {
 public:
  using Answer = std::function<void(const cluster::HistoryFrame&)>;

  // All outlive it.
  SimReads(SimNode& node, const SimStorage& storage, const replication::StorageHost& host);
  ~SimReads();
  SimReads(const SimReads&) = delete;
  SimReads& operator=(const SimReads&) = delete;

  // A conversation of the host is one that asks, too.
  void connected(replication::ConnectionId connection, Answer answer);
  void asked(replication::ConnectionId connection, const cluster::HistoryFrame& frame);
  // The storage has committed something, or listens to somebody else.
  void look() { reads_.look(); }

 private:
  struct Contents final : public volume::CurrentReader {
    explicit Contents(const SimStorage& of_storage) : storage(of_storage) {}
    void read(BlockRange range, volume::ReadDone done) override;
    const SimStorage& storage;
  };

  Contents contents_;
  cluster::ServedReads reads_;
  std::map<replication::ConnectionId, std::unique_ptr<cluster::HistorySession>> sessions_;
};

}  // namespace mariner::test
