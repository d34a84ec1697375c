// A disk to whose tables somebody has written anything: every part that is found is within the
// volume, has a name of its own that a path can have, and can be read.
//
// The input: which disk and how (the first byte), and changes, each of two bytes of where (little
// endian, in the bytes of its tables) and one that is put there. Or the text of a volume group.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proto/bytes.h"
#include "proto/check.h"
#include "tests/uvfs/parts/made_disk.h"
#include "uvfs/parts/disk_parts.h"
#include "uvfs/parts/part_past.h"
#include "uvfs/safe_name.h"

using namespace mariner;
using namespace mariner::uvfs;

namespace {

constexpr std::uint64_t kBytes = 1 << 20;
constexpr std::uint64_t kAreaBytes = 28 << 10;
constexpr std::uint64_t kLvmAt = 128 << 10;  // in a partition
constexpr std::string_view kText = R"(vg {
id = "G-G" seqno = 3 extent_size = 8
physical_volumes {
pv0 { id = "AAAAAA-AAAA-AAAA-AAAA-AAAA-AAAA-AAAAAA" pe_start = 64 pe_count = 20 }
pv1 { id = "B" pe_start = 64 pe_count = 20 }
}
logical_volumes {
one { status = ["READ", "VISIBLE"] segment_count = 2
segment1 { start_extent = 0 extent_count = 3 type = "striped" stripe_count = 1 stripes = ["pv0", 1] }
segment2 { start_extent = 3 extent_count = 2 type = "striped" stripe_count = 1 stripes = ["pv0", 9] }
}
two { status = ["VISIBLE"] segment_count = 1
segment1 { start_extent = 0 extent_count = 3 type = "striped" stripe_count = 2 stripes = ["pv0", 4, "pv1", 0] }
}
}
}
)";

struct Kind {
  MadeDisk disk{kBytes};
  std::vector<ByteRange> tables;   // where changes go
  std::vector<std::uint64_t> lvm;  // where physical volumes are
  std::vector<std::uint64_t> gpt;  // headers' sectors
};

Kind make(unsigned which) {
  Kind kind;
  switch (which) {
    case 0:
      put_mbr(kind.disk, 0, {{0x83, 63, 100}, {0x05, 400, 1000}, {0x8e, 256, 100}});
      put_mbr(kind.disk, 400 * 512, {{0x83, 1, 20}, {0x05, 100, 100}});
      put_mbr(kind.disk, 500 * 512, {{0x83, 1, 20}, {0x05, 200, 100}});
      kind.tables = {
          {446, 66}, {400 * 512 + 446, 66}, {500 * 512 + 446, 66}, {600 * 512 + 446, 66}};
      break;
    case 1:
      put_gpt(kind.disk, {{64, 99, u"a"}, {100, 100, u"b"}, {300, 500, u"c"}}, {.entries = 16});
      kind.tables = {{446, 66}, {512, 96}, {1024, 512}, {kBytes - 512, 96}};
      kind.gpt = {1, kBytes / 512 - 1};
      break;
    case 2:
      put_member(kind.disk, {.area_bytes = kAreaBytes}, kText);
      kind.tables = {{512, 160}, {4096, 64}, {4096 + 512, kText.size()}};
      kind.lvm = {0};
      break;
    default:
      put_mbr(kind.disk, 0, {{0x8e, kLvmAt / 512, 1024}, {0x83, 2000, 48}});
      put_member(kind.disk, {.offset = kLvmAt, .area_bytes = kAreaBytes}, kText);
      kind.tables = {
          {446, 66}, {kLvmAt + 512, 160}, {kLvmAt + 4096, 64}, {kLvmAt + 4096 + 512, kText.size()}};
      kind.lvm = {kLvmAt};
  }
  return kind;
}

void change(Kind& kind, std::span<const std::byte> input) {
  std::uint64_t all = 0;
  for (const ByteRange& each : kind.tables) all += each.length;
  for (; input.size() >= 3; input = input.subspan(3)) {
    std::uint64_t place = load_le<std::uint16_t>(input.data()) % all;
    for (const ByteRange& each : kind.tables) {
      if (place < each.length) {
        kind.disk.bytes[each.offset + place] = input[2];
        break;
      }
      place -= each.length;
    }
  }
}

void seal(Kind& kind) {
  for (const std::uint64_t sector : kind.gpt) seal_gpt(kind.disk, 512, sector);
  for (const std::uint64_t at : kind.lvm) {
    seal_label(kind.disk, at + 512);
    const std::uint64_t area = at + MadeMember::kAreaAt;
    const auto text_at = load_le<std::uint64_t>(kind.disk.bytes.data() + area + 40);
    const auto length = load_le<std::uint64_t>(kind.disk.bytes.data() + area + 48);
    if (text_at <= kAreaBytes && length <= kAreaBytes - text_at) {
      kind.disk.put(area + 56, lvm_crc(std::span(kind.disk.bytes).subspan(area + text_at, length)));
    }
    seal_area(kind.disk, area);
  }
}

void check(MadeDisk& disk, const DiskParts& parts) {
  std::set<std::string> names;
  CHECK(parts.table != DiskParts::Table::kNone || parts.parts.size() == 1);
  for (const DiskPart& each : parts.parts) {
    CHECK(is_safe_name(each.name) && names.insert(each.name).second);
    std::uint64_t bytes = 0;
    for (const ByteRange& extent : each.extents) {
      CHECK(extent.offset <= kBytes && extent.length <= kBytes - extent.offset);
      bytes += extent.length;
    }
    CHECK(bytes == each.bytes && bytes > 0);
    auto past = PartPast::open(disk, each.extents);
    CHECK(past.has_value() && past->size_bytes() == bytes / kBlockBytes * kBlockBytes);
    if (past->size_bytes() == 0) continue;
    const std::vector<ifsck::Past::Question> questions{
        {Lbn{0}, {}}, {Lbn{past->size_bytes() / kBlockBytes - 1}, {}}};
    std::vector<std::byte> read(2 * kBlockBytes);
    CHECK(past->read(questions, read).has_value());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<Kind> kinds{make(0), make(1), make(2), make(3)};
  if (size == 0) return 0;
  Kind kind = kinds[data[0] & 3];
  const auto input = std::as_bytes(std::span(data, size)).subspan(1);
  if ((data[0] & 4) != 0 && !kind.lvm.empty()) {
    const auto text = input.first(std::min<std::size_t>(input.size(), kAreaBytes - 1024));
    put_member(kind.disk, {.offset = kind.lvm[0], .area_bytes = kAreaBytes},
               {reinterpret_cast<const char*>(text.data()), text.size()});
  } else {
    change(kind, input);
    if ((data[0] & 8) != 0) seal(kind);
  }
  const std::uint32_t sector_bytes = (data[0] & 16) != 0 ? 4096 : (data[0] & 32) != 0 ? 512 : 0;
  const auto parts = read_parts(kind.disk, {}, {.sector_bytes = sector_bytes});
  CHECK(parts.has_value());
  check(kind.disk, *parts);
  return 0;
}
