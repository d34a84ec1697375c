// Finds all versions of all that ever was in a captured history (ifsck-capture), and reads each of
// them: of ext2, ext3 and ext4 with libext2fs, of others as uvfs does.
//
//   mariner_uvfs_versions IMAGE TRACE [--first SEQUENCE] [--every-write]
//
// A line for each version, by path and then by moment, fields with tabs between them:
//
//   PATH INCARNATION INODE FIRST-MOMENT TIME-NS END-NS MODE SIZE MODIFIED-NS CHANGED-NS CRC32C
//
// From the time of the write that made it to that of the write that ended it; -: none has.
// The checksum is that of the contents; of a directory, of its names, ascending, each with a
// newline. On the standard error how long the search took, without the reading.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

#include "ifsck/moment.h"
#include "ifsck/write_trace.h"
#include "proto/crc32c.h"
#include "uvfs/ext_history.h"
#include "uvfs/open_history.h"
#include "uvfs/path_search.h"

namespace mariner::uvfs {
namespace {

struct Arguments {
  std::string image;
  std::string trace;
  std::uint64_t first = 0;
  bool every_write = false;
};

[[noreturn]] void give_up(const std::string& what) {
  fmt::print(stderr, "mariner_uvfs_versions: {}\n", what);
  std::exit(1);
}

template <typename T>
T must(Result<T> result) {
  if (!result) give_up(result.error().message);
  return std::move(*result);
}

void must(errcode_t error, const std::string& what) {
  if (error != 0) give_up(what + ": " + ifsck::ext_error_text(error));
}

std::string names_of(ext2_filsys fs, ext2_ino_t inode, const std::string& path) {
  std::set<std::string> names;
  const auto collect = [](ext2_dir_entry* entry, int, int, char*, void* to) {
    const std::string name(entry->name, static_cast<std::size_t>(ext2fs_dirent_name_len(entry)));
    if (name != "." && name != "..") static_cast<std::set<std::string>*>(to)->insert(name);
    return 0;
  };
  must(ext2fs_dir_iterate(fs, inode, 0, nullptr, collect, &names), path);
  std::string all;
  for (const std::string& each : names) all += each + "\n";
  return all;
}

std::string contents_of(ext2_filsys fs, ext2_ino_t inode, const std::string& path) {
  ext2_file_t file = nullptr;
  must(ext2fs_file_open(fs, inode, 0, &file), path);
  std::string all(ext2fs_file_get_size(file), '\0');
  unsigned got = 0;
  must(ext2fs_file_read(file, all.data(), static_cast<unsigned>(all.size()), &got), path);
  (void)ext2fs_file_close(file);
  all.resize(got);
  return all;
}

std::int64_t ns(const FileTime& time) { return time.seconds * 1'000'000'000 + time.ns; }

// What is in an object of ext2, ext3 or ext4.
std::string seen_by_libext2fs(ifsck::Past& past, const std::string& path, ObjectNumber number,
                              const FileVersion& version) {
  ifsck::Overlay none;
  ifsck::Moment moment(past, version.from.at, none);
  if (const auto opened = moment.open(); !opened) give_up(opened.error().message);
  const ext2_filsys fs = moment.context().fs;
  const auto inode = static_cast<ext2_ino_t>(number);
  return LINUX_S_ISDIR(version.object.mode) ? names_of(fs, inode, path)
                                            : contents_of(fs, inode, path);
}

std::string seen(OpenHistory& history, ObjectNumber number, const FileVersion& version) {
  const SequenceNumber at = version.from.at;
  std::string all;
  if (LINUX_S_ISDIR(version.object.mode)) {
    const auto moment = must(open_moment(*history.past, at));
    const auto names = must(moment->names(number));
    for (const FilesMoment::Name& each : *names) all += each.name + "\n";
    return all;
  }
  auto contents = must(history.contents(number, at));
  all.resize(contents.size());
  (void)must(contents.read(0, std::as_writable_bytes(std::span(all))));
  return all;
}

std::string end_of(OpenHistory& history, const FileVersion& version) {
  if (version.end == kEndless) return "-";
  return std::to_string(must(history.past->time_of(version.end)).ns);
}

void print(OpenHistory& history, const PathHistory& path) {
  const bool ext = dynamic_cast<const ExtHistory*>(history.files.get()) != nullptr;
  int incarnation = 0;
  for (const Incarnation& one : path.incarnations) {
    ++incarnation;
    for (const FileVersion& version : one.versions) {
      const std::string bytes =
          ext ? seen_by_libext2fs(*history.past, path.path, one.inode, version)
              : seen(history, one.inode, version);
      fmt::print("{}\t{}\t{}\t{}\t{}\t{}\t{:o}\t{}\t{}\t{}\t{:08x}\n", path.path, incarnation,
                 shown_number(one.inode), version.from.at.value, version.from.time.ns,
                 end_of(history, version), version.object.mode, version.object.size,
                 ns(version.object.modified), ns(version.object.changed),
                 crc32c(std::as_bytes(std::span(bytes))));
    }
  }
}

void run(const Arguments& arguments) {
  auto past = must(ifsck::TracePast::open(arguments.image, arguments.trace));
  const auto begun = std::chrono::steady_clock::now();
  auto history = must(open_history(past, {{arguments.first}, must(past.reach()).newest}));
  const auto found =
      must(PathSearch(*history.files, {.every_write = arguments.every_write}).find_below("/"));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  std::size_t versions = 0;
  for (const PathHistory& each : found) {
    for (const Incarnation& one : each.incarnations) versions += one.versions.size();
    print(history, each);
  }
  fmt::print(stderr, "{} versions of {} paths in {:.3f} s\n", versions, found.size(), took.count());
}

}  // namespace
}  // namespace mariner::uvfs

int main(int argc, char** argv) {
  mariner::uvfs::Arguments arguments;
  CLI::App program("Finds all versions of all that ever was in a captured history.");
  program.add_option("image", arguments.image)->required();
  program.add_option("trace", arguments.trace)->required();
  program.add_option("--first", arguments.first);
  program.add_flag("--every-write", arguments.every_write);
  CLI11_PARSE(program, argc, argv);
  mariner::uvfs::run(arguments);
  return 0;
}
