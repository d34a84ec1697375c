// An ext2, ext3 or ext4 file system that libext2fs reads in a view, and mends there.
//
// Nothing is mounted, and there is no block device: libext2fs asks an io_manager of ours.
#pragma once

#include <ext2fs/ext2fs.h>

#include <memory>

#include "ifsck/view.h"
#include "proto/error.h"

namespace mariner::ifsck {

class ExtVolume {
 public:
  struct Options {
    bool writable = false;  // repairs go to the view's overlay
    // As it is, whatever its checksums say: for who checks them.
    bool ignore_checksums = true;
  };

  // `view` outlives it. kNotFound: no such file system begins here. kCorrupt: one does, and its
  // superblock or group descriptors do not allow to read it. kInvalidArgument: it has features that
  // are not known. Others: as the view says.
  [[nodiscard]] static Result<ExtVolume> open(View& view, const Options& options);
  ~ExtVolume();
  ExtVolume(ExtVolume&&) noexcept;
  ExtVolume& operator=(ExtVolume&&) noexcept;

  [[nodiscard]] ext2_filsys fs() const { return fs_.get(); }
  [[nodiscard]] View& view() const { return *view_; }

 private:
  struct Free {
    void operator()(struct_ext2_filsys* fs) const;
  };
  ExtVolume(View& view, ext2_filsys fs) : view_(&view), fs_(fs) {}

  View* view_;
  std::unique_ptr<struct_ext2_filsys, Free> fs_;
};

// "...: Bad magic number in super-block", with the error's number when it has no text.
[[nodiscard]] std::string ext_error_text(errcode_t error);

}  // namespace mariner::ifsck
