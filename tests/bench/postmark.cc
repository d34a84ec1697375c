// mariner-postmark: Postmark in a folder, for measuring the file system that it is in.
//
//   mariner-postmark FOLDER --files 10000 --folders 1000 --transactions 50000 [--fsync]
//
// Folders s0, s1, ... are made in FOLDER, then the files of the pool in them, then come the
// transactions, and all is removed (postmark_pool.h). One thread, one system call at a time. Each
// file is opened, written, appended to or read in pieces, and closed again. --fsync: what was
// written to a file is flushed before it is closed; without, that is left to how the file system is
// mounted. Counts of files and bytes are those of NetApp's own program (Debian's package postmark)
// up to what chance makes, with the same numbers of files, folders and transactions; that one can
// neither flush nor say how long an action takes. Prints one JSON object: seconds of each phase;
// transactions in a second of theirs; bytes read and written in a second of all phases, as Postmark
// counts them; and of each action how often it was done and how long it took, from opening to
// closing.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/bench/latency_histogram.h"
#include "tests/bench/postmark_pool.h"

namespace mariner::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array<const char*, 4> kActions{"create", "remove", "read", "append"};

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

struct ProgramOptions {
  PostmarkOptions pool;
  std::string root;
  std::uint32_t transactions = 500;
  std::uint32_t piece_bytes = 4096;  // of one read or write: what stdio's buffer makes of them
  bool fsync = false;
};

class File {
 public:
  File(const std::string& path, int flags) : path_(path), fd_(::open(path.c_str(), flags, 0644)) {
    if (fd_ < 0) fail("open " + path);
  }
  ~File() { ::close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void write(const char* data, std::size_t size) const {
    const ssize_t done = ::write(fd_, data, size);
    if (done != static_cast<ssize_t>(size)) fail("write " + path_);
  }
  [[nodiscard]] std::size_t read(char* data, std::size_t size) const {
    const ssize_t done = ::read(fd_, data, size);
    if (done < 0) fail("read " + path_);
    return static_cast<std::size_t>(done);
  }
  void flush() const {
    if (::fsync(fd_) != 0) fail("fsync " + path_);
  }

 private:
  const std::string& path_;
  int fd_;
};

class Postmark {
 public:
  explicit Postmark(const ProgramOptions& options)
      : options_(options),
        pool_(options.pool),
        text_(options.pool.size_max + options.piece_bytes, ' ') {
    for (std::size_t i = 0; i < text_.size(); ++i) text_[i] = static_cast<char>('!' + i * 7 % 90);
  }

  void run() {
    phase(make_s_, [this] {
      for (std::uint32_t i = 0; i < options_.pool.folders; ++i) {
        const std::string path = folder(i);
        if (::mkdir(path.c_str(), 0755) != 0) fail("mkdir " + path);
      }
      for (std::uint32_t i = 0; i < options_.pool.files; ++i) apply(pool_.fill());
    });
    phase(transactions_s_, [this] {
      for (std::uint32_t i = 0; i < options_.transactions; ++i) {
        for (const PostmarkStep& step : pool_.transaction()) apply(step);
      }
    });
    phase(remove_s_, [this] {
      while (const auto step = pool_.empty()) apply(*step);
      for (std::uint32_t i = 0; i < options_.pool.folders; ++i) {
        const std::string path = folder(i);
        if (::rmdir(path.c_str()) != 0) fail("rmdir " + path);
      }
    });
  }

  void print() const {
    const double all_s = make_s_ + transactions_s_ + remove_s_;
    fmt::print("{{\"make_s\": {:.4f}, \"transactions_s\": {:.4f}, \"remove_s\": {:.4f}, ", make_s_,
               transactions_s_, remove_s_);
    fmt::print("\"transactions_per_s\": {:.2f}, \"files_made_per_s\": {:.2f}, ",
               options_.transactions / transactions_s_, options_.pool.files / make_s_);
    fmt::print("\"read_bytes_per_s\": {:.0f}, \"written_bytes_per_s\": {:.0f}, \"actions\": {{",
               static_cast<double>(read_) / all_s, static_cast<double>(written_) / all_s);
    for (std::size_t i = 0; i < kActions.size(); ++i) {
      const LatencyHistogram& took = took_[i];
      fmt::print(
          "{}\"{}\": {{\"count\": {}, \"mean_us\": {:.1f}, \"p50_us\": {:.1f}, \"p99_us\": "
          "{:.1f}}}",
          i == 0 ? "" : ", ", kActions[i], took.total(), took.mean() / 1000, us(took, 50),
          us(took, 99));
    }
    fmt::print("}}}}\n");
  }

 private:
  template <typename Work>
  static void phase(double& seconds, const Work& work) {
    const auto begun = Clock::now();
    work();
    seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  }
  static double us(const LatencyHistogram& took, double percent) {
    return static_cast<double>(took.percentile(percent)) / 1000;
  }
  [[nodiscard]] std::string folder(std::uint32_t number) const {
    return options_.root + "/s" + std::to_string(number);
  }
  [[nodiscard]] std::string path(const PostmarkFile& file) const {
    const std::string in = options_.pool.folders == 0 ? options_.root : folder(file.folder);
    return in + "/" + std::to_string(file.number);
  }

  void apply(const PostmarkStep& step) {
    const std::string name = path(step.file);
    const auto begun = Clock::now();
    switch (step.action) {
      case PostmarkAction::kCreate: write(name, O_CREAT | O_EXCL | O_WRONLY, step); break;
      case PostmarkAction::kAppend: write(name, O_APPEND | O_WRONLY, step); break;
      case PostmarkAction::kRead: read(name, step.bytes); break;
      case PostmarkAction::kRemove:
        if (::unlink(name.c_str()) != 0) fail("unlink " + name);
        break;
    }
    const auto took =
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begun).count();
    took_[static_cast<std::size_t>(step.action)].record(static_cast<std::uint64_t>(took));
  }
  void write(const std::string& name, int flags, const PostmarkStep& step) {
    const File file(name, flags);
    for (std::uint32_t at = 0; at < step.bytes; at += options_.piece_bytes) {
      // Another place in the text for each file.
      file.write(text_.data() + (step.file.number + at) % options_.piece_bytes,
                 std::min(options_.piece_bytes, step.bytes - at));
    }
    written_ += step.bytes;
    if (options_.fsync) file.flush();
  }
  void read(const std::string& name, std::uint32_t bytes) {
    const File file(name, O_RDONLY);
    piece_.resize(options_.piece_bytes);
    std::uint32_t seen = 0;
    while (const std::size_t count = file.read(piece_.data(), piece_.size())) {
      seen += static_cast<std::uint32_t>(count);
    }
    if (seen != bytes) {
      throw std::runtime_error(fmt::format("{} has {} bytes, {} were written", name, seen, bytes));
    }
    read_ += seen;
  }

  const ProgramOptions& options_;
  PostmarkPool pool_;
  std::string text_;
  std::vector<char> piece_;
  double make_s_ = 0;
  double transactions_s_ = 0;
  double remove_s_ = 0;
  std::uint64_t read_ = 0;
  std::uint64_t written_ = 0;
  std::array<LatencyHistogram, kActions.size()> took_;
};

int main(int argc, char** argv) {
  ProgramOptions options;
  CLI::App app{"Postmark in a folder, for measuring the file system that it is in"};
  app.add_option("folder", options.root, "where")->required()->check(CLI::ExistingDirectory);
  app.add_option("--files", options.pool.files, "when the transactions begin");
  app.add_option("--folders", options.pool.folders, "that they are spread over");
  app.add_option("--transactions", options.transactions)->check(CLI::PositiveNumber);
  app.add_option("--size-min", options.pool.size_min, "bytes of a file")
      ->check(CLI::PositiveNumber);
  app.add_option("--size-max", options.pool.size_max, "bytes of a file")
      ->check(CLI::PositiveNumber);
  app.add_option("--read-bias", options.pool.read_bias, "of ten: read, do not append")
      ->check(CLI::Range(0u, PostmarkPool::kBiasMax));
  app.add_option("--create-bias", options.pool.create_bias, "of ten: make, do not remove")
      ->check(CLI::Range(0u, PostmarkPool::kBiasMax));
  app.add_option("--piece", options.piece_bytes, "bytes of one read or write")
      ->check(CLI::PositiveNumber);
  app.add_option("--seed", options.pool.seed);
  app.add_flag("--fsync", options.fsync, "flush each file before it is closed");
  CLI11_PARSE(app, argc, argv);
  if (options.pool.size_min > options.pool.size_max) {
    std::fprintf(stderr, "mariner-postmark: --size-min is greater than --size-max\n");
    return 2;
  }
  try {
    Postmark postmark(options);
    postmark.run();
    postmark.print();
  } catch (const std::runtime_error& error) {
    std::fprintf(stderr, "mariner-postmark: %s\n", error.what());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace mariner::bench

int main(int argc, char** argv) { return mariner::bench::main(argc, argv); }
