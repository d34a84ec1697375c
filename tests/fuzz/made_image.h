// Small file systems that mke2fs and debugfs have made, for fuzzers: in memory.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "proto/check.h"

namespace mariner::ifsck {

struct ImageKind {
  std::uint64_t bytes;
  const char* options;   // of mke2fs
  const char* commands;  // of debugfs
};
// With the programs of the system's administrator in the path.
inline void run_command(const std::string& command) {
  const std::string all = "PATH=$PATH:/sbin:/usr/sbin; { " + command + "; } >/dev/null 2>&1";
  CHECK_MSG(std::system(all.c_str()) == 0, "e2fsprogs is needed");
}
inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The image as mke2fs has made it of a few files; it is in memory from then on.
inline std::string make_image(const ImageKind& kind) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("mariner-ifsck-fuzzer-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder / "tree/one/two/three");
  for (int i = 0; i < 20; ++i) {
    std::ofstream(folder / "tree/one" / ("file " + std::to_string(i)))
        << std::string(static_cast<std::size_t>(i) * 1500, 'x');
  }
  std::filesystem::create_hard_link(folder / "tree/one/file 9", folder / "tree/linked");
  const std::string image = folder / "image";
  const std::string commands = folder / "commands";
  std::string text = kind.commands;
  for (auto at = text.find("IMAGE"); at != std::string::npos; at = text.find("IMAGE", at)) {
    text.replace(at, 5, image);
  }
  std::ofstream(commands) << text;
  run_command("truncate -s " + std::to_string(kind.bytes) + " " + image + " && mke2fs -q -t ext4 " +
              kind.options + " -b 1024 -N 64 -d " + (folder / "tree").string() + " " + image +
              " && debugfs -w -f " + commands + " " + image);
  std::string bytes = read_file(image);
  CHECK(bytes.size() == kind.bytes);
  std::filesystem::remove_all(folder);
  return bytes;
}

// What becomes of an image by operations of debugfs.
inline std::string change_image(const std::string& bytes, const std::string& commands) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("mariner-ifsck-fuzzer-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string image = folder / "image";
  std::ofstream(image, std::ios::binary) << bytes;
  std::ofstream(folder / "commands") << commands;
  std::ofstream(folder / "content") << std::string(9'000, 'c');
  run_command("cd " + folder.string() +
              " && debugfs -w -f commands image && e2fsck -fy image || test $? -le 1");
  std::string changed = read_file(image);
  CHECK(changed.size() == bytes.size());
  std::filesystem::remove_all(folder);
  return changed;
}

}  // namespace mariner::ifsck
