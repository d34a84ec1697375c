// What a peer sends: any bytes, in pieces of any size, to the receiver of frames; each frame to
// every reader of a message; and all of it as the token that an administrator pastes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "proto/check.h"
#include "server/peer/enrolment.h"
#include "server/peer/frame_receiver.h"
#include "server/peer/frame_sender.h"
#include "server/peer/hello.h"
#include "server/peer/invitation.h"

using namespace mariner;
using namespace mariner::peer;

namespace {

constexpr std::chrono::nanoseconds kNow = std::chrono::seconds(1);
const WallTime kWall{std::chrono::days(20'000)};
// As many as are allowed cost too much memory for a fuzzer.
constexpr FrameBounds kBounds{.header_bytes_max = 4096, .payload_bytes_max = 256 * 1024};

// Made once: a node with its cluster's authority, and an invitation that waits.
struct World {
  Authority authority = make_authority("north", kWall).value();
  PrivateKey key = PrivateKey::generate().value();
  std::string signing_request = make_signing_request(key).value();
  Certificate certificate = sign_node(authority, {"north", "two"}, signing_request, kWall).value();
};

class Sink final : public FrameSink {
 public:
  explicit Sink(const World& world) : world_(world) {}

  bool on_frame(std::string_view header, Payload payload) override {
    CHECK(!header.empty() && header.size() <= kBounds.header_bytes_max);
    CHECK(payload.size() <= kBounds.payload_bytes_max);
    const std::size_t bytes = payload.size();
    sender.push(std::string(header), {.payload = std::move(payload), .offset = 0, .length = bytes});
    (void)check_hello(header, world_.certificate, {"north", "one"}, "");
    InvitationBook book;
    Inviter inviter(world_.authority, "north", book);
    // No secret is guessed.
    CHECK(!inviter.answer(header, "192.0.2.1:1", kNow, kWall).enrolled);
    (void)take_enrol_reply(header, world_.key, world_.authority.certificate, kWall);
    (void)sign_node(world_.authority, {"north", "two"}, header, kWall);
    (void)Certificate::from_der(header);
    return true;
  }
  void on_bad_frame(Error error) override {
    CHECK(error.code == ErrorCode::kProtocol && !bad);
    bad = true;
  }

  FrameSender sender;  // gets what was received
  bool bad = false;

 private:
  const World& world_;
};

// The frames in `bytes` without heartbeats, up to the first that is bad or not whole.
std::string frames_of(std::string_view bytes) {
  std::string frames;
  while (bytes.size() >= kFramePrefixBytes) {
    FramePrefix prefix;
    std::memcpy(prefix.data(), bytes.data(), prefix.size());
    const auto lengths = parse_prefix(prefix, kBounds);
    if (!lengths) break;
    const std::size_t length = kFramePrefixBytes + lengths->header_bytes + lengths->payload_bytes;
    if (length > bytes.size()) break;
    if (!lengths->heartbeat()) frames += bytes.substr(0, length);
    bytes.remove_prefix(length);
  }
  return frames;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const World world;
  if (size < 2) return 0;
  const std::size_t piece_max = data[0] + std::size_t{data[1]} * 256 + 1;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 2), size - 2);
  FrameReceiver receiver(kBounds);
  Sink sink(world);
  for (std::string_view rest = bytes; !rest.empty();) {
    const auto place = receiver.prepare();
    CHECK(place.empty() == receiver.stopped() && receiver.stopped() == sink.bad);
    if (place.empty()) break;
    const std::size_t piece = std::min({place.size(), rest.size(), piece_max});
    std::memcpy(place.data(), rest.data(), piece);
    receiver.received(piece, sink);
    rest.remove_prefix(piece);
  }
  // What came in goes out as it was.
  std::string again;
  while (!sink.sender.empty()) {
    const auto piece = sink.sender.pending();
    const std::size_t bytes_sent = std::min(piece.size(), piece_max);
    again.append(reinterpret_cast<const char*>(piece.data()), bytes_sent);
    sink.sender.sent(bytes_sent);
  }
  CHECK(again == frames_of(bytes));

  const auto invitation = parse_token(bytes);
  if (invitation) CHECK(parse_token(to_token(*invitation)).value() == *invitation);
  (void)parse_uri(bytes);
  return 0;
}
