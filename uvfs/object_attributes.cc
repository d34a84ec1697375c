#include "uvfs/object_attributes.h"

#include <cstdint>
#include <utility>

#include "ifsck/ext_inode.h"
#include "ifsck/overlay.h"
#include "ifsck/view.h"
#include "proto/bytes.h"
#include "uvfs/inode_record.h"

namespace mariner::uvfs {
namespace {

constexpr std::uint32_t kAclKept = 1;
constexpr std::uint32_t kAclGiven = 2;
constexpr std::size_t kAclHeadBytes = 4;
constexpr std::uint16_t kAclUser = 0x02;   // a user with a number
constexpr std::uint16_t kAclGroup = 0x08;  // a group with one
constexpr std::uint32_t kNoNumber = 0xFFFFFFFF;

template <typename T>
void append(std::vector<std::byte>& to, T value) {
  to.resize(to.size() + sizeof(T));
  store_le<T>(to.data() + to.size() - sizeof(T), value);
}

void add(const std::vector<ExtendedAttribute>& from, ObjectAttributes& to) {
  for (const ExtendedAttribute& each : from) {
    if (each.name == "system.data") continue;  // those are contents
    if (each.value_inode != 0) {
      to.skipped.push_back(each.name);
      continue;
    }
    std::vector<std::byte> value(each.value.begin(), each.value.end());
    if (each.name.starts_with("system.posix_acl_")) {
      value = acl_as_given(each.value);
      if (value.empty()) {
        to.skipped.push_back(each.name);
        continue;
      }
    }
    to.all.push_back({each.name, std::move(value)});
  }
}

}  // namespace

Result<ObjectAttributes> read_attributes(ifsck::Past& past, const ifsck::ExtContext& context,
                                         std::span<const std::byte> inode, SequenceNumber at) {
  ObjectAttributes attributes;
  add(attributes_of_inode(inode), attributes);
  const ifsck::FsBlock block = ifsck::ExtInode(inode).attributes();
  if (block == 0 || !context.layout.may_claim(block)) return attributes;
  ifsck::Overlay none;
  ifsck::View view(past, at, none);
  std::vector<std::byte> bytes(context.layout.block_bytes());
  if (const auto read = view.read(context.layout.bytes_of(block), bytes); !read) {
    return read.error();
  }
  add(attributes_of_block(bytes), attributes);
  return attributes;
}

std::vector<std::byte> acl_as_given(std::span<const std::byte> kept) {
  if (kept.size() < kAclHeadBytes || load_le<std::uint32_t>(kept.data()) != kAclKept) return {};
  kept = kept.subspan(kAclHeadBytes);
  std::vector<std::byte> given;
  append(given, kAclGiven);
  while (!kept.empty()) {
    if (kept.size() < 4) return {};
    const auto tag = load_le<std::uint16_t>(kept.data());
    const auto permissions = load_le<std::uint16_t>(kept.data() + 2);
    const bool numbered = tag == kAclUser || tag == kAclGroup;
    if (numbered && kept.size() < 8) return {};
    append(given, tag);
    append(given, permissions);
    append(given, numbered ? load_le<std::uint32_t>(kept.data() + 4) : kNoNumber);
    kept = kept.subspan(numbered ? 8 : 4);
  }
  return given;
}

}  // namespace mariner::uvfs
