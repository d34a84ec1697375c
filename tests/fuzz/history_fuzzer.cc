// What nodes say about the history: any header with any length of bytes, as a question and as an
// answer. What is understood comes back as it was when it is said again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "proto/check.h"
#include "server/cluster/history_wire.h"

using namespace mariner;
using namespace mariner::cluster;

namespace {

Payload whole(const PayloadSlice& slice) {
  if (slice.length == 0) return {};
  Payload copy = Payload::allocate(slice.length);
  std::copy(slice.bytes().begin(), slice.bytes().end(), copy.bytes().begin());
  return copy;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  // The first byte: how many blocks come with it, or how long the header is, and the rest comes
  // with it.
  constexpr std::uint8_t kRest = 128;
  std::string_view header(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::size_t bytes = std::size_t{data[0]} % 5 * kBlockBytes;
  std::string_view rest;
  if (data[0] >= kRest) {
    rest = header.substr(std::min<std::size_t>(data[0] - kRest, header.size()));
    header.remove_suffix(rest.size());
    bytes = rest.size();
  }
  Payload payload = bytes == 0 ? Payload{} : Payload::allocate(bytes);
  std::transform(rest.begin(), rest.end(), payload.bytes().begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  if (const Result<HistoryQuestion> question = decode_question(header, payload); question) {
    const HistoryFrame said = encode(*question);
    const Result<HistoryQuestion> again = decode_question(said.header, whole(said.payload));
    CHECK(again.has_value() && encode(*again).header == said.header);
  }
  if (const Result<HistoryAnswer> answer = decode_answer(header, payload); answer) {
    const HistoryFrame said = encode(*answer);
    const Result<HistoryAnswer> again = decode_answer(said.header, whole(said.payload));
    CHECK(again.has_value() && encode(*again).header == said.header);
    // (Messages may have come in more bytes than they need, and numbers one by one, which takes
    // fewer where there is one: two bytes become three.)
    const bool message = std::holds_alternative<SummaryAnswer>(answer->what) ||
                         std::holds_alternative<VersionsAnswer>(answer->what);
    CHECK(message ? said.payload.length <= bytes + bytes / 2 : said.payload.length == bytes);
  }
  return 0;
}
