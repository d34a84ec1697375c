// A disk in memory, and what makers of tables write to it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ifsck/past.h"
#include "proto/bytes.h"
#include "proto/check.h"
#include "tests/logging/temporary_directory.h"
#include "uvfs/parts/crc32.h"

namespace mariner::uvfs {

// It has one moment, 0.
class MadeDisk final : public ifsck::Past {
 public:
  explicit MadeDisk(std::uint64_t size) : bytes(size) {}
  // As a program leaves the file `disk` of that size, which is empty before; false: it failed.
  [[nodiscard]] static std::pair<MadeDisk, bool> made_by(const std::string& command,
                                                         std::uint64_t size) {
    const logging::test::TemporaryDirectory folder;
    const std::string file = folder.file("disk");
    std::ofstream(file).close();
    std::filesystem::resize_file(file, size);
    const std::string all = "cd " + folder.file("") + " && PATH=$PATH:/sbin:/usr/sbin && { " +
                            command + "; } >/dev/null 2>&1";
    const bool done = std::system(all.c_str()) == 0;
    MadeDisk disk(size);
    std::ifstream(file, std::ios::binary)
        .read(reinterpret_cast<char*>(disk.bytes.data()), static_cast<std::streamsize>(size));
    return {std::move(disk), done};
  }

  std::vector<std::byte> bytes;
  std::uint64_t reads = 0;

  template <typename T>
  void put(std::uint64_t offset, T value) {
    CHECK(offset + sizeof value <= bytes.size());
    store_le(bytes.data() + offset, value);
  }
  void put_bytes(std::uint64_t offset, std::span<const std::byte> from) {
    CHECK(offset + from.size() <= bytes.size());
    std::ranges::copy(from, bytes.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  void put_text(std::uint64_t offset, std::string_view text) {
    put_bytes(offset, as_byte_span(text));
  }
  // A superblock of ext2, as far as it is looked at.
  void put_ext(std::uint64_t offset) { put(offset + 1024 + 56, std::uint16_t{0xef53}); }

  [[nodiscard]] std::uint64_t size_bytes() const override { return bytes.size(); }
  Result<Reach> reach() override { return Reach{}; }
  Result<SequenceNumber> moment_of(VersionTime) override { return SequenceNumber{}; }
  Result<VersionTime> time_of(SequenceNumber) override { return VersionTime{}; }
  Result<void> read(std::span<const Question> questions, std::span<std::byte> to) override {
    ++reads;
    for (std::size_t i = 0; i < questions.size(); ++i) {
      const std::uint64_t from = questions[i].block.byte_offset();
      if (from + kBlockBytes > bytes.size()) {
        return Error{ErrorCode::kInvalidArgument, "behind the end"};
      }
      std::ranges::copy(std::span(bytes).subspan(from, kBlockBytes),
                        to.begin() + static_cast<std::ptrdiff_t>(i * kBlockBytes));
    }
    return {};
  }
  Result<std::vector<BlockRange>> changed(SequenceNumber, SequenceNumber) override {
    return std::vector<BlockRange>();
  }
  Result<std::vector<Version>> versions(std::span<const Lbn>, SequenceNumber,
                                        SequenceNumber) override {
    return std::vector<Version>();
  }
};

// ---- MBR

struct MadeEntry {
  std::uint8_t type = 0;
  std::uint32_t first = 0;
  std::uint32_t sectors = 0;
};

inline void put_mbr(MadeDisk& disk, std::uint64_t offset, const std::vector<MadeEntry>& entries) {
  CHECK(entries.size() <= 4);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::uint64_t at = offset + 446 + i * 16;
    disk.put(at + 4, entries[i].type);
    disk.put(at + 8, entries[i].first);
    disk.put(at + 12, entries[i].sectors);
  }
  disk.put(offset + 510, std::uint16_t{0xaa55});
}

// ---- GPT

inline constexpr std::string_view kLinuxGuid(
    "\xaf\x3d\xc6\x0f\x83\x84\x72\x47"
    "\x8e\x79\x3d\x69\xd8\x47\x7d\xe4",
    16);

struct MadeGpt {
  struct Partition {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::u16string label;
    std::string_view type = kLinuxGuid;
  };
  std::uint32_t sector_bytes = 512;
  std::uint32_t entries = 128;
  std::uint32_t entry_bytes = 128;
};

// Makes the CRCs of the header at that place right, and of its entries.
inline void seal_gpt(MadeDisk& disk, std::uint32_t sector_bytes, std::uint64_t sector) {
  std::byte* const header = disk.bytes.data() + sector * sector_bytes;
  const std::uint64_t first = load_le<std::uint64_t>(header + 72) * sector_bytes;
  const std::uint64_t bytes =
      std::uint64_t{load_le<std::uint32_t>(header + 80)} * load_le<std::uint32_t>(header + 84);
  if (first <= disk.bytes.size() && bytes <= disk.bytes.size() - first) {
    store_le(header + 88, crc32({disk.bytes.data() + first, bytes}));
  }
  const std::uint64_t header_bytes =
      std::min<std::uint64_t>(load_le<std::uint32_t>(header + 12), sector_bytes);
  store_le(header + 16, std::uint32_t{0});
  store_le(header + 16, crc32({header, header_bytes}));
}

// The protective MBR and both tables.
inline void put_gpt(MadeDisk& disk, const std::vector<MadeGpt::Partition>& partitions,
                    const MadeGpt& gpt = {}) {
  const std::uint64_t sectors = disk.bytes.size() / gpt.sector_bytes;
  const std::uint64_t table =
      (std::uint64_t{gpt.entries} * gpt.entry_bytes + gpt.sector_bytes - 1) / gpt.sector_bytes;
  put_mbr(disk, 0, {{0xee, 1, static_cast<std::uint32_t>(sectors - 1)}});
  for (const std::uint64_t own : {std::uint64_t{1}, sectors - 1}) {
    const std::uint64_t at = own * gpt.sector_bytes;
    const std::uint64_t entries = own == 1 ? 2 : own - table;
    disk.put_text(at, "EFI PART");
    disk.put(at + 8, std::uint32_t{0x10000});
    disk.put(at + 12, std::uint32_t{92});
    disk.put(at + 24, own);
    disk.put(at + 32, sectors - own);
    disk.put(at + 40, 2 + table);
    disk.put(at + 48, sectors - 2 - table);
    disk.put(at + 72, entries);
    disk.put(at + 80, gpt.entries);
    disk.put(at + 84, gpt.entry_bytes);
    for (std::size_t i = 0; i < partitions.size(); ++i) {
      const std::uint64_t entry = entries * gpt.sector_bytes + i * gpt.entry_bytes;
      disk.put_text(entry, partitions[i].type);
      disk.put(entry + 16, static_cast<std::uint8_t>(i + 1));
      disk.put(entry + 32, partitions[i].first);
      disk.put(entry + 40, partitions[i].last);
      for (std::size_t u = 0; u < partitions[i].label.size(); ++u) {
        disk.put(entry + 56 + 2 * u, partitions[i].label[u]);
      }
    }
    seal_gpt(disk, gpt.sector_bytes, own);
  }
}

// ---- LVM2

struct MadeMember {
  static constexpr std::uint64_t kAreaAt = 4096;
  static constexpr std::uint64_t kAreaBytes = (1 << 20) - kAreaAt;  // as pvcreate makes it

  std::uint64_t offset = 0;  // on the disk
  std::string id = std::string(32, 'A');
  std::uint64_t text_at = 512;  // in the area
  std::uint64_t sector = 1;     // of the label
  std::uint64_t area_bytes = kAreaBytes;
};

inline void seal_label(MadeDisk& disk, std::uint64_t offset) {
  const std::span<const std::byte> sector = std::span(disk.bytes).subspan(offset, 512);
  disk.put(offset + 16, lvm_crc(sector.subspan(20)));
}
inline void seal_area(MadeDisk& disk, std::uint64_t offset) {
  const std::span<const std::byte> header = std::span(disk.bytes).subspan(offset, 512);
  disk.put(offset, lvm_crc(header.subspan(4)));
}

// The label, and one area with the text; none: nothing was made of the physical volume yet.
inline void put_member(MadeDisk& disk, const MadeMember& member, std::string_view text) {
  const std::uint64_t label = member.offset + member.sector * 512;
  disk.put_text(label, "LABELONE");
  disk.put(label + 8, member.sector);
  disk.put(label + 20, std::uint32_t{32});
  disk.put_text(label + 24, "LVM2 001");
  disk.put_text(label + 32, member.id);
  disk.put(label + 72,
           MadeMember::kAreaAt + member.area_bytes);  // data begin; an empty one ends the list
  disk.put(label + 72 + 32, MadeMember::kAreaAt);
  disk.put(label + 72 + 40, member.area_bytes);
  seal_label(disk, label);

  const std::uint64_t area = member.offset + MadeMember::kAreaAt;
  disk.put_text(area + 4, " LVM2 x[5A%r0N*>");
  disk.put(area + 20, std::uint32_t{1});
  disk.put(area + 24, MadeMember::kAreaAt);
  disk.put(area + 32, member.area_bytes);
  if (!text.empty()) {
    const std::string whole = std::string(text) + '\0';
    disk.put(area + 40, member.text_at);
    disk.put(area + 48, std::uint64_t{whole.size()});
    disk.put(area + 56, lvm_crc(as_byte_span(whole)));
    const std::size_t before_end =
        std::min<std::size_t>(whole.size(), member.area_bytes - member.text_at);
    disk.put_text(area + member.text_at, std::string_view(whole).substr(0, before_end));
    disk.put_text(area + 512, std::string_view(whole).substr(before_end));
  }
  seal_area(disk, area);
}

// A group "vg" with extents of 1 MiB, on physical volumes pv0 ("AAA..."), pv1 ("BBB...").
struct MadeVolume {
  std::string name;
  std::string segments;  // the text of them, with their count
  std::string status = R"(["READ", "WRITE", "VISIBLE"])";
};
inline std::string linear_segment(int number, std::uint64_t start, std::uint64_t extents,
                                  const std::string& member, std::uint64_t first) {
  return "segment" + std::to_string(number) + " { start_extent = " + std::to_string(start) +
         " extent_count = " + std::to_string(extents) +
         " type = \"striped\" stripe_count = 1 # linear\n stripes = [ \"" + member + "\", " +
         std::to_string(first) + " ] }\n";
}
inline std::string group_text(const std::vector<MadeVolume>& volumes, int version = 1,
                              const std::string& name = "vg", const std::string& id = "GGG-GGG") {
  const auto member = [](const std::string& of, char id_of) {
    return of + " { id = \"" + std::string(6, id_of) + "-" + std::string(26, id_of) +
           "\" device = \"/dev/sda\" status = [\"ALLOCATABLE\"] flags = [] dev_size = 8192 " +
           "pe_start = 2048 pe_count = 15 }\n";
  };
  std::string text = name + " {\nid = \"" + id + "\"\nseqno = " + std::to_string(version) +
                     "\nformat = \"lvm2\" # informational\nstatus = [\"RESIZEABLE\"]\n" +
                     "extent_size = 2048\nphysical_volumes {\n" + member("pv0", 'A') +
                     member("pv1", 'B') + "}\nlogical_volumes {\n";
  for (const MadeVolume& each : volumes) {
    text += each.name + " {\nid = \"x\"\nstatus = " + each.status + "\n" + each.segments + "}\n";
  }
  return text +
         "}\n}\n# Generated by a test\ncontents = \"Text Format Volume Group\"\nversion = 1\n";
}

}  // namespace mariner::uvfs
