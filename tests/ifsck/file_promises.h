// What a host was promised of its files, and what an image has of it.
//
// The promises are a file with a line for each, all times in nanoseconds since the epoch:
//
//   SYNCED TIME CRC32C SIZE PATH     from then on the file is that, durably
//   CHANGE TIME PATH                 from then on it, or its name, may be another
//   COMMIT TIME ROWS PATH            from then on the table "kept" of the SQLite database there has
//   at least that many rows
#pragma once

#include <ext2fs/ext2fs.h>
#include <sqlite3.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "proto/check.h"
#include "proto/crc32c.h"
#include "proto/units.h"
#include "tests/logging/temporary_directory.h"

namespace mariner::ifsck {

// Size and CRC: what was written is random.
using Content = std::pair<std::uint64_t, std::uint32_t>;

// The file system in an image, as libext2fs reads it.
class ImageFiles {
 public:
  explicit ImageFiles(const std::string& image) {
    if (const errcode_t error =
            ext2fs_open(image.c_str(), EXT2_FLAG_64BITS, 0, 0, unix_io_manager, &fs_);
        error != 0) {
      fs_ = nullptr;
      complain("it", error);
    }
  }
  ~ImageFiles() {
    if (fs_ != nullptr) ext2fs_close_free(&fs_);
  }
  ImageFiles(const ImageFiles&) = delete;
  ImageFiles& operator=(const ImageFiles&) = delete;

  // Everything in use, each file and each folder.
  void read_all() {
    ext2_inode_scan scan = nullptr;
    if (fs_ == nullptr) return;
    if (const errcode_t error = ext2fs_open_inode_scan(fs_, 0, &scan); error != 0) {
      complain("the inodes", error);
      return;
    }
    ext2_ino_t number = 0;
    ext2_inode inode{};
    for (;;) {
      if (const errcode_t error = ext2fs_get_next_inode(scan, &number, &inode); error != 0) {
        complain("inode " + std::to_string(number), error);
        continue;
      }
      if (number == 0) break;
      if (inode.i_links_count == 0 ||
          (number < EXT2_FIRST_INODE(fs_->super) && number != EXT2_ROOT_INO)) {
        continue;
      }
      if (LINUX_S_ISDIR(inode.i_mode)) {
        read_folder(number);
      } else if (LINUX_S_ISREG(inode.i_mode)) {
        if (const auto bytes = read(number)) {
          contents.insert(content_of(*bytes));
          ++files;
        }
      }
    }
    ext2fs_close_inode_scan(scan);
  }

  // Nothing: there is none of the name, or it cannot be read.
  std::optional<std::string> read(const std::string& path) {
    ext2_ino_t number = 0;
    if (fs_ == nullptr ||
        ext2fs_namei(fs_, EXT2_ROOT_INO, EXT2_ROOT_INO, path.c_str(), &number) != 0) {
      return {};
    }
    return read(number);
  }

  static Content content_of(const std::string& bytes) {
    return {bytes.size(), crc32c(std::as_bytes(std::span(bytes)))};
  }

  std::set<Content> contents;  // of all files
  std::uint64_t files = 0;
  std::uint64_t unreadable = 0;
  std::string complaints;  // about the first of them

 private:
  void complain(const std::string& what, errcode_t error) {
    if (++unreadable <= 10) {
      complaints += what + " cannot be read: " + error_message(error) + "\n";
    }
  }
  void read_folder(ext2_ino_t number) {
    const auto nothing = [](ext2_ino_t, int, ext2_dir_entry*, int, int, char*, void*) { return 0; };
    if (const errcode_t error = ext2fs_dir_iterate2(fs_, number, 0, nullptr, nothing, nullptr);
        error != 0) {
      complain("folder " + std::to_string(number), error);
    }
  }
  std::optional<std::string> read(ext2_ino_t number) {
    ext2_file_t file = nullptr;
    errcode_t error = ext2fs_file_open(fs_, number, 0, &file);
    std::string bytes;
    if (error == 0) {
      __u64 size = 0;
      error = ext2fs_file_get_lsize(file, &size);
      if (error == 0 && size > kSizeMax) error = EXT2_ET_FILE_TOO_BIG;
      if (error == 0) bytes.resize(size);
      for (std::size_t at = 0; error == 0 && at < size;) {
        unsigned got = 0;
        error = ext2fs_file_read(file, &bytes[at], static_cast<unsigned>(size - at), &got);
        if (error == 0 && got == 0) error = EXT2_ET_SHORT_READ;
        at += got;
      }
      ext2fs_file_close(file);
    }
    if (error == 0) return bytes;
    complain("file " + std::to_string(number), error);
    return {};
  }

  static constexpr std::uint64_t kSizeMax = 256u << 20;
  ext2_filsys fs_ = nullptr;
};

class FilePromises {
 public:
  explicit FilePromises(const std::string& path) {
    std::ifstream in(path);
    CHECK(in.is_open());
    for (std::string line; std::getline(in, line);) {
      std::istringstream words(line);
      std::string kind;
      std::uint64_t time = 0;
      std::string name;
      words >> kind >> time;
      if (kind == "SYNCED") {
        Content content;
        words >> std::hex >> content.second >> std::dec >> content.first >> name;
        end(name, time);
        files_[name].push_back({.from = time, .content = content});
      } else if (kind == "CHANGE") {
        words >> name;
        end(name, time);
      } else {
        CHECK(kind == "COMMIT");
        std::int64_t rows = 0;
        words >> rows >> name;
        databases_[name].emplace_back(time, rows);
      }
      CHECK(!words.fail() && !name.empty());
    }
  }

  struct Kept {
    std::uint64_t checked = 0;
    std::uint64_t whole = 0;    // by its name
    std::uint64_t renamed = 0;  // whole, in lost+found
    std::uint64_t lost = 0;
    std::uint64_t databases = 0;  // checked
    std::string complaints;       // about those that are lost
    std::set<std::string> broken;
  };
  // All that was ever promised.
  [[nodiscard]] std::vector<std::string> paths() const {
    std::vector<std::string> all;
    for (const auto& [path, promises] : files_) all.push_back(path);
    for (const auto& [path, commits] : databases_) all.push_back(path);
    return all;
  }
  // `image` has been read.
  [[nodiscard]] Kept look(ImageFiles& image, VersionTime at) const {
    Kept kept;
    for (const auto& [path, promises] : files_) {
      for (const Promise& each : promises) {
        if (each.from > at.ns || at.ns >= each.until) continue;
        ++kept.checked;
        const auto bytes = image.read(path);
        if (bytes && ImageFiles::content_of(*bytes) == each.content) {
          ++kept.whole;
        } else if (image.contents.contains(each.content)) {
          ++kept.renamed;
        } else {
          complain(kept, path,
                   bytes ? "has " + std::to_string(bytes->size()) + " other bytes than the " +
                               std::to_string(each.content.first) + " that were"
                         : "is not there, and nothing in lost+found is it");
        }
      }
    }
    for (const auto& [path, commits] : databases_) {
      std::int64_t rows = -1;
      for (const auto& [time, count] : commits) {
        if (time <= at.ns) rows = count;
      }
      if (rows < 0) continue;
      ++kept.checked;
      ++kept.databases;
      if (const std::string wrong = look_into(image, path, rows); !wrong.empty()) {
        complain(kept, path, wrong);
      } else {
        ++kept.whole;
      }
    }
    return kept;
  }

 private:
  struct Promise {
    std::uint64_t from = 0;
    std::uint64_t until = std::numeric_limits<std::uint64_t>::max();
    Content content;
  };

  void end(const std::string& name, std::uint64_t time) {
    auto& promises = files_[name];
    if (!promises.empty()) promises.back().until = std::min(promises.back().until, time);
  }
  static void complain(Kept& kept, const std::string& path, const std::string& what) {
    ++kept.lost;
    kept.broken.insert(path);
    kept.complaints += path + " " + what + "\n";
  }

  // As SQLite opens it after a crash.
  static std::string look_into(ImageFiles& image, const std::string& path, std::int64_t rows) {
    const logging::test::TemporaryDirectory folder;
    for (const std::string end : {"", "-journal", "-wal"}) {
      const auto bytes = image.read(path + end);
      if (bytes) std::ofstream(folder.file("db" + end), std::ios::binary) << *bytes;
      if (!bytes && end.empty()) return "is not there";
    }
    sqlite3* opened = nullptr;
    const int error =
        sqlite3_open_v2(folder.file("db").c_str(), &opened, SQLITE_OPEN_READWRITE, nullptr);
    const std::unique_ptr<sqlite3, int (*)(sqlite3*)> database(opened, sqlite3_close);
    if (error != SQLITE_OK) return "cannot be opened as a database";
    const std::string good = ask(opened, "PRAGMA integrity_check");
    if (good != "ok") return "is no sound database: " + good;
    const std::string all = ask(opened, "SELECT count(*) || ' ' || max(id) FROM kept");
    std::int64_t count = 0;
    std::int64_t last = 0;
    std::istringstream(all) >> count >> last;
    if (count < rows || count != last) {
      return "has rows (and the last) " + all + " of " + std::to_string(rows) + " committed ones";
    }
    return {};
  }
  static std::string ask(sqlite3* database, const char* question) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(database, question, -1, &statement, nullptr) != SQLITE_OK) {
      return sqlite3_errmsg(database);
    }
    std::string answer;
    if (sqlite3_step(statement) == SQLITE_ROW) {
      const unsigned char* const text = sqlite3_column_text(statement, 0);
      if (text != nullptr) answer = reinterpret_cast<const char*>(text);
    } else {
      answer = sqlite3_errmsg(database);
    }
    sqlite3_finalize(statement);
    return answer;
  }

  std::map<std::string, std::vector<Promise>> files_;
  std::map<std::string, std::vector<std::pair<std::uint64_t, std::int64_t>>> databases_;
};

}  // namespace mariner::ifsck
