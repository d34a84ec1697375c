// A file system with bytes that somebody has changed: a census of it, and a check by what has
// changed, which have to agree. The input is of changes, each of three bytes of where (little
// endian, within the image) and one that is put there. And the same input as changes of a journal
// that is then replayed, as its fast commits, as a trace of writes, as a block of a directory, and
// as a baseline.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "ifsck/baseline_file.h"
#include "ifsck/census.h"
#include "ifsck/directory_block.h"
#include "ifsck/ext_checksum.h"
#include "ifsck/fast_commit.h"
#include "ifsck/fast_replay.h"
#include "ifsck/journal.h"
#include "ifsck/journal_file.h"
#include "ifsck/recheck.h"
#include "ifsck/write_trace.h"
#include "proto/bytes.h"
#include "proto/check.h"
#include "tests/fuzz/made_image.h"

using namespace mariner;
using namespace mariner::ifsck;

namespace {

constexpr std::uint64_t kImageBytes = 512 << 10;
constexpr std::uint64_t kJournaledBytes = 8 << 20;

constexpr ImageKind kPlain = {kImageBytes, "-O ^has_journal,^metadata_csum", ""};
// Its journal has transactions to be replayed.
constexpr ImageKind kJournaled = {kJournaledBytes, "-O ^metadata_csum,^64bit -J size=2",
                                  "jo\njw -b 5000,5001,5002 IMAGE\njw -r 5001 IMAGE\n"
                                  "jw -b 5000,5003 IMAGE\njc\n"};

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
  static ImagePast one(make_image(kPlain));
  return one;
}
ImagePast& journaled() {
  static ImagePast one(make_image(kJournaled));
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

// Where the blocks of its journal are.
const JournalFile& journal_file() {
  static const JournalFile one = [] {
    Overlay overlay;
    View view(journaled(), {0}, overlay);
    const ExtVolume volume = ExtVolume::open(view, {}).value();
    return JournalFile::open(volume, ExtLayout::of(volume).value()).value();
  }();
  return one;
}

// Within the first blocks of the journal, or with the highest bit of where anywhere.
void journal(std::span<const std::byte> input) {
  Overlay overlay;
  View view(journaled(), {0}, overlay);
  for (; input.size() >= 4; input = input.subspan(4)) {
    const std::uint32_t place = load_le<std::uint32_t>(input.data()) & 0xffffff;
    std::uint64_t offset = (place & 0x7fffff) % kJournaledBytes;
    if ((place & 0x800000) == 0) {
      offset = journal_file().bytes_of(place >> 10 & 15).offset + (place & 1023);
    }
    CHECK(view.write({offset, 1}, input.subspan(3, 1)).has_value());
  }
  const std::size_t before = overlay.size();
  const auto done = replay_journal(view);
  CHECK(done || overlay.size() == before);
  if (done && done->needed) CHECK(!replay_journal(view)->needed);
}

// The input as one fast commit, with the right checksum.
void fast_commit(std::span<const std::byte> input) {
  constexpr std::size_t kBlock = 1024;
  constexpr std::size_t kHeadBytes = 12;
  constexpr std::size_t kTailBytes = 12;
  std::vector<std::byte> block(kBlock);
  store_le<std::uint16_t>(block.data(), 9);
  store_le<std::uint16_t>(block.data() + 2, 8);
  const std::size_t size = std::min(input.size(), kBlock - kHeadBytes - kTailBytes);
  std::ranges::copy(input.first(size), block.begin() + kHeadBytes);
  std::byte* const tail = block.data() + kHeadBytes + size;
  store_le<std::uint16_t>(tail, 8);
  store_le<std::uint16_t>(tail + 2, 8);
  store_le<std::uint32_t>(tail + 8, ext_crc(0, std::span(block).first(kHeadBytes + size + 8)));
  FastCommits commits(0);
  if (const auto more = commits.add(block); !more) return;
  const auto operations = commits.take_operations();
  if (operations.empty()) return;
  Overlay overlay;
  View view(journaled(), {0}, overlay);
  const ExtVolume volume = ExtVolume::open(view, {.writable = true}).value();
  const ExtLayout layout = ExtLayout::of(volume).value();
  (void)replay_fast_commits(volume, layout, operations);
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
  journal(input);
  fast_commit(input);
  trace(input);
  directory(input);
  if (const auto kept = parse_baseline(input))
    CHECK(parse_baseline(pack_baseline(*kept)).value() == *kept);
  return 0;
}
