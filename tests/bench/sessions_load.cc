// mariner-sessions-load: many sessions on some LUNs, some of which come and go, for soaking a
// target and for telling whether it is fair to them and gives back what they wrote.
//
//   mariner-sessions-load URL... --sessions 64 --depth 32 --passing 16 --seconds 600
//
// Each session reads and writes 4 KiB at random in a region of its own (session_region.h), which is
// filled first and read as a whole in the end. Prints {"event": "filled"}, {"event": "measuring"}
// and {"event": "measured"} when it is so far, and in the end an object: operations of each steady
// session, as a whole and in windows, latencies, comings and goings, and what went wrong. Exit code
// 1: something did.
//
// Single-threaded over all sessions, on libiscsi.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "proto/error.h"
#include "tests/bench/cpu_time.h"
#include "tests/bench/json_text.h"
#include "tests/bench/soak_place.h"

namespace mariner::bench {
namespace {

using Clock = SoakCounts::Clock;
using Time = SoakCounts::Time;
using Phase = SoakPlace::Phase;
using Seconds = std::chrono::duration<double>;

constexpr std::size_t kSessionsMax = 256;
constexpr std::size_t kDepthMax = 128;
constexpr std::chrono::seconds kStallMax{30};
constexpr std::chrono::milliseconds kTurnMax{20};
// Beyond, there is no use in going on.
constexpr std::uint64_t kFailuresMax = 1000;

struct SoakOptions {
  std::vector<std::string> urls;
  std::string initiator = "iqn.2026-11.org.mariner:soak";
  std::size_t sessions = 64;
  std::size_t passing = 16;  // of them, come and go
  std::size_t depth = 32;    // of each session
  unsigned reads = 70;       // percent
  std::uint64_t region_bytes = 16 << 20;
  double life_s = 4;
  double afterlife_s = 30;
  double warmup_s = 5;
  double seconds = 600;  // measured, after filling and warm-up
  double window_s = 10;
  std::uint64_t seed = 1;
  int server_pid = 0;
};

Clock::duration to_duration(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(Seconds(seconds));
}

class Soak {
 public:
  explicit Soak(const SoakOptions& options)
      : options_(options), contents_(options.seed), counts_(options.sessions - options.passing) {
    for (std::size_t i = 0; i < options.sessions; ++i) places_.push_back(place(i));
  }

  // All of it. False: something went wrong.
  bool run();

 private:
  std::unique_ptr<SoakPlace> place(std::size_t number);
  void enter(Phase phase);
  // Until `done`, or all is in vain.
  template <typename Done>
  void turn_until(Done done);
  void turn();
  void print(const CpuTime& server, const CpuTime& client) const;

  const SoakOptions options_;
  const StampedContents contents_;
  SoakCounts counts_;
  std::vector<std::unique_ptr<SoakPlace>> places_;
  std::vector<pollfd> events_;  // two of each place
  std::size_t turns_ = 0;
  bool in_vain_ = false;
};

std::unique_ptr<SoakPlace> Soak::place(std::size_t number) {
  const BlockCount blocks{options_.region_bytes / kBlockBytes};
  const std::size_t steady = options_.sessions - options_.passing;
  SoakSession::Options session{
      .unit = {.url = options_.urls[number % options_.urls.size()],
               .initiator = fmt::format("{}-{}", options_.initiator, number)},
      .first = Lbn{number / options_.urls.size() * blocks.value},
      .blocks = blocks,
      .depth = options_.depth,
      .afterlife =
          std::chrono::duration_cast<std::chrono::milliseconds>(Seconds(options_.afterlife_s))};
  if (number < steady) session.steady = number;
  return std::make_unique<SoakPlace>(
      SoakPlace::Options{.number = static_cast<std::uint32_t>(number),
                         .session = std::move(session),
                         .region = {.session = static_cast<std::uint32_t>(number),
                                    .blocks = blocks.value,
                                    .reads = options_.reads,
                                    .seed = options_.seed + number},
                         .life = Seconds(options_.life_s)},
      contents_, counts_);
}

void Soak::turn() {
  auto now = Clock::now();
  events_.clear();
  for (const auto& place : places_) {
    place->act(now);
    place->add_events(events_);
  }
  if (::poll(events_.data(), events_.size(), static_cast<int>(kTurnMax.count())) < 0) {
    if (errno == EINTR) return;
    in_vain_ = true;
    return counts_.failure(std::strerror(errno));
  }
  // Another one is the first in each turn, so that it is not this program that prefers some.
  ++turns_;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const std::size_t number = (turns_ + i) % places_.size();
    places_[number]->serve(&events_[2 * number]);
  }
  now = Clock::now();
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (!places_[i]->silent(now, kStallMax)) continue;
    in_vain_ = true;
    counts_.failure(fmt::format("session {}: no answer for half a minute", i));
  }
  if (counts_.failures() > kFailuresMax) in_vain_ = true;
}

template <typename Done>
void Soak::turn_until(Done done) {
  while (!in_vain_ && !done()) turn();
}

void Soak::enter(Phase phase) {
  for (const auto& place : places_) place->enter(phase, Clock::now());
}

void tell(const char* event) {
  fmt::print("{{\"event\": \"{}\"}}\n", event);
  std::fflush(stdout);
}

bool Soak::run() {
  const auto all = [this](auto&& predicate) { return std::ranges::all_of(places_, predicate); };
  const auto until = [](Time time) { return [time] { return Clock::now() >= time; }; };
  turn_until([&] { return all([](const auto& place) { return place->done(); }); });
  tell("filled");
  enter(Phase::kMixed);
  turn_until(until(Clock::now() + to_duration(options_.warmup_s)));
  tell("measuring");
  const auto length = to_duration(options_.seconds);
  const auto begin = Clock::now();
  counts_.begin(begin, to_duration(options_.window_s), length);
  const CpuTime server = CpuTime::of_process(options_.server_pid);
  const CpuTime client = CpuTime::of_self();
  turn_until(until(begin + length));
  const CpuTime server_used = CpuTime::of_process(options_.server_pid) - server;
  const CpuTime client_used = CpuTime::of_self() - client;
  tell("measured");
  enter(Phase::kVerifying);
  turn_until([&] { return all([](const auto& place) { return place->done(); }); });
  enter(Phase::kEnding);
  turn_until([&] { return all([](const auto& place) { return place->over(); }); });
  for (const auto& place : places_) place->abandon(Clock::now());
  print(server_used, client_used);
  return counts_.failures() + counts_.mismatches() + counts_.late() == 0;
}

std::string latencies(const LatencyHistogram& of) {
  const auto us = [&](double percent) {
    return static_cast<double>(of.percentile(percent)) / 1000;
  };
  return fmt::format(
      "{{\"count\": {}, \"mean\": {:.1f}, \"p50\": {:.1f}, \"p90\": {:.1f}, \"p99\": {:.1f}, "
      "\"p99.9\": {:.1f}, \"max\": {:.1f}}}",
      of.total(), of.mean() / 1000, us(50), us(90), us(99), us(99.9), us(100));
}

void Soak::print(const CpuTime& server, const CpuTime& client) const {
  const std::uint64_t operations = counts_.reads().total() + counts_.writes().total();
  std::vector<std::string> windows;
  for (const auto& window : counts_.windows()) {
    windows.push_back(fmt::format("[{}]", fmt::join(window, ", ")));
  }
  std::vector<std::string> events;
  for (const auto& [what, count] : counts_.events()) {
    events.push_back(fmt::format("{}: {}", json_quoted(what), count));
  }
  std::vector<std::string> told;
  for (const auto& what : counts_.told()) told.push_back(json_quoted(what));
  std::uint64_t uncertain = 0;
  for (const auto& place : places_) uncertain += place->region().uncertain();
  fmt::print("{{\"operations\": {}, \"seconds\": {:.3f}, \"rate\": {:.1f}, ", operations,
             options_.seconds, static_cast<double>(operations) / options_.seconds);
  fmt::print("\"steady\": [{}], \"passing\": {}, \"window_s\": {:.3f}, \"windows\": [{}], ",
             fmt::join(counts_.operations(), ", "), counts_.others(), options_.window_s,
             fmt::join(windows, ", "));
  fmt::print("\"silence_max_s\": {:.3f}, \"read_us\": {}, \"write_us\": {}, ",
             Seconds(counts_.silence_max()).count(), latencies(counts_.reads()),
             latencies(counts_.writes()));
  fmt::print("\"server_cpu_s\": {:.2f}, \"client_cpu_s\": {:.2f}, ", server.total_s(),
             client.total_s());
  fmt::print(
      "\"events\": {{{}}}, \"uncertain\": {}, \"late\": {}, \"mismatches\": {}, \"failures\": {}, "
      "\"told\": [{}]}}\n",
      fmt::join(events, ", "), uncertain, counts_.late(), counts_.mismatches(), counts_.failures(),
      fmt::join(told, ", "));
}

int main(int argc, char** argv) {
  SoakOptions options;
  CLI::App app{"Many sessions on some LUNs, some of which come and go"};
  const auto bytes = CLI::AsSizeValue(false);
  app.add_option("url", options.urls, "iscsi://HOST:PORT/IQN/LUN, one or more")->required();
  app.add_option("--initiator", options.initiator, "the initiators' names begin so");
  app.add_option("--sessions", options.sessions)->check(CLI::Range(std::size_t{1}, kSessionsMax));
  app.add_option("--passing", options.passing, "how many of the sessions come and go");
  app.add_option("--depth", options.depth, "commands outstanding in a session")
      ->check(CLI::Range(std::size_t{1}, kDepthMax));
  app.add_option("--reads", options.reads, "percent; the others are writes")
      ->check(CLI::Range(0, 100));
  app.add_option("--region-bytes", options.region_bytes, "of each session")
      ->transform(bytes)
      ->check(CLI::Range(std::uint64_t{1} << 19, std::uint64_t{1} << 40));
  app.add_option("--life", options.life_s, "seconds that a passing session lives, on average")
      ->check(CLI::Range(0.1, 3600.0));
  app.add_option("--afterlife", options.afterlife_s,
                 "seconds that a target may be busy with commands of a lost connection")
      ->check(CLI::Range(0.0, 3600.0));
  app.add_option("--warmup", options.warmup_s, "seconds before it measures, after filling")
      ->check(CLI::Range(0.0, 86400.0));
  app.add_option("--seconds", options.seconds, "seconds to measure")
      ->check(CLI::Range(0.1, 86400.0));
  app.add_option("--window", options.window_s, "seconds that are counted apart")
      ->check(CLI::Range(0.1, 86400.0));
  app.add_option("--seed", options.seed);
  app.add_option("--server-pid", options.server_pid, "whose CPU time to measure; 0: nobody's");
  CLI11_PARSE(app, argc, argv);
  if (options.passing >= options.sessions) {
    std::fprintf(stderr, "mariner-sessions-load: --passing: fewer than --sessions\n");
    return 2;
  }
  std::signal(SIGPIPE, SIG_IGN);  // a connection that the target ended
  return Soak(options).run() ? 0 : 1;
}

}  // namespace
}  // namespace mariner::bench

int main(int argc, char** argv) { return mariner::bench::main(argc, argv); }
