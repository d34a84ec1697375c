#include "ifsck/quota_file.h"

#include <algorithm>
#include <array>
#include <set>

#include "proto/bytes.h"

namespace mariner::ifsck {
namespace {

constexpr std::size_t kBlock = 1024;
constexpr std::size_t kTreeRoot = 1;  // a block
constexpr int kLevels = 4;
constexpr std::uint32_t kMagics[] = {0xd9c01f11, 0xd9c01927, 0xd9c03f14};
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kInfoAt = 8;
constexpr std::size_t kBlocksAt = kInfoAt + 12;
constexpr std::size_t kFreeEntryAt = kInfoAt + 20;
constexpr std::size_t kBlockHeadBytes = 16;  // of a block of entries
constexpr std::size_t kCountAt = 8;
constexpr std::size_t kEntryBytes = 72;
constexpr std::size_t kPerBlock = (kBlock - kBlockHeadBytes) / kEntryBytes;

std::size_t index_of(std::uint32_t id, int level) {
  return id >> (8 * (kLevels - 1 - level)) & 0xff;
}

class Reader {
 public:
  Reader(QuotaFile& file, std::span<const std::byte> bytes)
      : file_(file), bytes_(bytes), blocks_(bytes.size() / kBlock) {}

  void run(std::uint32_t magic) {
    if (blocks_ <= kTreeRoot || at<std::uint32_t>(0) != magic || at<std::uint32_t>(4) != kVersion ||
        at<std::uint32_t>(kBlocksAt) > blocks_) {
      file_.good = false;
      return;
    }
    file_.blocks_grace_s = at<std::uint32_t>(kInfoAt);
    file_.inodes_grace_s = at<std::uint32_t>(kInfoAt + 4);
    file_.flags = at<std::uint32_t>(kInfoAt + 8);
    take_tree(kTreeRoot, 0, 0);
  }

 private:
  template <typename T>
  [[nodiscard]] T at(std::size_t offset) const {
    return load_le<T>(bytes_.data() + offset);
  }

  void take_tree(std::size_t block, int level, std::uint32_t id) {
    // (Each block once: whatever they say, it ends.)
    if (!met_.insert(block).second) {
      file_.good = false;
      return;
    }
    for (std::uint32_t i = 0; i < 256; ++i) {
      const auto next = at<std::uint32_t>(block * kBlock + 4 * i);
      if (next == 0) continue;
      if (next <= kTreeRoot || next >= blocks_) {
        file_.good = false;
        continue;
      }
      if (level + 1 < kLevels) {
        take_tree(next, level + 1, id << 8 | i);
      } else {
        take_entry(next, id << 8 | i);
      }
    }
  }

  void take_entry(std::size_t block, std::uint32_t id) {
    for (std::size_t i = 0; i < kPerBlock; ++i) {
      const std::size_t from = block * kBlock + kBlockHeadBytes + i * kEntryBytes;
      const auto entry = bytes_.subspan(from, kEntryBytes);
      const bool used =
          std::ranges::any_of(entry, [](std::byte each) { return each != std::byte{}; });
      if (!used || at<std::uint32_t>(from) != id) continue;
      const auto word = [&](std::size_t k) { return at<std::uint64_t>(from + 8 + 8 * k); };
      file_.entries[id] = {.use = {.inodes = word(2), .bytes = word(5)},
                           .inodes_hard = word(0),
                           .inodes_soft = word(1),
                           .blocks_hard = word(3),
                           .blocks_soft = word(4),
                           .blocks_until = word(6),
                           .inodes_until = word(7)};
      return;
    }
    file_.good = false;
  }

  QuotaFile& file_;
  const std::span<const std::byte> bytes_;
  const std::size_t blocks_;
  std::set<std::size_t> met_;
};

}  // namespace

QuotaFile QuotaFile::read(Of of, std::span<const std::byte> bytes) {
  QuotaFile file;
  Reader(file, bytes).run(kMagics[static_cast<std::size_t>(of)]);
  return file;
}

std::vector<std::byte> QuotaFile::write(Of of) const {
  std::vector<std::byte> bytes((kTreeRoot + 1) * kBlock);
  const auto more = [&] {
    bytes.resize(bytes.size() + kBlock);
    return bytes.size() / kBlock - 1;
  };
  std::size_t last = 0;  // of entries
  std::size_t count = kPerBlock;
  for (const auto& [id, entry] : entries) {
    if (count == kPerBlock) {
      last = more();
      count = 0;
    }
    std::size_t block = kTreeRoot;
    for (int level = 0; level < kLevels; ++level) {
      const std::size_t at = block * kBlock + 4 * index_of(id, level);
      std::size_t next = load_le<std::uint32_t>(bytes.data() + at);
      if (next == 0) {
        next = level + 1 < kLevels ? more() : last;
        store_le(bytes.data() + at, static_cast<std::uint32_t>(next));
      }
      block = next;
    }
    std::byte* const to = bytes.data() + last * kBlock + kBlockHeadBytes + count * kEntryBytes;
    std::uint64_t words[] = {entry.inodes_hard,  entry.inodes_soft, entry.use.inodes,
                             entry.blocks_hard,  entry.blocks_soft, entry.use.bytes,
                             entry.blocks_until, entry.inodes_until};
    // What is all zeros would be none.
    const bool none = id == 0 && std::ranges::all_of(words, [](auto each) { return each == 0; });
    if (none) words[7] = 1;
    store_le(to, id);
    for (std::size_t k = 0; k < std::size(words); ++k) store_le(to + 8 + 8 * k, words[k]);
    ++count;
    store_le(bytes.data() + last * kBlock + kCountAt, static_cast<std::uint16_t>(count));
  }
  store_le(bytes.data(), kMagics[static_cast<std::size_t>(of)]);
  store_le(bytes.data() + 4, kVersion);
  store_le(bytes.data() + kInfoAt, blocks_grace_s);
  store_le(bytes.data() + kInfoAt + 4, inodes_grace_s);
  store_le(bytes.data() + kInfoAt + 8, flags);
  store_le(bytes.data() + kBlocksAt, static_cast<std::uint32_t>(bytes.size() / kBlock));
  store_le(bytes.data() + kFreeEntryAt, static_cast<std::uint32_t>(count < kPerBlock ? last : 0));
  return bytes;
}

bool QuotaFile::fits(const std::map<std::uint32_t, Use>& use) const {
  if (!good) return false;
  for (const auto& [id, one] : use) {
    const auto found = entries.find(id);
    if (found == entries.end() || found->second.use != one) return false;
  }
  return std::ranges::all_of(entries, [&](const auto& each) {
    return use.contains(each.first) || each.second.use == Use{};
  });
}

void QuotaFile::set(const std::map<std::uint32_t, Use>& use) {
  for (auto& [id, entry] : entries) entry.use = {};
  for (const auto& [id, one] : use) entries[id].use = one;
  std::erase_if(entries, [](const auto& each) {
    return each.second.use == Use{} && !each.second.has_limits();
  });
  good = true;
}

}  // namespace mariner::ifsck
