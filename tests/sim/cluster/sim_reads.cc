#include "tests/sim/cluster/sim_reads.h"

#include <cstring>
#include <utility>

#include "proto/check.h"

namespace mariner::test {

PayloadSlice bytes_of(const BlockValue& value) {
  const Payload block = Payload::zeroed(kBlockBytes);
  Payload filled = block;
  std::memcpy(filled.data(), &value.sequence.value, sizeof value.sequence.value);
  std::memcpy(filled.data() + sizeof value.sequence.value, &value.attempt, sizeof value.attempt);
  return {block, 0, kBlockBytes};
}

BlockValue value_of(const PayloadSlice& bytes) {
  BlockValue value;
  std::memcpy(&value.sequence.value, bytes.bytes().data(), sizeof value.sequence.value);
  std::memcpy(&value.attempt, bytes.bytes().data() + sizeof value.sequence.value,
              sizeof value.attempt);
  return value;
}

Payload received_payload(const PayloadSlice& sent) {
  if (sent.length == 0) return {};
  Payload copy = Payload::allocate(sent.length);
  std::memcpy(copy.data(), sent.bytes().data(), sent.length);
  return copy;
}

void SimReads::Contents::read(BlockRange range, volume::ReadDone done) {
  CHECK(range.count.value == 1);
  done(bytes_of(storage.value(range.first.value)));
}

SimReads::SimReads(SimNode& node, const SimStorage& storage, const replication::StorageHost& host)
    : contents_(storage), reads_(contents_, host, node, {UINT32_MAX}) {}

SimReads::~SimReads() {
  sessions_.clear();
  reads_.close();
}

void SimReads::connected(replication::ConnectionId connection, Answer answer) {
  sessions_[connection] = std::make_unique<cluster::HistorySession>(cluster::HistorySession::Parts{
      [](VolumeId) { return nullptr; }, [](VolumeId) { return nullptr; },
      [answer = std::move(answer)](const cluster::HistoryFrame& frame) {
        answer(frame);
        return true;
      },
      nullptr, [this](VolumeId) { return &reads_; }});
}

void SimReads::asked(replication::ConnectionId connection, const cluster::HistoryFrame& frame) {
  const auto session = sessions_.find(connection);
  if (session == sessions_.end()) return;
  Result<cluster::HistoryQuestion> question =
      cluster::decode_question(frame.header, received_payload(frame.payload));
  CHECK(question.has_value());
  CHECK(session->second->received(*std::move(question)).has_value());
}

}  // namespace mariner::test
