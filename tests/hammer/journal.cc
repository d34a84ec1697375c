#include "tests/hammer/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

namespace mariner::hammer {
namespace {

constexpr std::uint64_t kIdsPerRound = std::uint64_t{1} << 32;
constexpr std::string_view kResolutions = "resolutions";

std::vector<std::filesystem::path> round_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".journal") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Error malformed(const std::filesystem::path& path, const std::string& line) {
  return {ErrorCode::kCorrupt, fmt::format("{}: not a journal line: \"{}\"", path.string(), line)};
}

std::optional<Outcome> outcome_of(std::string_view name) {
  if (name == "present") return Outcome::kPresent;
  if (name == "absent") return Outcome::kAbsent;
  if (name == "same") return Outcome::kSame;
  return std::nullopt;
}

std::string_view name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPresent: return "present";
    case Outcome::kAbsent: return "absent";
    case Outcome::kSame: return "same";
    case Outcome::kAcknowledged:
    case Outcome::kUnknown: break;
  }
  return "unknown";
}

using Index = std::unordered_map<std::uint64_t, std::size_t>;

// Whether `line` is a whole, sensible event; applies it.
bool apply_line(const std::string& line, std::vector<Write>& writes, Index& index) {
  std::istringstream in(line);
  std::string event;
  std::uint64_t id = 0;
  if (!(in >> event)) return false;
  if (event == "round") return true;
  if (!(in >> id)) return false;
  if (event == "I") {
    Write write{.id = id};
    char kind = 0;
    if (!(in >> kind >> write.first_cell >> write.cells >> write.issued_ns)) return false;
    write.kind = static_cast<Kind>(kind);
    return index.emplace(id, writes.size()).second && (writes.push_back(write), true);
  }
  const auto found = index.find(id);
  if (found == index.end()) return false;
  Write& write = writes[found->second];
  if (event == "A") {
    write.outcome = Outcome::kAcknowledged;
    return static_cast<bool>(in >> write.acknowledged_ns);
  }
  if (event == "R") {
    std::string name;
    in >> name;
    const auto outcome = outcome_of(name);
    if (outcome) write.outcome = *outcome;
    return outcome.has_value();
  }
  return event == "F";
}

Result<void> apply_file(const std::filesystem::path& path, std::vector<Write>& writes,
                        Index& index) {
  std::ifstream in(path);
  std::string line;
  while (std::getline(in, line)) {
    if (apply_line(line, writes, index)) continue;
    // A hammer that was killed may have left half a line at the end.
    if (in.eof()) break;
    return malformed(path, line);
  }
  return {};
}

}  // namespace

std::uint64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

Result<JournalWriter> JournalWriter::create(const std::filesystem::path& folder) {
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  const std::uint64_t round = round_files(folder).size() + 1;
  const auto path = folder / fmt::format("round-{:06}.journal", round);
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return errno_error(errno, path.string());
  JournalWriter writer(fd, round * kIdsPerRound);
  writer.pending_ = fmt::format("round {} {}\n", round, round * kIdsPerRound);
  return writer;
}

JournalWriter::JournalWriter(JournalWriter&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      last_id_(other.last_id_),
      pending_(std::move(other.pending_)) {}

JournalWriter::~JournalWriter() {
  if (fd_ < 0) return;
  static_cast<void>(flush());
  ::close(fd_);
}

void JournalWriter::issued(const Write& write) {
  pending_ += fmt::format("I {} {} {} {} {}\n", write.id, static_cast<char>(write.kind),
                          write.first_cell, write.cells, write.issued_ns);
}

void JournalWriter::acknowledged(std::uint64_t id, std::uint64_t ns) {
  pending_ += fmt::format("A {} {}\n", id, ns);
}

void JournalWriter::failed(std::uint64_t id, std::uint64_t ns, int status) {
  pending_ += fmt::format("F {} {} {}\n", id, ns, status);
}

Result<void> JournalWriter::flush() {
  std::string_view left = pending_;
  while (!left.empty()) {
    const ssize_t n = ::write(fd_, left.data(), left.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error(errno, "writing the journal");
    left.remove_prefix(static_cast<std::size_t>(n));
  }
  pending_.clear();
  return {};
}

Result<std::vector<Write>> load_campaign(const std::filesystem::path& folder) {
  std::vector<Write> writes;
  Index index;
  for (const auto& path : round_files(folder)) {
    if (auto applied = apply_file(path, writes, index); !applied) return applied.error();
  }
  const auto resolutions = folder / kResolutions;
  if (std::filesystem::exists(resolutions)) {
    if (auto applied = apply_file(resolutions, writes, index); !applied) return applied.error();
  }
  return writes;
}

Result<void> record_resolutions(const std::filesystem::path& folder,
                                const std::unordered_map<std::uint64_t, Outcome>& outcomes) {
  std::ofstream out(folder / kResolutions, std::ios::app);
  for (const auto& [id, outcome] : outcomes) out << "R " << id << ' ' << name_of(outcome) << '\n';
  out.flush();
  if (!out) return Error{ErrorCode::kIo, "cannot write " + (folder / kResolutions).string()};
  return {};
}

}  // namespace mariner::hammer
