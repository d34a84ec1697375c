#include "uvfs/volume_guess.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace mariner::uvfs {
namespace {

struct Mark {
  std::uint64_t at = 0;
  std::string_view bytes;
  std::string_view what;
};

using namespace std::literals;

constexpr Mark kMarks[] = {
    {512, "EFI PART"sv, "a partition table (GPT)"},
    {512, "LABELONE"sv, "a physical volume of LVM"},
    {0, "LUKS\xba\xbe"sv, "an encrypted volume (LUKS)"},
    {3, "-FVE-FS-"sv, "an encrypted volume (BitLocker)"},
    {0, "XFSB"sv, "XFS"},
    {65536 + 64, "_BHRfS_M"sv, "Btrfs"},
    {3, "ReFS\0\0\0\0"sv, "ReFS"},
    {32, "NXSB"sv, "APFS"},
    {4086, "SWAPSPACE2"sv, "swap space"},
    {3, "NTFS    "sv, "a damaged NTFS"},
    {3, "EXFAT   "sv, "a damaged exFAT"},
    // (Of a boot sector that is no file system's: the last.)
    {510, "\x55\xaa"sv, "a partition table (MBR), or a damaged FAT"},
};
constexpr std::uint64_t kBytes = 68 * 1024;

}  // namespace

Result<std::string> guess_of_volume(ifsck::Past& past, SequenceNumber at) {
  std::vector<ifsck::Past::Question> questions;
  for (std::uint64_t i = 0; i < std::min(kBytes, past.size_bytes()) / kBlockBytes; ++i) {
    questions.push_back({Lbn{i}, at});
  }
  std::vector<std::byte> bytes(questions.size() * kBlockBytes);
  if (const auto read = past.read(questions, bytes); !read) return read.error();
  for (const Mark& each : kMarks) {
    if (each.at + each.bytes.size() <= bytes.size() &&
        std::memcmp(bytes.data() + each.at, each.bytes.data(), each.bytes.size()) == 0) {
      return std::string(each.what);
    }
  }
  if (std::ranges::all_of(bytes, [](std::byte each) { return each == std::byte{}; })) {
    return std::string("nothing but zeros");
  }
  return std::string("something else");
}

Error no_file_system(ifsck::Past& past, SequenceNumber at) {
  const auto guess = guess_of_volume(past, at);
  if (!guess) return guess.error();
  return {
      ErrorCode::kNotFound,
      fmt::format("at #{} the volume has no file system that is understood: expected ext2, ext3, "
                  "ext4, NTFS, exFAT, FAT, HFS+ or UFS on the whole of it, found {}; expose a "
                  "view of that moment, and a host that knows it can mount it, or have "
                  "uvfs mount show it as an image",
                  at.value, *guess)};
}

}  // namespace mariner::uvfs
