// Reads the past of a volume as a program of ifsck does, for tests and by hand.
//
//   mariner-past-reader SOCKET VOLUME reach
//   mariner-past-reader SOCKET VOLUME images SEQUENCE FILE [SEQUENCE FILE]...   in any order
//   mariner-past-reader SOCKET VOLUME changed FROM TO
//   mariner-past-reader SOCKET VOLUME versions FROM TO BLOCK...
//   mariner-past-reader SOCKET VOLUME moment TIME_NS
//   mariner-past-reader SOCKET VOLUME time SEQUENCE
//   mariner-past-reader SOCKET VOLUME timing SEQUENCE BLOCKS ROUNDS    ms for each round
//
// Prints numbers, a row a line. Exit codes: 0; 1 with an error on stderr; 2 wrong usage.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "ifsck/program/remote_past.h"

namespace mariner::ifsck {
namespace {

using Words = std::vector<std::string>;

std::uint64_t number(const std::string& word) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error == std::errc{} && end == word.data() + word.size()) return value;
  fmt::print(stderr, "{} is no number\n", word);
  std::exit(2);
}

Result<void> reach(RemotePast& past) {
  const Result<Past::Reach> found = past.reach();
  if (!found) return found.error();
  fmt::print("{} {} {}\n", found->oldest.value, found->newest.value, past.size_bytes());
  return {};
}

Result<void> images(RemotePast& past, const Words& words) {
  struct Wanted {
    Past::Question question;
    int fd;
  };
  std::vector<Wanted> wanted;
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    const int fd = ::open(words[i + 1].c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0) return errno_error(errno, words[i + 1]);
    for (std::uint64_t block = 0; block < past.size_bytes() >> kBlockShift; ++block) {
      wanted.push_back({{{block}, {number(words[i])}}, fd});
    }
  }
  std::ranges::shuffle(wanted, std::mt19937_64(1));
  constexpr std::size_t kAtOnce = 3000;
  std::vector<std::byte> bytes(kAtOnce * kBlockBytes);
  for (std::size_t at = 0; at < wanted.size(); at += kAtOnce) {
    const auto some = std::span(wanted).subspan(at, std::min(kAtOnce, wanted.size() - at));
    std::vector<Past::Question> questions;
    for (const Wanted& each : some) questions.push_back(each.question);
    const Result<void> read =
        past.read(questions, std::span(bytes).first(some.size() * kBlockBytes));
    if (!read) return read;
    for (std::size_t i = 0; i < some.size(); ++i) {
      const auto offset = static_cast<off_t>(some[i].question.block.byte_offset());
      if (::pwrite(some[i].fd, &bytes[i * kBlockBytes], kBlockBytes, offset) != kBlockBytes) {
        return errno_error(errno, "pwrite");
      }
    }
  }
  return {};
}

Result<void> changed(RemotePast& past, const Words& words) {
  const auto found = past.changed({number(words[0])}, {number(words[1])});
  if (!found) return found.error();
  for (const BlockRange& each : *found) fmt::print("{} {}\n", each.first.value, each.count.value);
  return {};
}

Result<void> versions(RemotePast& past, const Words& words) {
  std::vector<Lbn> blocks;
  for (std::size_t i = 2; i < words.size(); ++i) blocks.push_back({number(words[i])});
  const auto found = past.versions(blocks, {number(words[0])}, {number(words[1])});
  if (!found) return found.error();
  for (const Past::Version& each : *found) {
    fmt::print("{} {} {}\n", each.block.value, each.sequence.value, each.time.ns);
  }
  return {};
}

Result<void> moment(RemotePast& past, const Words& words) {
  const Result<SequenceNumber> found = past.moment_of({number(words[0])});
  if (!found) return found.error();
  fmt::print("{}\n", found->value);
  return {};
}

Result<void> time(RemotePast& past, const Words& words) {
  const Result<VersionTime> found = past.time_of({number(words[0])});
  if (!found) return found.error();
  fmt::print("{}\n", found->ns);
  return {};
}

Result<void> timing(RemotePast& past, const Words& words) {
  const std::size_t count = number(words[1]);
  std::mt19937_64 random(7);
  std::vector<std::byte> to(count * kBlockBytes);
  for (std::uint64_t round = number(words[2]); round > 0; --round) {
    std::vector<Past::Question> questions(count);
    for (Past::Question& each : questions) {
      each = {{random() % (past.size_bytes() >> kBlockShift)}, {number(words[0])}};
    }
    const auto begun = std::chrono::steady_clock::now();
    if (const Result<void> read = past.read(questions, to); !read) return read;
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begun;
    fmt::print("{:.2f}\n", took.count());
  }
  return {};
}

int run(const Words& words) {
  const auto usage = [] {
    fmt::print(stderr, "usage: mariner-past-reader SOCKET VOLUME VERB ...\n");
    return 2;
  };
  if (words.size() < 3) return usage();
  const std::string& verb = words[2];
  const Words rest(words.begin() + 3, words.end());
  Result<RemotePast> opened = RemotePast::open({.socket = words[0], .volume = words[1]});
  Result<void> done;
  if (!opened) {
    done = opened.error();
  } else if (verb == "reach" && rest.empty()) {
    done = reach(*opened);
  } else if (verb == "images" && rest.size() >= 2 && rest.size() % 2 == 0) {
    done = images(*opened, rest);
  } else if (verb == "changed" && rest.size() == 2) {
    done = changed(*opened, rest);
  } else if (verb == "versions" && rest.size() >= 2) {
    done = versions(*opened, rest);
  } else if (verb == "moment" && rest.size() == 1) {
    done = moment(*opened, rest);
  } else if (verb == "time" && rest.size() == 1) {
    done = time(*opened, rest);
  } else if (verb == "timing" && rest.size() == 3) {
    done = timing(*opened, rest);
  } else {
    return usage();
  }
  if (done) return 0;
  fmt::print(stderr, "{}\n", to_string(done.error()));
  return 1;
}

}  // namespace
}  // namespace mariner::ifsck

int main(int count, char** words) { return mariner::ifsck::run({words + 1, words + count}); }
