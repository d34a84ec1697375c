#include "ifsck/directory_index.h"

#include <algorithm>

#include "proto/bytes.h"

namespace mariner::ifsck {
namespace {

constexpr std::size_t kRootAt = 32;  // behind ".", ".." and struct ext2_dx_root_info
constexpr std::size_t kNodeAt = 8;   // behind an entry that is none
constexpr std::size_t kVersionAt = 28;
constexpr std::size_t kLevelsAt = 30;
constexpr std::size_t kEntryBytes = 8;
constexpr std::uint32_t kBlockMask = 0x0fffffff;
constexpr std::uint32_t kHashMax = 0xfffffffe;

}  // namespace

DirectoryIndex::DirectoryIndex(const ExtContext& context, const BlockMap& map)
    : context_(&context) {
  for (const BlockMap::Run& run : map.runs) {
    for (std::uint64_t i = 0; i < run.count; ++i) blocks_.push_back({.physical = run.physical + i});
  }
}

Result<DirectoryIndex> DirectoryIndex::read(const ExtContext& context, const BlockMap& map) {
  DirectoryIndex index(context, map);
  if (index.blocks_.empty()) {
    index.good_ = false;
    return index;
  }
  if (const Result<void> done = index.take_root(); !done) return done.error();
  index.good_ = index.good_ && std::ranges::none_of(index.blocks_, [](const Block& each) {
                  return each.use == Use::kNone;
                });
  return index;
}

Result<void> DirectoryIndex::take_root() {
  const auto bytes = context_->read_block(blocks_.front().physical);
  if (!bytes) return bytes.error();
  version_ = load_le<std::uint8_t>(bytes->data() + kVersionAt);
  if ((context_->super.s_flags & EXT2_FLAGS_UNSIGNED_HASH) != 0 && version_ <= EXT2_HASH_TEA) {
    version_ += EXT2_HASH_LEGACY_UNSIGNED;
  }
  blocks_.front() = {blocks_.front().physical, Use::kNode, 0, kHashMax};
  return take(*bytes, 0, kRootAt, load_le<std::uint8_t>(bytes->data() + kLevelsAt));
}

Result<void> DirectoryIndex::take_node(std::uint64_t logical, unsigned levels) {
  const auto bytes = context_->read_block(blocks_[logical].physical);
  if (!bytes) return bytes.error();
  return take(*bytes, logical, kNodeAt, levels);
}

// Each block is met once: whatever they say, it ends.
Result<void> DirectoryIndex::take(std::span<const std::byte> bytes, std::uint64_t logical,
                                  std::size_t at, unsigned levels) {
  const auto limit = load_le<std::uint16_t>(bytes.data() + at);
  const auto count = load_le<std::uint16_t>(bytes.data() + at + 2);
  const std::size_t most = (bytes.size() - at) / kEntryBytes - (context_->checksums ? 1 : 0);
  if (count == 0 || count > limit || limit != most) {
    good_ = false;
    return {};
  }
  const Block node = blocks_[logical];
  std::vector<std::uint64_t> below;
  std::uint32_t hash = node.first;
  for (std::size_t i = 0; i < count && good_; ++i) {
    const auto word = [&](std::size_t k, std::size_t from) {
      return load_le<std::uint32_t>(bytes.data() + at + k * kEntryBytes + from);
    };
    const std::uint64_t block = word(i, 4) & kBlockMask;
    const std::uint32_t next = i + 1 < count ? word(i + 1, 0) & ~1u : node.last;
    if (block >= blocks_.size() || blocks_[block].use != Use::kNone || next < hash) {
      good_ = false;
      return {};
    }
    blocks_[block] = {blocks_[block].physical, levels > 0 ? Use::kNode : Use::kLeaf, hash, next};
    below.push_back(block);
    hash = next;
  }
  if (levels == 0) return {};
  std::vector<Lbn> wanted;
  for (const std::uint64_t each : below) {
    wanted.push_back(context_->layout.bytes_of(blocks_[each].physical).covering_blocks().first);
  }
  if (const auto done = context_->volume.view().prefetch(wanted); !done) return done;
  for (const std::uint64_t each : below) {
    if (const Result<void> done = take_node(each, levels - 1); !done) return done;
  }
  return {};
}

bool DirectoryIndex::may_have(std::uint64_t logical, std::string_view name) const {
  ext2_dirhash_t hash = 0;
  ext2_dirhash_t minor = 0;
  if (ext2fs_dirhash2(version_, name.data(), static_cast<int>(name.size()), nullptr, 0,
                      context_->super.s_hash_seed, &hash, &minor) != 0) {
    return false;
  }
  const Block& block = blocks_[logical];
  return hash >= block.first && hash <= block.last;
}

}  // namespace mariner::ifsck
