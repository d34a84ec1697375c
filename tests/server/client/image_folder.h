// A folder for the images that a test makes.
#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "server/client/output_file.h"
#include "tests/logging/temporary_directory.h"

namespace mariner::client {

class ImageFolder {
 public:
  [[nodiscard]] std::string path(const std::string& name) const { return folder_.file(name); }
  [[nodiscard]] std::string text(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    std::ostringstream out;
    out << file.rdbuf();
    return out.str();
  }
  void put(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }
  [[nodiscard]] std::uint64_t allocated_bytes(const std::string& name) const {
    struct stat status {};
    return ::stat(path(name).c_str(), &status) == 0
               ? static_cast<std::uint64_t>(status.st_blocks) * 512
               : 0;
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& each : std::filesystem::directory_iterator(folder_.file(""))) {
      out.push_back(each.path().filename().string());
    }
    std::ranges::sort(out);
    return out;
  }
  [[nodiscard]] std::unique_ptr<OutputFile> open(const std::string& name,
                                                 bool force = false) const {
    return std::move(OutputFile::open(path(name), force).value());
  }

 private:
  logging::test::TemporaryDirectory folder_;
};

}  // namespace mariner::client
