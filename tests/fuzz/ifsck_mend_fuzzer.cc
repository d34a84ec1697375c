// A moment in the middle of operations, with bytes that somebody has changed: it is checked from a
// sound moment before, completed from one soon afterwards, and mended; and then nothing is wrong
// with it that a census would find, or it is said to be damaged.
//
// The input: 16 bytes that say which of the operations' blocks are written at the moment (all are
// soon afterwards), and changes, each of three bytes of where (little endian; the highest bit: of
// soon afterwards, else of the moment) and one that is put there.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ifsck/census.h"
#include "ifsck/moment.h"
#include "ifsck/moment_check.h"
#include "proto/bytes.h"
#include "proto/check.h"
#include "tests/fuzz/made_image.h"
#include "tests/fuzz/made_moments.h"

using namespace mariner;
using namespace mariner::ifsck;

namespace {

constexpr std::uint64_t kBytes = 1 << 20;
constexpr std::size_t kMaskBytes = 16;
constexpr ImageKind kKinds[] = {
    {kBytes, "-O ^has_journal,^metadata_csum", ""},
    {kBytes, "-O ^has_journal,^extents,^64bit,^metadata_csum,^flex_bg,^uninit_bg", ""},
    {kBytes, "-O ^has_journal,metadata_csum,inline_data -I 256", ""},
};
constexpr const char* kOperations =
    "write content /made\nmkdir /folder\nwrite content /folder/inside\nmkdir /folder/deep\n"
    "rm \"/one/file 3\"\nwrite content \"/one/file 3\"\n"
    "rm \"/one/file 4\"\nln \"/one/file 5\" \"/one/file 4\"\nunlink \"/one/file 5\"\n"
    "ln \"/one/file 6\" /folder/moved\nunlink \"/one/file 6\"\nkill_file \"/one/file 7\"\n"
    "rm \"/one/file 7\"\nrmdir /one/two/three\n";

struct Operations {
  explicit Operations(const ImageKind& kind)
      : before(make_image(kind)), after(change_image(before, kOperations)) {
    for (std::uint64_t at = 0; at < before.size(); at += kBlockBytes) {
      if (before.compare(at, kBlockBytes, after, at, kBlockBytes) != 0) {
        changed.push_back(Lbn{at / kBlockBytes});
      }
    }
    MadeMoments past(before, 2);
    Overlay overlay;
    CHECK(check_moment(past, {0}, states, overlay, {}).value().verdict == Verdict::kClean);
  }
  std::string before;
  std::string after;
  std::vector<Lbn> changed;
  KnownStates states;  // the moment before
};

void mend(Operations& operations, std::span<const std::byte> input) {
  MadeMoments past(operations.before, 2);
  const auto mask = input.first(kMaskBytes);
  for (std::size_t i = 0; i < operations.changed.size(); ++i) {
    const Lbn lbn = operations.changed[i];
    const bool written = (std::to_integer<unsigned>(mask[i / 8 % kMaskBytes]) >> i % 8 & 1u) != 0;
    MadeMoments::Block block;
    const auto bytes = std::as_bytes(std::span(operations.after));
    std::ranges::copy(bytes.subspan(lbn.byte_offset(), kBlockBytes), block.begin());
    past.at[written ? 0 : 1].emplace(lbn, block);
  }
  for (input = input.subspan(kMaskBytes); input.size() >= 4; input = input.subspan(4)) {
    const std::uint32_t place = load_le<std::uint32_t>(input.data()) & 0xffffff;
    past.put((place & 0x800000) != 0 ? 1 : 0, (place & 0x7fffff) % kBytes, input[3]);
  }
  Overlay overlay;
  const auto report =
      check_moment(past, {1}, operations.states, overlay, {.keep = false, .findings_max = 100});
  if (!report) return;  // no file system
  if (report->verdict == Verdict::kDamaged) {
    CHECK(!report->left.empty());
    return;
  }
  Moment mended(past, {1}, overlay);
  CHECK(mended.open().has_value());
  const auto census = Census::take(mended.context().volume, mended.context().layout,
                                   {.findings_max = 100, .progress = {}, .keep = nullptr});
  CHECK(census.has_value());
  for (const Finding& each : census->findings) CHECK_MSG(false, describe(each).c_str());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static std::vector<std::unique_ptr<Operations>> all = [] {
    std::vector<std::unique_ptr<Operations>> made;
    for (const ImageKind& kind : kKinds) made.push_back(std::make_unique<Operations>(kind));
    return made;
  }();
  const auto input = std::as_bytes(std::span(data, size));
  if (input.size() < kMaskBytes) return 0;
  for (const auto& each : all) mend(*each, input);
  return 0;
}
