// Any bytes, in any pieces, to a connection: it must neither crash nor hang nor keep what it holds.
//
// The first byte chooses how far the peer has come before: nothing, logged in, logged in with
// digests, or a discovery session. The second is the size of the pieces.
#include <cstdint>
#include <cstring>
#include <span>

#include "proto/check.h"
#include "tests/server/iscsi/iscsi_testing.h"

using namespace mariner;
using namespace mariner::iscsi;

namespace {

void log_in(TestClient& client, unsigned how) {
  const std::string host = keys({"InitiatorName=iqn.2026-11.test:host"});
  const std::string normal = host + keys({"TargetName=iqn.2026-11.org.mariner:disk"});
  switch (how % 4) {
    case 0: return;
    case 1:
      client.feed(login_pdu(normal + keys({"InitialR2T=No"}), kOperationalToFull).wire());
      return;
    case 2:
      client.feed(
          login_pdu(normal + keys({"HeaderDigest=CRC32C", "DataDigest=CRC32C"}), kOperationalToFull)
              .wire());
      return;
    default:
      client.feed(login_pdu(host + keys({"SessionType=Discovery"}), kOperationalToFull).wire());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::uint64_t held = Payload::total_bytes();
  {
    Options options;
    options.payload_bytes_max = 1 << 20;
    TestServer server(options);
    server.device().hold = (data[0] & 4) != 0;
    {
      TestClient client(server);
      log_in(client, data[0]);
      client.chunk_bytes_max = data[1] == 0 ? SIZE_MAX : data[1];
      auto bytes = std::as_bytes(std::span(data, size)).subspan(2);
      // The output is taken now and then, so that reading goes on.
      while (!bytes.empty() && !client.connection.closing()) {
        const auto piece = bytes.first(std::min<std::size_t>(bytes.size(), 4096));
        bytes = bytes.subspan(piece.size());
        client.feed(piece);
        static_cast<void>(client.take_bytes());
      }
      while (!server.device().pending.empty()) server.device().answer_oldest();
      static_cast<void>(client.take_bytes());
    }
    CHECK(server.observer.ended.size() == 1);
    CHECK(server.registry->size() == 0);
  }
  CHECK(Payload::total_bytes() == held);
  return 0;
}
