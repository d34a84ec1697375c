#include "ifsck/fast_commit.h"

#include <fmt/format.h>

#include <optional>

#include "ifsck/ext_checksum.h"
#include "proto/field.h"

namespace mariner::ifsck {
namespace {

using Kind = FastOperation::Kind;

constexpr std::size_t kTagHeadBytes = 4;        // of each value
constexpr std::uint16_t kLengthMax = 1u << 15;  // more: it is unwritten

// Nothing: it is too short.
std::optional<FastOperation> parse(Kind kind, std::span<const std::byte> bytes) {
  FastOperation out;
  out.kind = kind;
  switch (kind) {
    case Kind::kAddRange: {
      if (bytes.size() < 16) return std::nullopt;
      const auto length = field<std::uint16_t>(bytes, 8);
      out.inode = field<std::uint32_t>(bytes, 0);
      out.logical = field<std::uint32_t>(bytes, 4);
      out.unwritten = length > kLengthMax;
      out.count = out.unwritten ? length - kLengthMax : length;
      out.physical =
          field<std::uint32_t>(bytes, 12) | (FsBlock{field<std::uint16_t>(bytes, 10)} << 32);
      return out;
    }
    case Kind::kDelRange:
      if (bytes.size() < 12) return std::nullopt;
      out.inode = field<std::uint32_t>(bytes, 0);
      out.logical = field<std::uint32_t>(bytes, 4);
      out.count = field<std::uint32_t>(bytes, 8);
      return out;
    case Kind::kCreate:
    case Kind::kLink:
    case Kind::kUnlink: {
      if (bytes.size() < 9) return std::nullopt;
      out.parent = field<std::uint32_t>(bytes, 0);
      out.inode = field<std::uint32_t>(bytes, 4);
      const auto name = bytes.subspan(8);
      out.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
      return out;
    }
    case Kind::kInode:
      if (bytes.size() < 4 + 128) return std::nullopt;
      out.inode = field<std::uint32_t>(bytes, 0);
      out.bytes.assign(bytes.begin() + 4, bytes.end());
      return out;
    default: return std::nullopt;
  }
}

}  // namespace

struct FastCommits::Value {
  Kind kind{};
  std::span<const std::byte> whole;  // with its kind and length
  [[nodiscard]] std::span<const std::byte> bytes() const { return whole.subspan(kTagHeadBytes); }
};

bool FastCommits::take_tail(const Value& value) {
  if (value.bytes().size() < 8) return false;
  const std::uint32_t crc = ext_crc(crc_, value.whole.first(kTagHeadBytes + 4));
  if (field<std::uint32_t>(value.bytes(), 0) != sequence_ ||
      field<std::uint32_t>(value.bytes(), 4) != crc) {
    return false;
  }
  crc_ = 0;
  ++commits_;
  whole_ = operations_.size();
  return true;
}

Result<bool> FastCommits::take(const Value& value) {
  if (value.kind == Kind::kTail) return take_tail(value);
  if (value.kind == Kind::kHead) {
    if (value.bytes().size() < 8 || field<std::uint32_t>(value.bytes(), 4) != sequence_) {
      return false;
    }
    if (const auto features = field<std::uint32_t>(value.bytes(), 0); features != 0) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("the journal's fast commits have features that are not understood "
                               "({:#x}); a mount may help",
                               features)};
    }
    begun_ = true;
  } else if (value.kind != Kind::kPadding) {
    auto operation = parse(value.kind, value.bytes());
    if (!operation) return false;
    operations_.push_back(std::move(*operation));
  }
  crc_ = ext_crc(crc_, value.whole);
  return true;
}

Result<bool> FastCommits::add(std::span<const std::byte> block) {
  for (auto rest = block; rest.size() >= kTagHeadBytes;) {
    const std::size_t length = kTagHeadBytes + field<std::uint16_t>(rest, 2);
    const auto kind = static_cast<Kind>(field<std::uint16_t>(rest, 0));
    if (!begun_ && kind != Kind::kHead) return false;
    Result<bool> taken = false;
    if (length <= rest.size()) taken = take({kind, rest.first(length)});
    if (!taken) return taken;
    if (!*taken) {
      cut_ = operations_.size() > whole_;
      return false;
    }
    rest = rest.subspan(length);
  }
  return true;
}

std::vector<FastOperation> FastCommits::take_operations() {
  operations_.resize(whole_);
  return std::move(operations_);
}

}  // namespace mariner::ifsck
