// What a node sends about multicast streams, and what anybody sends into the group. First byte 0:
// the rest is a datagram; 1: a message; 2: references in a frame's header; else: a conversation, in
// which the datagrams have good tags, because a node may send nonsense, too.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proto/bytes.h"
#include "proto/check.h"
#include "trm-multicast/incoming_frames.h"

using namespace mariner;
using namespace mariner::trm;

namespace {

void datagram(std::span<const std::byte> bytes) {
  const auto parsed = parse(bytes);
  if (!parsed) return;
  const DatagramHeader& header = parsed->header;
  CHECK(!parsed->body.empty() && parsed->body.size() <= header.length - header.offset);
  const DatagramHeaderBytes again = pack(header);
  CHECK(std::equal(again.begin(), again.end(), bytes.begin()));
}

void message(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const bool with_payload : {false, true}) {
    const Payload payload = with_payload ? Payload::zeroed(1000) : Payload{};
    const Result<Control> heard = decode(text, payload);
    if (!heard) {
      CHECK(heard.error().code == ErrorCode::kProtocol && !heard.error().message.empty());
      continue;
    }
    const std::string said = std::visit([](const auto& each) { return encode(each); }, *heard);
    CHECK(decode(said, payload).has_value());
  }
}

void references(std::span<const std::byte> bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  ReferenceCoder heard;
  ReferenceCoder said;
  while (!text.empty()) {
    const auto reference = take_reference(text, heard);
    if (!reference) return;
    std::string again;
    append(again, *reference, said);
    CHECK(again.size() <= kReferenceBytesMax);
  }
}

// Takes numbers from the input; zeros at its end.
class Input {
 public:
  explicit Input(std::span<const std::byte> bytes) : bytes_(bytes) {}
  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  std::uint32_t number(std::uint32_t bound) {
    std::uint32_t value = 0;
    for (int i = 0; i < 3 && !bytes_.empty(); ++i) {
      value = value << 8 | std::to_integer<std::uint32_t>(bytes_.front());
      bytes_ = bytes_.subspan(1);
    }
    return value % bound;
  }

 private:
  std::span<const std::byte> bytes_;
};

constexpr std::uint64_t kWindow = 64 * 1024;
constexpr std::uint32_t kSpace = 512 * 1024;

void conversation(std::span<const std::byte> bytes) {
  Input input(bytes);
  IncomingFrames frames({.streams_max = 2, .held_bytes_max = 1u << 20, .held_frames_max = 100});
  OpenStream open{.stream = {0}, .group = "239.1.1.1", .port = 1, .window_bytes = kWindow};
  Sealer sealer(open.key, false);
  std::chrono::nanoseconds now = std::chrono::seconds(1);
  const std::vector<std::byte> zeros(kSpace);
  const std::uint64_t before = Payload::total_bytes();
  Result<void> good;
  while (good && !input.empty()) {
    now += std::chrono::microseconds(input.number(2000));
    const StreamId stream{input.number(3)};
    const Position start{input.number(kSpace)};
    switch (input.number(8)) {
      case 0:
        open.stream = stream;
        good = frames.told(FromSender(open));
        break;
      case 1: good = frames.told(FromSender(Admit{stream, start})); break;
      case 2: good = frames.told(FromSender(Dismiss{stream})); break;
      case 3: good = frames.told(FromSender(CloseStream{stream})); break;
      case 4: {
        const std::uint32_t length = 1 + input.number(20'000);
        const Payload payload = Payload::zeroed(length);
        good = frames.told(FromSender(
            Repair{stream, {start, input.number(20'000), length}, {payload, 0, length}}));
        break;
      }
      case 5: good = frames.frame("plain", Payload::zeroed(input.number(20'000))); break;
      case 6:
        good = frames.frame(
            "refers", Reference{stream, start, 1 + input.number(20'000), input.number(9)}, now);
        break;
      default: {
        const std::uint32_t length = 1 + input.number(20'000);
        const std::uint32_t offset = input.number(length);
        const std::uint32_t body = 1 + input.number(length - offset);
        std::vector<std::byte> sealed(body + kDatagramOverheadBytes);
        const auto kind = input.number(5) == 0 ? DatagramKind::kProbe : DatagramKind::kPayload;
        sealer.seal({stream, kind, start, length, offset}, std::span(zeros).first(body), sealed);
        (void)frames.datagram(parse(sealed).value(), now);
      }
    }
    while (good) {
      const auto frame = frames.take();
      if (!frame) good = frame.error();
      if (!frame || !*frame) break;
    }
    (void)frames.take_answers(now);
    (void)frames.deadline();
    // Two streams with twice their windows, one payload more each, and what is held.
    CHECK(Payload::total_bytes() - before <= 2 * (2 * kWindow + 2 * 32 * 1024) + (2u << 20));
  }
  if (!good) CHECK(!good.error().message.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  switch (data[0]) {
    case 0: datagram(bytes); break;
    case 1: message(bytes); break;
    case 2: references(bytes); break;
    default: conversation(bytes);
  }
  return 0;
}
