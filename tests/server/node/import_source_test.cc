#include "server/node/import_source.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace mariner::node {
namespace {

class ImportSourceTest : public ::testing::Test {
 protected:
  ImportSourceTest() {
    std::string name = (std::filesystem::temp_directory_path() / "mariner-import-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~ImportSourceTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::string file(const std::string& name, std::string_view bytes) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  static Error refused(const std::string& path) {
    const auto source = ImportSource::open(path);
    EXPECT_FALSE(source.has_value()) << path;
    return source ? Error{} : source.error();
  }
  std::string folder_;
};

TEST_F(ImportSourceTest, OpensAFile) {
  const auto source = ImportSource::open(file("raw", std::string(8192, 'x')));
  ASSERT_TRUE(source.has_value());
  EXPECT_EQ(source->bytes(), 8192u);
  EXPECT_GE(source->descriptor(), 0);
  EXPECT_TRUE(ImportSource::open(file("short", "QFI")).has_value()) << "too short to be one";
}

TEST_F(ImportSourceTest, OtherFormatsAreNamedAndRefused) {
  const Error qcow2 = refused(file("disk.qcow2", std::string("QFI\xfb") + std::string(4096, '\0')));
  EXPECT_EQ(qcow2.code, ErrorCode::kInvalidArgument);
  EXPECT_NE(qcow2.message.find("disk.qcow2: expected a raw image, found one that is a qcow2 image; "
                               "convert it first: qemu-img convert -O raw"),
            std::string::npos)
      << qcow2.message;
  for (const std::string begin :
       {"KDMV", "vhdxfile", "conectix", "\x1f\x8b\x08", "\x28\xb5\x2f\xfd"}) {
    EXPECT_EQ(refused(file("other", begin + std::string(4096, '\0'))).code,
              ErrorCode::kInvalidArgument);
  }
}

// Without a writer the opening of a pipe would not end.
TEST_F(ImportSourceTest, WhatIsNoFileIsRefusedAtOnce) {
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(refused(pipe).code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused("/dev/null").code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused(folder_).code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused("/dev/fd/0").code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused("/proc/self/fd/0").code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused(file("empty", "")).code, ErrorCode::kInvalidArgument);
}

TEST_F(ImportSourceTest, WhatIsMissingIsSaid) {
  EXPECT_EQ(refused("/nowhere/disk.raw").code, ErrorCode::kNotFound);
  const Error hidden = refused("/tmp/no-such-mariner-disk.raw");
  EXPECT_EQ(hidden.code, ErrorCode::kNotFound);
  EXPECT_NE(hidden.message.find("a /tmp and a /var/tmp of its own"), std::string::npos);
}

}  // namespace
}  // namespace mariner::node
