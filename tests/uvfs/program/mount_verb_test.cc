#include <gmock/gmock.h>

#include "tests/uvfs/program/program_files.h"

namespace mariner::uvfs {
namespace {

using testing::HasSubstr;

class MountVerb : public ProgramFiles {};

// (That it shows files is seen in tests/e2e: this process would wait for itself.)
TEST_F(MountVerb, WhatCannotBeMountedIsSaid) {
  EXPECT_THAT(refuse(2, {"mount"}), HasSubstr("expected VOLUME and FOLDER"));
  EXPECT_THAT(refuse(2, {"mount", "/nonexistent/folder", "--foreground"}),
              HasSubstr("/nonexistent/folder cannot be mounted: it has to be an empty folder"));
}

}  // namespace
}  // namespace mariner::uvfs
