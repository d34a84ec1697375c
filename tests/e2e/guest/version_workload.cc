// What the guest does to files whose versions are looked for afterwards, and a trace of it,
// statically linked.
//
//   version-workload FOLDER TRACE SEED FILES FOLDERS TRANSACTIONS
//
// FOLDER is the root of a file system; what an operation did is on its disk before the next one. As
// Postmark (dissertation 4.6.9):
// a pool of small files in many folders, and transactions, each of which makes or removes one and
// appends to another or writes into it; beside it names are changed, links made, and permissions.
// All is removed in the end. TRACE, a file on another file system, has a line for each object that
// an operation has changed, behind that operation:
//
//   S PATH INODE MODE SIZE MODIFIED CHANGED CRC32C    what it is like now: times in nanoseconds,
//   the
//                                                     checksum of its contents (of a folder: of its
//                                                     names, ascending, each with a newline)
//   D PATH                                            there is none of that path any more
//
// Says END on ttyS1 (where there is none: on the standard output), or ERROR and what.
#include <sys/stat.h>
#include <time.h>

#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "tests/e2e/guest/guest_words.h"

namespace {

using namespace mariner::guest;

class TracedFiles {
 public:
  TracedFiles(std::string root, const std::string& trace)
      : root_(std::move(root)),
        root_fd_(::open(root_.c_str(), O_RDONLY | O_DIRECTORY)),
        trace_(std::fopen(trace.c_str(), "w")) {
    if (root_fd_ < 0) fail("open " + root_);
    if (trace_ == nullptr) fail("open " + trace);
    folders_["/"].insert("lost+found");
    tell("/");
  }
  ~TracedFiles() {
    if (std::fclose(trace_) != 0) fail("close the trace");
  }
  TracedFiles(const TracedFiles&) = delete;
  TracedFiles& operator=(const TracedFiles&) = delete;

  void make_folder(const std::string& path) {
    if (::mkdir(full(path).c_str(), 0755) != 0) fail("mkdir " + path);
    sync();
    folders_[path];
    add_name(path);
    tell(path);
  }
  void remove_folder(const std::string& path) {
    if (::rmdir(full(path).c_str()) != 0) fail("rmdir " + path);
    sync();
    folders_.erase(path);
    remove_name(path);
  }
  // Two versions: an empty file is the first.
  void make(const std::string& path, const std::string& bytes) {
    const int fd = ::open(full(path).c_str(), O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (fd < 0) fail("open " + path);
    sync();
    contents_[path] = std::make_shared<std::string>();
    add_name(path);
    tell(path);
    write_at(fd, path, 0, bytes);
    if (::close(fd) != 0) fail("close " + path);
  }
  void append(const std::string& path, const std::string& bytes) {
    change(path, contents_.at(path)->size(), bytes);
  }
  void change(const std::string& path, std::size_t at, const std::string& bytes) {
    const int fd = ::open(full(path).c_str(), O_WRONLY);
    if (fd < 0) fail("open " + path);
    write_at(fd, path, at, bytes);
    if (::close(fd) != 0) fail("close " + path);
  }
  void remove(const std::string& path) {
    if (::unlink(full(path).c_str()) != 0) fail("unlink " + path);
    sync();
    contents_.erase(path);
    remove_name(path);
  }
  void rename(const std::string& from, const std::string& to) {
    if (::rename(full(from).c_str(), full(to).c_str()) != 0) fail("rename " + from);
    sync();
    const auto bytes = contents_.at(from);
    contents_.erase(from);
    contents_[to] = bytes;
    remove_name(from);
    add_name(to);
    tell(to);
  }
  void link(const std::string& from, const std::string& to) {
    if (::link(full(from).c_str(), full(to).c_str()) != 0) fail("link " + from);
    sync();
    contents_[to] = contents_.at(from);
    add_name(to);
    tell(to);
  }
  void set_mode(const std::string& path, mode_t mode) {
    if (::chmod(full(path).c_str(), mode) != 0) fail("chmod " + path);
    sync();
    tell_all(path);
  }
  [[nodiscard]] bool has(const std::string& path) const { return contents_.contains(path); }
  [[nodiscard]] std::size_t size(const std::string& path) const {
    return contents_.at(path)->size();
  }

 private:
  [[nodiscard]] std::string full(const std::string& path) const { return root_ + path; }
  static std::string folder_of(const std::string& path) {
    const std::size_t at = path.rfind('/');
    return at == 0 ? "/" : path.substr(0, at);
  }

  void write_at(int fd, const std::string& path, std::size_t at, const std::string& bytes) {
    if (::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(at)) !=
        static_cast<ssize_t>(bytes.size())) {
      fail("write " + path);
    }
    sync();
    std::string& all = *contents_.at(path);
    all.resize(std::max(all.size(), at + bytes.size()));
    all.replace(at, bytes.size(), bytes);
    tell_all(path);
  }
  // All names of a file.
  void tell_all(const std::string& path) {
    for (const auto& [other, contents] : contents_) {
      if (contents == contents_.at(path)) tell(other);
    }
  }
  void add_name(const std::string& path) {
    folders_.at(folder_of(path)).insert(path.substr(path.rfind('/') + 1));
    tell(folder_of(path));
  }
  void remove_name(const std::string& path) {
    if (std::fprintf(trace_, "D %s\n", path.c_str()) < 0) fail("write the trace");
    folders_.at(folder_of(path)).erase(path.substr(path.rfind('/') + 1));
    tell(folder_of(path));
  }
  // (A file system that is mounted with sync and dirsync does not write every inode at once.)
  // And the next operation has another time.
  void sync() const {
    if (::syncfs(root_fd_) != 0) fail("syncfs");
    const auto tick = [] {
      timespec now{};
      ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
      return std::pair(now.tv_sec, now.tv_nsec);
    };
    for (const auto before = tick(); tick() == before;) ::usleep(500);
  }
  void tell(const std::string& path) {
    struct stat now {};
    if (::lstat(full(path).c_str(), &now) != 0) fail("stat " + path);
    std::string seen;
    if (S_ISDIR(now.st_mode)) {
      for (const std::string& name : folders_.at(path)) seen += name + "\n";
    } else {
      seen = *contents_.at(path);
    }
    const auto ns = [](const timespec& time) {
      return static_cast<long long>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
    };
    if (std::fprintf(trace_, "S %s %llu %o %lld %lld %lld %08x\n", path.c_str(),
                     static_cast<unsigned long long>(now.st_ino), now.st_mode,
                     static_cast<long long>(now.st_size), ns(now.st_mtim), ns(now.st_ctim),
                     crc32c(seen)) < 0) {
      fail("write the trace");
    }
  }

  const std::string root_;
  const int root_fd_;
  std::FILE* trace_;
  std::map<std::string, std::shared_ptr<std::string>> contents_;
  std::map<std::string, std::set<std::string>> folders_;
};

void postmark(TracedFiles& files, Random& random, std::uint64_t count, std::uint64_t folders,
              std::uint64_t transactions) {
  const auto below = [&](std::uint64_t end) { return random() % end; };
  const auto folder = [](std::uint64_t number) { return "/s" + std::to_string(number); };
  const auto bytes = [&] { return content(random, 512 + below(9500)); };
  for (std::uint64_t i = 0; i < folders; ++i) files.make_folder(folder(i));
  std::vector<std::string> pool;
  // Names are used again.
  const auto name = [&] {
    std::string path;
    do {
      path = folder(below(folders)) + "/" + std::to_string(below(4 * count / folders + 2));
    } while (files.has(path));
    return path;
  };
  const auto make = [&] {
    pool.push_back(name());
    files.make(pool.back(), bytes());
  };
  const auto pick = [&]() -> std::string& { return pool[below(pool.size())]; };
  const auto remove = [&] {
    std::swap(pick(), pool.back());
    files.remove(pool.back());
    pool.pop_back();
  };
  for (std::uint64_t i = 0; i < count; ++i) make();
  for (std::uint64_t i = 0; i < transactions; ++i) {
    if (below(2) == 0 || pool.size() < 2) {
      make();
    } else {
      remove();
    }
    std::string& path = pick();
    switch (below(12)) {
      case 0: files.set_mode(path, 0600 + static_cast<mode_t>(below(8))); break;
      case 1: {
        const std::string to = name();
        files.rename(path, to);
        path = to;
        break;
      }
      case 2: {
        const std::string to = name();
        files.link(path, to);
        pool.push_back(to);
        break;
      }
      case 3:
      case 4: files.change(path, below(files.size(path)), bytes()); break;
      default: files.append(path, bytes()); break;
    }
  }
  while (!pool.empty()) remove();
  for (std::uint64_t i = 0; i < folders; ++i) files.remove_folder(folder(i));
}

}  // namespace

int main(int count, char** words) {
  if (count != 7) return 2;
  if (!open_line(true)) return 3;
  const auto number = [&](int at) { return std::strtoull(words[at], nullptr, 10); };
  Random random(number(3));
  {
    TracedFiles files(words[1], words[2]);
    postmark(files, random, number(4), number(5), number(6));
  }
  say("END");
  return 0;
}
