#include "tests/support/source_folder.h"

#include <gtest/gtest.h>

#include <fstream>

namespace mariner::test {
namespace {

TEST(SourceFolder, HasTheFilesOfTheProject) {
  std::ifstream file(source_path("CMakeLists.txt"));
  std::string first;
  std::getline(file, first);
  EXPECT_EQ(first, "cmake_minimum_required(VERSION 3.25)");
}

}  // namespace
}  // namespace mariner::test
