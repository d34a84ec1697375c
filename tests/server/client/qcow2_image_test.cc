#include "server/client/qcow2_image.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "proto/bytes.h"
#include "tests/server/client/image_folder.h"

namespace mariner::client {
namespace {

constexpr std::uint64_t kCluster = Qcow2Image::kClusterBytes;
constexpr std::uint64_t kCopied = std::uint64_t{1} << 63;

// The little of QEMU's docs/interop/qcow2.txt that such an image needs, read by somebody else than
// who writes it.
class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)), used_(file_.size() / kCluster) {
    EXPECT_EQ(file_.size() % kCluster, 0u);
    use(0);
    const std::uint64_t l1 = number(40);
    l1_entries_ = number32(36);
    for (std::uint64_t at = l1; at < l1 + l1_entries_ * 8; at += kCluster) use(at);
    for (std::uint64_t i = 0; i < l1_entries_; ++i) {
      const std::uint64_t l2 = entry(l1 + i * 8);
      if (l2 == 0) continue;
      use(l2);
      for (std::uint64_t k = 0; k < kCluster / 8; ++k) {
        const std::uint64_t data = entry(l2 + k * 8);
        if (data == 0) continue;
        use(data);
        clusters_[i * (kCluster / 8) + k] = data;
      }
    }
    check_refcounts();
  }

  [[nodiscard]] std::uint64_t size_bytes() const { return number(24); }
  [[nodiscard]] std::size_t data_clusters() const { return clusters_.size(); }
  [[nodiscard]] std::string read(std::uint64_t offset, std::size_t length) const {
    std::string out(length, '\0');
    for (std::size_t i = 0; i < length; i += 4096) {
      const auto found = clusters_.find((offset + i) / kCluster);
      if (found == clusters_.end()) continue;
      out.replace(i, std::min<std::size_t>(4096, length - i),
                  file_.substr(found->second + (offset + i) % kCluster,
                               std::min<std::size_t>(4096, length - i)));
    }
    return out;
  }

 private:
  [[nodiscard]] std::uint64_t number(std::uint64_t at) const {
    return load_be<std::uint64_t>(file_.substr(at, 8).data());
  }
  [[nodiscard]] std::uint32_t number32(std::uint64_t at) const {
    return load_be<std::uint32_t>(file_.substr(at, 4).data());
  }
  [[nodiscard]] std::uint64_t entry(std::uint64_t at) const {
    const std::uint64_t value = number(at);
    EXPECT_TRUE(value == 0 || (value & kCopied) != 0);
    return value & ~kCopied;
  }
  void use(std::uint64_t at) {
    EXPECT_EQ(at % kCluster, 0u);
    EXPECT_EQ(used_.at(at / kCluster)++, 0) << "cluster " << at / kCluster << " is used twice";
  }
  // Each cluster of the file is used once, and counted as that.
  void check_refcounts() {
    const std::uint64_t table = number(48);
    for (std::uint64_t i = 0; i < number32(56); ++i) use(table + i * kCluster);
    const std::uint64_t entries = number32(56) * (kCluster / 8);
    for (std::uint64_t i = 0; i < entries; ++i) {
      const std::uint64_t block = number(table + i * 8);
      if (block == 0) continue;
      use(block);
      for (std::uint64_t k = 0; k < kCluster / 2; ++k) {
        const auto count = load_be<std::uint16_t>(file_.substr(block + k * 2, 2).data());
        const std::uint64_t cluster = i * (kCluster / 2) + k;
        ASSERT_EQ(count, cluster < used_.size() ? 1 : 0) << cluster;
      }
    }
    for (std::size_t i = 0; i < used_.size(); ++i) ASSERT_EQ(used_[i], 1) << i;
  }

  const std::string file_;
  std::vector<int> used_;
  std::uint64_t l1_entries_ = 0;
  std::map<std::uint64_t, std::uint64_t> clusters_;  // of the volume: where they stand
};

using Pieces = std::map<std::uint64_t, std::string>;  // by offset; they do not overlap

std::string image_of(std::uint64_t size_bytes, const Pieces& pieces) {
  const ImageFolder folder;
  auto file = folder.open("disk.qcow2");
  Qcow2Image image(*file, size_bytes);
  for (const auto& [offset, bytes] : pieces) {
    EXPECT_TRUE(image.write(offset, as_byte_span(bytes)));
  }
  EXPECT_TRUE(image.finish());
  EXPECT_TRUE(file->commit());
  return folder.text("disk.qcow2");
}

TEST(Qcow2Image, EveryByteOfASmallOne) {
  const std::string file = image_of(1u << 20, {{kCluster + 4096, std::string(4096, 'a')}});
  std::string expected(6 * kCluster, '\0');
  const auto put = [&](std::size_t at, std::string_view bytes) {
    expected.replace(at, bytes.size(), bytes);
  };
  put(0, std::string_view("QFI\xFB\0\0\0\3", 8));
  put(20, std::string_view("\0\0\0\x10", 4));          // clusters of 2^16 bytes
  put(24, std::string_view("\0\0\0\0\0\x10\0\0", 8));  // of 1 MiB
  put(36, std::string_view("\0\0\0\1", 4));            // an L1 table of one entry ...
  put(40, std::string_view("\0\0\0\0\0\3\0\0", 8));    // ... in cluster 3
  put(48, std::string_view("\0\0\0\0\0\4\0\0", 8));    // the refcount table in cluster 4 ...
  put(56, std::string_view("\0\0\0\1", 4));            // ... has one
  put(96, std::string_view("\0\0\0\4", 4));            // refcounts of 2^4 bits
  put(100, std::string_view("\0\0\0\x68", 4));         // the header has 104 bytes
  put(1 * kCluster + 4096, std::string(4096, 'a'));    // the data
  put(2 * kCluster + 8, std::string_view("\x80\0\0\0\0\1\0\0", 8));  // L2: cluster 1 is there
  put(3 * kCluster, std::string_view("\x80\0\0\0\0\2\0\0", 8));      // L1: the L2 table
  put(4 * kCluster, std::string_view("\0\0\0\0\0\5\0\0", 8));        // refcount table: the block
  for (std::size_t i = 0; i < 6; ++i) put(5 * kCluster + 2 * i, std::string_view("\0\1", 2));
  ASSERT_EQ(file.size(), expected.size());
  for (std::size_t i = 0; i < file.size(); ++i) ASSERT_EQ(file[i], expected[i]) << "byte " << i;
}

TEST(Qcow2Image, OfNothingHasNoData) {
  const Reader reader(image_of(5ull << 40, {}));
  EXPECT_EQ(reader.size_bytes(), 5ull << 40);
  EXPECT_EQ(reader.data_clusters(), 0u);
}

TEST(Qcow2Image, GoesOnFromTableToTable) {
  constexpr std::uint64_t kTable = 512u << 20;
  std::string bytes(3 * kCluster, '?');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>('a' + i / 4096 % 26);
  const std::uint64_t offset = kTable - kCluster - 4096;
  const Reader reader(image_of(3 * kTable, {{offset, bytes}, {3 * kTable - 4096, "end"}}));
  EXPECT_TRUE(reader.read(offset, bytes.size()) == bytes);
  EXPECT_EQ(reader.read(3 * kTable - 4096, 4), std::string("end\0", 4));
  EXPECT_EQ(reader.data_clusters(), 5u);
}

// More clusters than a refcount block counts: what the tables take is counted, too. (In memory: a
// disk takes long to make so many pieces of a file durable.)
TEST(Qcow2Image, CountsItself) {
  const std::string path = "/dev/shm/mariner-qcow2-" + std::to_string(::getpid());
  for (const std::uint64_t clusters : {32'760u, 32'761u}) {
    const auto file = OutputFile::open(path, true);
    ASSERT_TRUE(file);
    Qcow2Image image(**file, clusters * kCluster);
    for (std::uint64_t i = 0; i < clusters; ++i) {
      ASSERT_TRUE(image.write(i * kCluster, as_byte_span("x")));
    }
    ASSERT_TRUE(image.finish());
    ASSERT_TRUE((*file)->commit());
    const std::uint64_t file_clusters = std::filesystem::file_size(path) / kCluster;
    std::filesystem::remove(path);
    // Header, L2 tables, L1 table, refcount table, and one block or two.
    const std::uint64_t tables = 1 + (clusters + 8191) / 8192 + 1 + 1;
    const std::uint64_t blocks = clusters + tables + 1 <= 32'768 ? 1 : 2;
    EXPECT_EQ(file_clusters, clusters + tables + blocks) << clusters;
  }
}

TEST(Qcow2Image, IsReadAsItWasWritten) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const std::uint64_t blocks = 1 + random() % (3 << 17);  // 1.5 GiB at most
    Pieces pieces;
    std::map<std::uint64_t, std::uint64_t> gaps;  // by offset: bytes that nobody writes
    const std::uint64_t gap_max = 1 + random() % (random() % 2 == 0 ? 20 : 40'000);
    for (std::uint64_t at = 0; pieces.size() < 60;) {
      const std::uint64_t gap = random() % gap_max;
      const std::uint64_t count = 1 + random() % 64;
      if (at + gap + count > blocks) break;
      if (gap > 0) gaps[at * 4096] = std::min<std::uint64_t>(gap, 64) * 4096;
      at += gap;
      pieces[at * 4096] = std::string(count * 4096, static_cast<char>(random()));
      at += count;
    }
    const Reader reader(image_of(blocks * 4096, pieces));
    ASSERT_EQ(reader.size_bytes(), blocks * 4096);
    for (const auto& [offset, bytes] : pieces) {
      ASSERT_TRUE(reader.read(offset, bytes.size()) == bytes) << offset;
    }
    for (const auto& [offset, length] : gaps) {
      ASSERT_TRUE(reader.read(offset, length) == std::string(length, '\0')) << offset;
    }
  }
}

}  // namespace
}  // namespace mariner::client
