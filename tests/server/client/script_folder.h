// Folders with programs that are scripts.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/logging/temporary_directory.h"

namespace mariner::client {

class ScriptFolderTest : public ::testing::Test {
 protected:
  // WHERE/ifsck, with its path.
  std::string script(const std::string& where, const std::string& text = "", mode_t mode = 0755) {
    const auto path = std::filesystem::path(folder_) / where / "ifsck";
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << "#!/bin/sh\n" << text << "\n";
    ::chmod(path.c_str(), mode);
    return path.string();
  }
  [[nodiscard]] std::string in(const std::string& where) const { return folder_ + "/" + where; }

 private:
  logging::test::TemporaryDirectory made_;
  const std::string folder_ = made_.file("");
};

}  // namespace mariner::client
