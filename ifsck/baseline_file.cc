#include "ifsck/baseline_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <concepts>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "ifsck/write_trace.h"
#include "proto/bytes.h"
#include "proto/crc32c.h"

namespace mariner::ifsck {
namespace {

constexpr std::array<char, 8> kMagic = {'M', 'R', 'N', 'B', 'A', 'S', 'E', 'L'};
constexpr std::uint32_t kVersion = 5;
constexpr std::size_t kFileHeadBytes = 128;
constexpr std::size_t kCrcBytes = 4;
constexpr std::size_t kGroupBytes = 12;
// In the order in which they stand in the file; tables of blocks are counted in bytes.
constexpr std::array<std::size_t, 8> kListEntryBytes = {1, 1, kGroupBytes, 8,
                                                        4, 4, 8,           8 + kBlockBytes};
constexpr std::size_t kCountsAt = 64;

class Packer {
 public:
  explicit Packer(std::size_t bytes) { bytes_.reserve(bytes); }
  template <std::integral T>
  void put(T value) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    store_le(bytes_.data() + at, value);
  }
  void put_bytes(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void pad(std::size_t to) { bytes_.resize(to); }
  [[nodiscard]] std::vector<std::byte>& bytes() { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

class Unpacker {
 public:
  explicit Unpacker(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> take_bytes(std::size_t count) {
    const auto bytes = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return bytes;
  }
  template <typename T>
  T take() {
    const T value = load_le<T>(bytes_.data());
    bytes_ = bytes_.subspan(sizeof(T));
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
};

std::optional<BlockTable> parse_table(std::span<const std::byte> bytes,
                                      const std::shared_ptr<const void>& owner) {
  auto packed = PackedTable::parse(bytes, owner);
  if (!packed) return {};
  return BlockTable(std::move(*packed));
}

template <typename Set>
auto sorted(const Set& set) {
  std::vector<typename Set::value_type> all(set.begin(), set.end());
  std::ranges::sort(all);
  return all;
}

Error corrupt(const std::string& what) {
  return {ErrorCode::kCorrupt, "what is known of a file system (a baseline): " + what};
}

Error failed(const std::string& path, const char* what, int error) {
  return {error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
          fmt::format("{}: {}: {}", path, what, std::generic_category().message(error))};
}

}  // namespace

std::vector<std::byte> pack_baseline(const KeptBaseline& kept) {
  const Baseline& baseline = kept.baseline;
  const std::vector<std::byte> owners = PackedTable::pack(baseline.owners.all());
  const std::vector<std::byte> attributes = PackedTable::pack(baseline.attributes.all());
  const std::array<std::size_t, 8> counts = {owners.size(),
                                             attributes.size(),
                                             baseline.groups.size(),
                                             baseline.mismarked.size(),
                                             baseline.mismarked_inodes.size(),
                                             baseline.doubtful.size(),
                                             baseline.doubtful_attributes.size(),
                                             kept.overlay.size()};
  std::size_t size = kFileHeadBytes + kCrcBytes;
  for (std::size_t i = 0; i < counts.size(); ++i) size += counts[i] * kListEntryBytes[i];
  Packer packer(size);
  packer.put_bytes(std::as_bytes(std::span(kMagic)));
  packer.put(kVersion);
  packer.put(std::uint32_t{0});
  packer.put(baseline.at.value);
  packer.put(kept.time.ns);
  packer.put(kept.volume_bytes);
  packer.put_bytes(std::as_bytes(std::span(kept.uuid)));
  packer.put(kept.descriptor_bytes);
  packer.pad(kCountsAt);
  for (const std::size_t each : counts) packer.put(std::uint64_t{each});
  packer.pad(kFileHeadBytes);
  packer.put_bytes(owners);
  packer.put_bytes(attributes);
  for (const Baseline::Group& each : baseline.groups) {
    packer.put(static_cast<std::int32_t>(each.free_blocks));
    packer.put(static_cast<std::int32_t>(each.free_inodes));
    packer.put(static_cast<std::int32_t>(each.directories));
  }
  for (const auto each : sorted(baseline.mismarked)) packer.put(each);
  for (const auto each : sorted(baseline.mismarked_inodes)) packer.put(each);
  for (const auto each : sorted(baseline.doubtful)) packer.put(each);
  for (const auto each : sorted(baseline.doubtful_attributes)) packer.put(each);
  kept.overlay.for_each([&](Lbn lbn, const Overlay::Block& block) {
    packer.put(lbn.value);
    packer.put_bytes(block);
  });
  packer.put(crc32c(packer.bytes()));
  return std::move(packer.bytes());
}

Result<KeptBaseline> parse_baseline(std::span<const std::byte> bytes) {
  const auto copy = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
  return parse_baseline(*copy, copy);
}

Result<KeptBaseline> parse_baseline(std::span<const std::byte> bytes,
                                    const std::shared_ptr<const void>& owner) {
  if (bytes.size() < kFileHeadBytes + kCrcBytes ||
      std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) {
    return corrupt("this is none");
  }
  const auto version = load_le<std::uint32_t>(bytes.data() + 8);
  if (version != kVersion) {
    return corrupt(
        fmt::format("version {} of its format is not known; expected {}", version, kVersion));
  }
  std::array<std::uint64_t, 8> counts{};
  std::uint64_t left = bytes.size() - kFileHeadBytes - kCrcBytes;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    counts[i] = load_le<std::uint64_t>(bytes.data() + kCountsAt + 8 * i);
    if (counts[i] > left / kListEntryBytes[i]) return corrupt("it is cut off");
    left -= counts[i] * kListEntryBytes[i];
  }
  if (left != 0) return corrupt("it is longer than what it has");
  const std::span<const std::byte> checked = bytes.first(bytes.size() - kCrcBytes);
  if (crc32c(checked) != load_le<std::uint32_t>(bytes.data() + checked.size())) {
    return corrupt("its checksum is wrong");
  }
  KeptBaseline kept;
  Baseline& baseline = kept.baseline;
  baseline.at = SequenceNumber{load_le<std::uint64_t>(bytes.data() + 16)};
  kept.time = VersionTime{load_le<std::uint64_t>(bytes.data() + 24)};
  kept.volume_bytes = load_le<std::uint64_t>(bytes.data() + 32);
  std::memcpy(kept.uuid.data(), bytes.data() + 40, kept.uuid.size());
  kept.descriptor_bytes = load_le<std::uint32_t>(bytes.data() + 56);
  Unpacker unpacker(checked.subspan(kFileHeadBytes));
  const auto values = [&]<typename Set>(Set& set, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      set.insert(unpacker.take<typename Set::value_type>());
    }
  };
  auto owners = parse_table(unpacker.take_bytes(counts[0]), owner);
  auto attributes = parse_table(unpacker.take_bytes(counts[1]), owner);
  if (!owners || !attributes) return corrupt("a table of blocks is none");
  baseline.owners = std::move(*owners);
  baseline.attributes = std::move(*attributes);
  const std::span<const std::byte> groups = unpacker.take_bytes(counts[2] * kGroupBytes);
  baseline.groups.reserve(counts[2]);
  for (std::size_t at = 0; at < groups.size(); at += kGroupBytes) {
    const std::byte* const group = groups.data() + at;
    baseline.groups.push_back({.free_blocks = load_le<std::int32_t>(group),
                               .free_inodes = load_le<std::int32_t>(group + 4),
                               .directories = load_le<std::int32_t>(group + 8)});
  }
  values(baseline.mismarked, counts[3]);
  values(baseline.mismarked_inodes, counts[4]);
  values(baseline.doubtful, counts[5]);
  values(baseline.doubtful_attributes, counts[6]);
  for (std::uint64_t i = 0; i < counts[7]; ++i) {
    const Lbn lbn{unpacker.take<std::uint64_t>()};
    kept.overlay.put(lbn, unpacker.take_bytes(kBlockBytes));
  }
  return kept;
}

Result<void> write_baseline(const std::string& path, const KeptBaseline& kept) {
  const std::vector<std::byte> bytes = pack_baseline(kept);
  const std::string next = path + ".new";
  const TraceFile file(::open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (file.fd() < 0) return failed(next, "cannot be made", errno);
  if (const Result<void> written = file.write(0, bytes); !written) return written;
  if (fsync(file.fd()) != 0) return failed(next, "cannot be made durable", errno);
  if (rename(next.c_str(), path.c_str()) != 0) return failed(path, "cannot be replaced", errno);
  return {};
}

Result<KeptBaseline> read_baseline(const std::string& path) {
  const TraceFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd() < 0) return failed(path, "cannot be opened", errno);
  struct stat about {};
  if (fstat(file.fd(), &about) != 0) return failed(path, "cannot be read", errno);
  const auto size = static_cast<std::size_t>(about.st_size);
  const auto bytes = std::make_shared_for_overwrite<std::byte[]>(size);
  const auto read = file.read(0, {bytes.get(), size});
  if (!read) return read.error();
  return parse_baseline({bytes.get(), *read}, bytes);
}

}  // namespace mariner::ifsck
