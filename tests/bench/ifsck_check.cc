// Measures a check of a volume's moment by what has changed since a known one.
//
//   mariner-ifsck-check diff BASE MOMENT TRACE
//   mariner-ifsck-check check BASE TRACE --states FOLDER [--rounds N] [--cold] [--level L]
//       [--path P] [--no-mend]
//
// `diff` writes a trace of the blocks that two images have otherwise: the volume's past is then
// BASE, followed by TRACE. `check` first sees that FOLDER knows BASE (else it is checked in full,
// which is told apart), and then looks at the moment behind the trace, each round with nothing in
// memory, and with --cold nothing in the page cache. Both print a JSON object.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "ifsck/known_states.h"
#include "ifsck/moment_check.h"
#include "ifsck/write_trace.h"
#include "proto/heap.h"

namespace mariner::ifsck {
namespace {

struct Options {
  std::string base;
  std::string moment;
  std::string trace;
  std::string states;
  int rounds = 5;
  bool cold = false;
  int level = 1;
  bool mends = true;
  std::string path;  // of level 3
};

[[noreturn]] void give_up(const std::string& what) {
  fmt::print(stderr, "mariner-ifsck-check: {}\n", what);
  std::exit(1);
}

template <typename T>
T must(Result<T> result) {
  if (!result) give_up(result.error().message);
  return std::move(*result);
}

double now_ms() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void empty_page_cache() {
  sync();
  std::ofstream file("/proc/sys/vm/drop_caches");
  file << "3" << std::flush;
  if (!file) give_up("the page cache cannot be emptied: that takes root");
}

// What this process had the disk read so far.
std::uint64_t disk_bytes() {
  std::ifstream file("/proc/self/io");
  for (std::string key; file >> key;) {
    std::uint64_t value = 0;
    file >> value;
    if (key == "read_bytes:") return value;
  }
  return 0;
}

// ---- diff

class Image {
 public:
  explicit Image(const std::string& path) : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (file_.fd() < 0) give_up(path + " cannot be opened");
    bytes_ = static_cast<std::uint64_t>(lseek(file_.fd(), 0, SEEK_END));
  }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  // Where something stands, at or behind `offset`.
  [[nodiscard]] std::uint64_t data_from(std::uint64_t offset) const {
    const auto at = lseek(file_.fd(), static_cast<off_t>(offset), SEEK_DATA);
    return at < 0 ? bytes_ : static_cast<std::uint64_t>(at);
  }
  void read(std::uint64_t offset, std::span<std::byte> to) const {
    const std::size_t got = must(file_.read(offset, to));
    std::ranges::fill(to.subspan(got), std::byte{});
  }

 private:
  TraceFile file_;
  std::uint64_t bytes_ = 0;
};

void diff(const Options& options) {
  constexpr std::uint64_t kPiece = 64 * kBlockBytes;
  const Image base(options.base);
  const Image moment(options.moment);
  TraceWriter writer = must(TraceWriter::create(options.trace, moment.bytes()));
  std::vector<std::byte> was(kPiece);
  std::vector<std::byte> is(kPiece);
  std::uint64_t blocks = 0;
  const auto next = [&](std::uint64_t from) {
    return std::min(base.data_from(from), moment.data_from(from)) / kBlockBytes * kBlockBytes;
  };
  for (std::uint64_t at = next(0); at < moment.bytes(); at = next(at + kPiece)) {
    base.read(at, was);
    moment.read(at, is);
    for (std::uint64_t from = 0; from < kPiece; from += kBlockBytes) {
      const auto block = std::span(is).subspan(from, kBlockBytes);
      if (std::ranges::equal(block, std::span(was).subspan(from, kBlockBytes))) continue;
      must(writer.write(VersionTime{++blocks}, Lbn{(at + from) >> kBlockShift}, block));
    }
  }
  fmt::print("{{\"blocks\": {}}}\n", blocks);
}

// ---- check

MomentCheckOptions check_options(const Options& options) {
  MomentCheckOptions check;
  check.level = static_cast<std::uint8_t>(options.level);
  check.mend = options.mends;
  check.path = options.path;
  return check;
}

std::string full_check(const Options& options) {
  TracePast past = must(TracePast::open(options.base, options.trace));
  if (options.cold) empty_page_cache();
  KnownStates states({.folder = options.states});
  if (states.nearest({0}, {0}, {0}) != nullptr) return "null";
  Overlay overlay;
  const double began = now_ms();
  const MomentReport report = must(check_moment(past, {0}, states, overlay, {}));
  return fmt::format(R"({{"ms": {:.3f}, "blocks_read": {}, "findings": {}}})", now_ms() - began,
                     report.read.blocks_read, report.findings_all);
}

std::string check_once(const Options& options) {
  TracePast past = must(TracePast::open(options.base, options.trace));
  const SequenceNumber at = must(past.reach()).newest;
  KnownStates states({.folder = options.states});
  if (options.cold) empty_page_cache();
  const std::uint64_t read_before = disk_bytes();
  const double began = now_ms();
  if (states.nearest(at, {0}, at) == nullptr) give_up("nothing is known of " + options.base);
  const double loaded = now_ms();
  Overlay overlay;
  auto check = check_options(options);
  check.keep = false;
  const MomentReport report = must(check_moment(past, at, states, overlay, check));
  const double done = now_ms();
  if (report.full) give_up("it was checked in full");
  return fmt::format(
      R"({{"load_ms": {:.3f}, "check_ms": {:.3f}, "all_ms": {:.3f}, "blocks_read": {}, "questions": {}, )"
      R"("disk_bytes": {}, "changed_blocks": {}, "verdict": "{}", "findings": {}, "left": {}, )"
      R"("blocks_mended": {}, "replayed": {}}})",
      loaded - began, done - loaded, done - began, report.read.blocks_read, report.read.questions,
      disk_bytes() - read_before, report.changed_blocks, verdict_name(report.verdict),
      report.findings_all, report.left.size(), report.blocks_mended, report.replay.blocks);
}

void check(const Options& options) {
  std::string full = full_check(options);
  std::string rounds;
  for (int i = 0; i < options.rounds; ++i) rounds += (i > 0 ? ", " : "") + check_once(options);
  fmt::print("{{\"full\": {}, \"rounds\": [{}]}}\n", full, rounds);
}

}  // namespace
}  // namespace mariner::ifsck

int main(int argc, char** argv) {
  using namespace mariner::ifsck;
  mariner::keep_freed_memory(32 << 20, 64 << 20);  // as ifsck does
  Options options;
  CLI::App program("Measures a check of a volume's moment by what has changed since a known one.");
  program.require_subcommand(1);
  CLI::App* const diffs =
      program.add_subcommand("diff", "A trace of what two images have otherwise");
  diffs->add_option("base", options.base)->required();
  diffs->add_option("moment", options.moment)->required();
  diffs->add_option("trace", options.trace)->required();
  CLI::App* const checks = program.add_subcommand("check", "Checks the moment behind a trace");
  checks->add_option("base", options.base)->required();
  checks->add_option("trace", options.trace)->required();
  checks->add_option("--states", options.states)->required();
  checks->add_option("--rounds", options.rounds)->capture_default_str();
  checks->add_flag("--cold", options.cold);
  checks->add_option("--level", options.level)->capture_default_str();
  checks->add_flag("!--no-mend", options.mends);
  checks->add_option("--path", options.path);
  CLI11_PARSE(program, argc, argv);
  if (*diffs) diff(options);
  if (*checks) check(options);
  return 0;
}
