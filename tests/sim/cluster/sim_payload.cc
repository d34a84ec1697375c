#include "tests/sim/cluster/sim_payload.h"

#include <cstring>

namespace mariner::test {
namespace {

using replication::WriteKind;
using replication::WriteRequest;

// A word says the attempt, and which one of the write's words it is.
constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr std::size_t kBlockWords = kBlockBytes / kWord;
constexpr unsigned kPlaceBits = 20;
constexpr std::uint64_t kWholeEvery = 8;

// (Loops of a constant length are what a compiler makes cheap.)
void fill_block(std::byte* block, std::uint64_t first) {
  auto* const words = reinterpret_cast<std::uint64_t*>(block);
  for (std::size_t i = 0; i < kBlockWords; ++i) words[i] = first + i;
}

bool is_block(const std::byte* block, std::uint64_t first) {
  const auto* const words = reinterpret_cast<const std::uint64_t*>(block);
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < kBlockWords; ++i) wrong |= words[i] ^ (first + i);
  return wrong == 0;
}

}  // namespace

WriteRequest sim_write(BlockRange extent, std::uint64_t attempt) {
  WriteRequest request;
  const bool whole = attempt % kWholeEvery == 0;
  request.kind = whole ? WriteKind::kData : WriteKind::kRepeated;
  request.extent = extent;
  request.target_time = {attempt};
  const std::size_t bytes = (whole ? extent.count.value : 1) * kBlockBytes;
  Payload payload = Payload::allocate(bytes);
  const std::uint64_t first = attempt << kPlaceBits;
  for (std::size_t at = 0; at < bytes; at += kBlockBytes) {
    fill_block(payload.data() + at, first + at / kWord);
  }
  request.payload = {std::move(payload), 0, bytes};
  return request;
}

std::uint64_t attempt_of(const WriteRequest& request) {
  if (request.payload.length < kWord) return request.target_time.ns;
  std::uint64_t word = 0;
  std::memcpy(&word, request.payload.bytes().data(), kWord);
  return word >> kPlaceBits;
}

std::optional<std::string> payload_fault(const WriteRequest& request) {
  if (request.kind == WriteKind::kRollback) return std::nullopt;
  const auto bytes = request.payload.bytes();
  const std::uint64_t first = request.target_time.ns << kPlaceBits;
  bool right = !bytes.empty() && bytes.size() % kBlockBytes == 0;
  for (std::size_t at = 0; right && at < bytes.size(); at += kBlockBytes) {
    right = is_block(bytes.data() + at, first + at / kWord);
  }
  if (right) return std::nullopt;
  return "the payload of attempt " + std::to_string(request.target_time.ns) +
         " arrives as something else: it begins as one of attempt " +
         std::to_string(attempt_of(request));
}

}  // namespace mariner::test
