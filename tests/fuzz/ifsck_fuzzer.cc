// A file system with bytes that somebody has changed: a census of it, and a check by what has
// changed, which have to agree. The input is of changes, each of three bytes of where (little
// endian, within the image) and one that is put there. And the same input as a trace of writes, as
// a block of a directory, and as a baseline.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "ifsck/baseline_file.h"
#include "ifsck/census.h"
#include "ifsck/directory_block.h"
#include "ifsck/recheck.h"
#include "ifsck/write_trace.h"
#include "proto/bytes.h"
#include "proto/check.h"

using namespace mariner;
using namespace mariner::ifsck;

namespace {

constexpr std::uint64_t kImageBytes = 512 << 10;

// The image as mke2fs has made it of a few files; it is in memory from then on.
std::string make_image() {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("mariner-ifsck-fuzzer-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder / "tree/one/two/three");
  for (int i = 0; i < 20; ++i) {
    std::ofstream(folder / "tree/one" / ("file " + std::to_string(i)))
        << std::string(static_cast<std::size_t>(i) * 1500, 'x');
  }
  std::filesystem::create_hard_link(folder / "tree/one/file 9", folder / "tree/linked");
  const std::string image = folder / "image";
  const std::string command =
      "PATH=$PATH:/sbin:/usr/sbin; truncate -s 512K " + image +
      " && mke2fs -q -t ext4 -O ^has_journal,^metadata_csum -b 1024 -N 64 -d " +
      (folder / "tree").string() + " " + image + " >/dev/null 2>&1";
  CHECK_MSG(std::system(command.c_str()) == 0, "mke2fs (e2fsprogs) is needed");
  std::ifstream in(image, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  CHECK(bytes.size() == kImageBytes);
  std::filesystem::remove_all(folder);
  return bytes;
}

class ImagePast final : public Past {
 public:
  explicit ImagePast(std::string bytes) : bytes_(std::move(bytes)) {}
  [[nodiscard]] std::uint64_t size_bytes() const override { return bytes_.size(); }
  Result<Reach> reach() override { return Reach{}; }
  Result<SequenceNumber> moment_of(VersionTime /*time*/) override { return SequenceNumber{}; }
  Result<VersionTime> time_of(SequenceNumber /*sequence*/) override { return VersionTime{}; }
  Result<void> read(std::span<const Question> questions, std::span<std::byte> to) override {
    for (std::size_t i = 0; i < questions.size(); ++i) {
      const std::uint64_t at = questions[i].block.byte_offset();
      CHECK(at + kBlockBytes <= bytes_.size());
      std::copy_n(reinterpret_cast<const std::byte*>(bytes_.data()) + at, kBlockBytes,
                  to.begin() + static_cast<std::ptrdiff_t>(i * kBlockBytes));
    }
    return {};
  }
  Result<std::vector<BlockRange>> changed(SequenceNumber /*from*/, SequenceNumber /*to*/) override {
    return std::vector<BlockRange>{};
  }
  Result<std::vector<Version>> versions(std::span<const Lbn> /*blocks*/, SequenceNumber /*from*/,
                                        SequenceNumber /*to*/) override {
    return std::vector<Version>{};
  }

 private:
  const std::string bytes_;
};

ImagePast& past() {
  static ImagePast one(make_image());
  return one;
}

// The image as it was, and what is known of it.
struct Sound {
  Sound()
      : view(past(), {0}, none),
        volume(ExtVolume::open(view, {}).value()),
        layout(ExtLayout::of(volume).value()),
        context(volume, layout) {
    const Census taken = Census::take(volume, layout, {.progress = {}, .keep = &known}).value();
    CHECK(taken.findings_all == 0);
  }

  Overlay none;
  View view;
  ExtVolume volume;
  ExtLayout layout;
  ExtContext context;
  Baseline known;
};

void census(std::span<const std::byte> input) {
  static const Sound sound;
  Overlay overlay;
  View view(past(), {0}, overlay);
  for (; input.size() >= 4; input = input.subspan(4)) {
    const std::uint32_t place = load_le<std::uint32_t>(input.data()) & 0xffffff;
    CHECK(view.write({place % kImageBytes, 1}, input.subspan(3, 1)).has_value());
  }
  const auto volume = ExtVolume::open(view, {});
  if (!volume) return;
  const auto layout = ExtLayout::of(*volume);
  if (!layout) return;
  const auto taken = Census::take(*volume, *layout, {.findings_max = 100});
  if (!taken) return;
  CHECK(taken->findings.size() <= 100 && taken->findings.size() <= taken->findings_all);
  for (const Finding& each : taken->findings) CHECK(!describe(each).empty());

  std::vector<BlockRange> changed;
  overlay.for_each([&](Lbn lbn, const Overlay::Block&) { changed.push_back({lbn, {1}}); });
  const ExtContext now(*volume, *layout);
  const auto checked =
      Recheck::run(sound.context, now, sound.known, changed, {.findings_max = 100});
  if (!checked) return;
  CHECK(checked->findings.size() <= 100);
  CHECK((checked->findings_all == 0) == (taken->findings_all == 0));
  CHECK(checked->sound() == taken->sound());
}

void trace(std::span<const std::byte> input) {
  (void)parse_trace_head(input);
  if (input.size() < kTraceRecordBytes) return;
  const auto record = parse_trace_record(input.first(kTraceRecordBytes), 1 << 30);
  if (!record) return;
  CHECK(parse_trace_record(pack_trace_record(*record), 1 << 30).value() == *record);
}

void directory(std::span<const std::byte> input) {
  std::size_t next = 0;
  const bool whole = for_each_entry(input, [&](const DirectoryEntry& entry) {
    CHECK(entry.offset == next && 8 + entry.name.size() <= entry.length);
    next += entry.length;
  });
  CHECK(whole == (next == input.size()) && next <= input.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  census(input);
  trace(input);
  directory(input);
  if (const auto kept = parse_baseline(input))
    CHECK(parse_baseline(pack_baseline(*kept)).value() == *kept);
  return 0;
}
