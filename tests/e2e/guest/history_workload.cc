// What the guest does to a file system whose history is checked afterwards, statically linked.
//
//   history-workload postmark FOLDER SEED SECONDS FILES FOLDERS TRANSACTIONS
//   history-workload tree FOLDER SEED SECONDS FILES
//   history-workload sqlite FOLDER SEED SECONDS JOURNAL-MODE TRANSACTIONS
//   history-workload truncate FOLDER SEED SECONDS FILES
//
// Goes on until it has done all of it and so many seconds have passed. Says on ttyS1, a line each:
//
//   SYNCED CRC32C SIZE PATH     what it has written to the file is durable
//   CHANGE PATH                 it is going to change it, or its name: answered by a line
//   COMMIT ROWS PATH            the database has at least so many rows, durably
//   END, or ERROR and what
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/guest/guest_words.h"

namespace {

using namespace mariner::guest;

// A folder of files, some of which are promised to be durable.
class Files {
 public:
  Files(std::string root, std::uint64_t seed) : root_(std::move(root)), random_(seed) {}

  Random& random() { return random_; }
  std::uint64_t below(std::uint64_t end) { return random_() % end; }

  void make_folder(const std::string& path) {
    if (::mkdir((root_ + path).c_str(), 0755) != 0 && errno != EEXIST) fail("mkdir " + path);
  }
  void remove_folder(const std::string& path) {
    if (::rmdir((root_ + path).c_str()) != 0) fail("rmdir " + path);
  }

  // Anew, or with something else in it.
  void write(const std::string& path, std::size_t size, bool sync, bool promise = true) {
    about_to_change(path);
    put(path, O_CREAT | O_TRUNC, content(random_, size), sync, promise);
  }
  // A little here and there, so that as much as can be says where it is.
  void write_scattered(const std::string& path, std::size_t size) {
    about_to_change(path);
    const int fd = ::open((root_ + path).c_str(), O_WRONLY | O_CREAT, 0644);
    if (fd < 0) fail("open " + path);
    const std::string bytes = content(random_, 1000);
    for (std::size_t at = 0; at < size; at += 8192) {
      if (::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(at)) < 0)
        fail("write " + path);
    }
    if (::fsync(fd) != 0 || ::close(fd) != 0) fail("close " + path);
  }
  void append(const std::string& path, std::size_t size) {
    about_to_change(path);
    put(path, O_APPEND, content(random_, size), false, false);
  }
  void remove(const std::string& path) {
    about_to_change(path);
    if (::unlink((root_ + path).c_str()) != 0) fail("unlink " + path);
  }
  void rename(const std::string& from, const std::string& to) {
    about_to_change(from);
    about_to_change(to);
    if (::rename((root_ + from).c_str(), (root_ + to).c_str()) != 0) fail("rename " + from);
  }
  void link(const std::string& from, const std::string& to) {
    if (::link((root_ + from).c_str(), (root_ + to).c_str()) != 0) fail("link " + from);
  }
  void symlink(const std::string& what, const std::string& at) {
    if (::symlink(what.c_str(), (root_ + at).c_str()) != 0) fail("symlink " + at);
  }
  // Written to and removed while it is open: closed when the next one is.
  void remove_open(const std::string& path, std::size_t size) {
    about_to_change(path);
    const int fd = ::open((root_ + path).c_str(), O_RDWR | O_CREAT, 0644);
    if (fd < 0 || ::unlink((root_ + path).c_str()) != 0) fail("removing the open " + path);
    const std::string bytes = content(random_, size);
    write_all(fd, bytes, path);
    if (below(2) == 0 && ::fsync(fd) != 0) fail("fsync " + path);
    open_.push_back(fd);
    if (open_.size() > 8) {
      ::close(open_.front());
      open_.erase(open_.begin());
    }
  }
  void close_removed() {
    for (const int fd : open_) ::close(fd);
    open_.clear();
  }
  void truncate(const std::string& path, std::size_t size) {
    about_to_change(path);
    if (::truncate((root_ + path).c_str(), static_cast<off_t>(size)) != 0) fail("truncate " + path);
  }

 private:
  void about_to_change(const std::string& path) {
    const auto found = std::ranges::find(promised_, path);
    if (found == promised_.end()) return;
    *found = promised_.back();
    promised_.pop_back();
    say("CHANGE %s", path.c_str());
    await_answer();
  }
  void write_all(int fd, const std::string& bytes, const std::string& path) {
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t put = ::write(fd, bytes.data() + done, bytes.size() - done);
      if (put <= 0) fail("write " + path);
      done += static_cast<std::size_t>(put);
    }
  }
  void put(const std::string& path, int flags, const std::string& bytes, bool sync, bool promise) {
    const int fd = ::open((root_ + path).c_str(), O_WRONLY | flags, 0644);
    if (fd < 0) fail("open " + path);
    write_all(fd, bytes, path);
    if (sync && ::fsync(fd) != 0) fail("fsync " + path);
    if (::close(fd) != 0) fail("close " + path);
    if (!sync || !promise) return;
    promised_.push_back(path);
    say("SYNCED %08x %zu %s", crc32c(bytes), bytes.size(), path.c_str());
  }

  std::string root_;
  Random random_;
  std::vector<std::string> promised_;
  std::vector<int> open_;
};

// How far a workload should be, by its time.
class Pace {
 public:
  explicit Pace(double seconds) : seconds_(seconds) {}
  // Waits until it is time for this part of the whole.
  void keep(double part) const {
    std::this_thread::sleep_until(begun_ +
                                  std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                      std::chrono::duration<double>(part * seconds_)));
  }

 private:
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  double seconds_;
};

// As Postmark: a pool of small files in many folders, and transactions, each of which makes or
// removes one and reads or appends to another. 1 in 8 of the files is made durable. Beside it,
// files are removed while they are open.
void postmark(Files& files, const Pace& pace, std::uint64_t count, std::uint64_t folders,
              std::uint64_t transactions) {
  const auto folder = [&](std::uint64_t number) { return "/s" + std::to_string(number); };
  const auto size = [&] { return 512 + files.below(10'000); };
  const double steps = static_cast<double>(folders + 2 * count + 2 * transactions);
  double done = 0;
  const auto step = [&] { pace.keep(done++ / steps); };
  for (std::uint64_t i = 0; i < folders; ++i) {
    step();
    files.make_folder(folder(i));
  }
  std::vector<std::string> pool;
  std::uint64_t next = 0;
  const auto make = [&] {
    pool.push_back(folder(files.below(folders)) + "/" + std::to_string(next++));
    files.write(pool.back(), size(), files.below(8) == 0);
  };
  const auto take = [&](bool out) {
    std::swap(pool[files.below(pool.size())], pool.back());
    std::string path = pool.back();
    if (out) pool.pop_back();
    return path;
  };
  for (std::uint64_t i = 0; i < count; ++i) {
    step();
    make();
  }
  for (std::uint64_t i = 0; i < transactions; ++i) {
    step();
    if (files.below(2) == 0 || pool.empty()) {
      make();
    } else {
      files.remove(take(true));
    }
    step();
    if (!pool.empty()) files.append(take(false), size());
    if (i % 10 == 0) files.remove_open("/open" + std::to_string(i), 4096 * files.below(20));
  }
  while (!pool.empty()) {
    step();
    files.remove(take(true));
  }
  for (std::uint64_t i = 0; i < folders; ++i) files.remove_folder(folder(i));
}

// As a source tree: unpacked, changed here and there, part of it moved and removed, and another one
// unpacked.
void tree(Files& files, const Pace& pace, std::uint64_t count) {
  constexpr std::uint64_t kInFolder = 25;
  std::vector<std::string> all;
  const double steps = static_cast<double>(count) * 2;
  double done = 0;
  const auto step = [&] { pace.keep(done++ / steps); };
  const auto folder = [&](std::uint64_t number) {
    std::string path = "/tree" + std::to_string(number / 1000 % 10);
    files.make_folder(path);
    path += "/part" + std::to_string(number / 100 % 10);
    files.make_folder(path);
    path += "/folder" + std::to_string(number % 100);
    files.make_folder(path);
    return path;
  };
  const auto size = [&] {  // mostly small, some large
    const std::uint64_t kind = files.below(100);
    return kind < 70   ? 100 + files.below(8000)
           : kind < 99 ? 8000 + files.below(40'000)
                       : 100'000 + files.below(400'000);
  };
  const auto unpack = [&](std::uint64_t first, std::uint64_t some) {
    for (std::uint64_t i = first; i < first + some; ++i) {
      step();
      std::string path = folder(i / kInFolder) + "/source_file_" + std::to_string(i) + ".c";
      // An archiver makes nothing durable; an editor or version control does.
      files.write(path, size(), files.below(25) == 0);
      if (files.below(60) == 0) files.symlink(path.substr(1), path + ".link");
      if (files.below(60) == 0) files.link(path, path + ".same");
      all.push_back(std::move(path));
    }
  };
  const auto take = [&] {
    std::swap(all[files.below(all.size())], all.back());
    std::string path = all.back();
    all.pop_back();
    return path;
  };
  unpack(0, count * 3 / 4);
  for (std::uint64_t i = 0; i < count; ++i) {
    step();
    const std::string path = take();
    switch (files.below(8)) {
      case 0:
      case 1: files.append(path, files.below(20'000)); break;
      case 2: files.truncate(path, files.below(3000)); break;
      case 3: {  // as editors do
        files.write(path + "~", size(), true);
        files.rename(path + "~", path);
        break;
      }
      case 4: {
        const std::string to =
            folder(files.below(count / kInFolder)) + "/moved_" + std::to_string(i) + ".c";
        files.rename(path, to);
        all.push_back(to);
        continue;
      }
      case 5: files.remove_open(path + ".lock", files.below(60'000)); break;
      default: files.remove(path); continue;
    }
    all.push_back(path);
  }
  unpack(count * 3 / 4, count / 4);
}

// Files with so many blocks far from each other that it takes a kernel several transactions to cut
// them off, while another process makes it commit each as soon as it can.
void truncate(Files& files, const Pace& pace, std::uint64_t count) {
  constexpr std::uint64_t kSizeMax = 24u << 20;
  const pid_t beside = ::fork();
  if (beside == 0) {
    for (;;) files.write("/beside", 100, true, false);
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    pace.keep(static_cast<double>(i) / static_cast<double>(count));
    const std::string path = "/large" + std::to_string(i % 5);
    files.write("/kept" + std::to_string(i), 1 + files.below(20'000), true);
    files.write_scattered(path, kSizeMax / 4 + files.below(kSizeMax * 3 / 4));
    switch (files.below(3)) {
      case 0: files.truncate(path, files.below(kSizeMax / 8)); break;
      case 1: files.remove(path); break;
      default: files.remove_open(path, 100); break;
    }
  }
  ::kill(beside, SIGKILL);
  ::waitpid(beside, nullptr, 0);
}

void sql(sqlite3* database, const std::string& text) {
  char* message = nullptr;
  if (sqlite3_exec(database, text.c_str(), nullptr, nullptr, &message) != SQLITE_OK) {
    fail(text + ": " + (message != nullptr ? message : "?"));
  }
}

// A table that grows, with rows changed and removed beside it, in transactions.
void database(Files& files, const Pace& pace, const std::string& root, const std::string& mode,
              int transactions) {
  const std::string path = "/" + mode + ".db";
  sqlite3* database = nullptr;
  if (sqlite3_open((root + path).c_str(), &database) != SQLITE_OK) fail("open " + path);
  sql(database, "PRAGMA journal_mode=" + mode);
  // EXTRA: with FULL a commit may be undone by a journal whose removal was not durable.
  sql(database, "PRAGMA synchronous=EXTRA; PRAGMA wal_autocheckpoint=200; PRAGMA cache_size=100");
  sql(database,
      "CREATE TABLE kept(id INTEGER PRIMARY KEY, text); CREATE TABLE other(id, text);"
      "CREATE INDEX other_id ON other(id)");
  int rows = 0;
  for (int i = 0; i < transactions; ++i) {
    pace.keep(static_cast<double>(i) / transactions);
    sql(database, "BEGIN");
    for (std::uint64_t more = 1 + files.below(5); more > 0; --more) {
      sql(database, "INSERT INTO kept VALUES(" + std::to_string(++rows) + ", hex(randomblob(" +
                        std::to_string(files.below(400)) + ")))");
      sql(database, "INSERT INTO other VALUES(" + std::to_string(files.below(5000)) +
                        ", hex(randomblob(" + std::to_string(files.below(1500)) + ")))");
    }
    sql(database, "DELETE FROM other WHERE id = " + std::to_string(files.below(5000)));
    if (i % 100 == 99) sql(database, "DELETE FROM other WHERE id > 2500");
    sql(database, "COMMIT");
    say("COMMIT %d %s", rows, path.c_str());
    // What others do meanwhile.
    const std::string log = "/log" + std::to_string(i / 50);
    files.write(log, 2000 + files.below(30'000), i % 10 == 0);
    if (i % 50 == 49 && i >= 500) files.remove("/log" + std::to_string(i / 50 - 10));
    if (i % 300 == 299) {
      sql(database, "VACUUM");
      say("COMMIT %d %s", rows, path.c_str());
    }
  }
  sqlite3_close(database);
}

}  // namespace

int main(int count, char** words) {
  if (count < 6) return 2;
  const std::string verb = words[1];
  const std::string root = words[2];
  if (!open_line()) return 3;
  Files files(root, std::strtoull(words[3], nullptr, 10));
  const Pace pace(std::strtod(words[4], nullptr));
  const auto number = [&](int at) { return std::strtoull(words[at], nullptr, 10); };
  if (verb == "postmark" && count == 8) {
    postmark(files, pace, number(5), number(6), number(7));
  } else if (verb == "tree" && count == 6) {
    tree(files, pace, number(5));
  } else if (verb == "sqlite" && count == 7) {
    database(files, pace, root, words[5], static_cast<int>(number(6)));
  } else if (verb == "truncate" && count == 6) {
    truncate(files, pace, number(5));
  } else {
    return 2;
  }
  files.close_removed();
  say("END");
  return 0;
}
