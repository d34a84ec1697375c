// Measures questions about the files of the past: of a daemon's volume, or of an image with a
// trace.
//
//   mariner-files-query (--socket S --volume V | --image I --trace T) --kind KIND PATH...
//       [--since TIME] [--rounds N] [--kept]
//
// KIND is "versions" or "incarnations" (of each PATH), or "below" (all that ever was below it).
// Prints a list: for each path what was found, and for each round how long it took, how long of it
// the daemon (or the files) was asked, in how many calls, and the blocks that were read. A round
// begins with connecting to the daemon, and nothing is known from the one before. With --kept only
// the first one does: from then on the connection is kept, and what the journal had is known,
// and blocks that were read; how files were is found anew.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "proto/heap.h"
#include "server/client/terminal.h"
#include "uvfs/ext_history.h"
#include "uvfs/kept_past.h"
#include "uvfs/program/file_source.h"

namespace mariner::uvfs {
namespace {

struct Options {
  std::string socket;
  std::string volume;
  SourceWords source;
  std::string since;
  std::string kind = "versions";
  std::vector<std::string> paths;
  int rounds = 5;
  bool kept = false;
};

[[noreturn]] void give_up(const std::string& what) {
  fmt::print(stderr, "mariner-files-query: {}\n", what);
  std::exit(1);
}

template <typename T>
T must(Result<T> result) {
  if (!result) give_up(result.error().message);
  return std::move(*result);
}

struct Found {
  std::size_t paths = 0;
  std::size_t incarnations = 0;
  std::size_t versions = 0;
};

void add(Found& found, const PathHistory& history) {
  ++found.paths;
  found.incarnations += history.incarnations.size();
  for (const Incarnation& each : history.incarnations) found.versions += each.versions.size();
}

double ms_since(std::chrono::steady_clock::time_point begun) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun)
      .count();
}

// A past, and what asking it took.
class TimedPast final : public ifsck::Past {
  template <typename Call>
  auto timed(Call call) {
    const auto begun = std::chrono::steady_clock::now();
    auto answer = call();
    ms += ms_since(begun);
    ++calls;
    return answer;
  }

 public:
  explicit TimedPast(std::unique_ptr<ifsck::Past> past) : past_(std::move(past)) {}
  [[nodiscard]] std::uint64_t size_bytes() const override { return past_->size_bytes(); }
  Result<Reach> reach() override {
    return timed([&] { return past_->reach(); });
  }
  Result<SequenceNumber> moment_of(VersionTime time) override {
    return timed([&] { return past_->moment_of(time); });
  }
  Result<VersionTime> time_of(SequenceNumber sequence) override {
    return timed([&] { return past_->time_of(sequence); });
  }
  Result<void> read(std::span<const Question> questions, std::span<std::byte> to) override {
    blocks_read += questions.size();
    return timed([&] { return past_->read(questions, to); });
  }
  void expect(std::span<const Question> questions) override {
    const auto begun = std::chrono::steady_clock::now();
    past_->expect(questions);
    ms += ms_since(begun);
  }
  Result<std::vector<BlockRange>> changed(SequenceNumber from, SequenceNumber to) override {
    return timed([&] { return past_->changed(from, to); });
  }
  Result<std::vector<Version>> versions(std::span<const Lbn> blocks, SequenceNumber from,
                                        SequenceNumber to) override {
    return timed([&] { return past_->versions(blocks, from, to); });
  }
  Result<SequenceNumber> first_break(SequenceNumber from, SequenceNumber to) override {
    return timed([&] { return past_->first_break(from, to); });
  }
  void reset() {
    ms = 0;
    calls = blocks_read = 0;
  }
  double ms = 0;
  std::uint64_t calls = 0;
  std::uint64_t blocks_read = 0;

 private:
  std::unique_ptr<ifsck::Past> past_;
};

Found ask(OpenHistory& history, const Options& options, const std::string& path) {
  PathSearch search(*history.files);
  Found found;
  if (options.kind == "below") {
    for (const PathHistory& each : must(search.find_below(path))) add(found, each);
  } else if (options.kind == "versions") {
    add(found, must(search.find(path)));
  } else {
    found = {.paths = 1, .incarnations = must(search.presences_of(path)).size(), .versions = 0};
  }
  return found;
}

void run(const Options& options) {
  const SystemZone zone;
  client::Console console = client::process_console();
  client::Context context{console, zone, client::system_now, {}, {}};
  if (!options.socket.empty()) context.flags.socket = options.socket;
  std::vector<std::string> all;
  for (const std::string& path : options.paths) {
    std::vector<std::string> rounds;
    Found found;
    std::optional<FileSource> source;
    TimedPast* timed = nullptr;
    std::optional<KeptPast> kept;
    OpenHistory history;
    for (int i = 0; i < options.rounds; ++i) {
      const auto begun = std::chrono::steady_clock::now();
      if (!options.kept || i == 0) {
        ObjectName name{.volume = options.volume, .path = path};
        source = must(FileSource::open(context, options.source, name));
        auto past = std::make_unique<TimedPast>(std::move(source->moments.past));
        timed = past.get();
        source->moments.past = std::move(past);
        history = {};
        kept.reset();
        if (options.kept) kept.emplace(*timed);
      }
      timed->reset();
      const Stretch stretch = must(source->stretch({.since = options.since, .until = ""}));
      if (history.past == nullptr) {
        history = must(open_history(kept ? static_cast<ifsck::Past&>(*kept) : *timed, stretch));
      } else {
        history.files = must(ExtHistory::open(*history.past, stretch));
      }
      found = ask(history, options, path);
      rounds.push_back(
          fmt::format(R"({{"ms": {:.4f}, "asking_ms": {:.4f}, "calls": {}, "blocks": {}}})",
                      ms_since(begun), timed->ms, timed->calls, timed->blocks_read));
    }
    all.push_back(fmt::format(
        R"({{"path": "{}", "paths": {}, "incarnations": {}, "versions": {}, "rounds": [{}]}})",
        path, found.paths, found.incarnations, found.versions, fmt::join(rounds, ", ")));
  }
  fmt::print("[{}]\n", fmt::join(all, ",\n "));
}

}  // namespace
}  // namespace mariner::uvfs

int main(int argc, char** argv) {
  mariner::keep_freed_memory(32 << 20, 64 << 20);
  mariner::uvfs::Options options;
  CLI::App program("Measures questions about the files of the past.");
  program.add_option("--socket", options.socket);
  program.add_option("--volume", options.volume);
  program.add_option("--image", options.source.image);
  program.add_option("--trace", options.source.trace);
  program.add_option("--since", options.since);
  program.add_option("--kind", options.kind)
      ->check(CLI::IsMember({"versions", "incarnations", "below"}));
  program.add_option("--rounds", options.rounds)->check(CLI::PositiveNumber);
  program.add_flag("--kept", options.kept);
  program.add_option("PATH", options.paths)->required();
  CLI11_PARSE(program, argc, argv);
  mariner::uvfs::run(options);
  return 0;
}
