// uvfs cat VOLUME:PATH@TIME.
#include <ext2fs/ext2_fs.h>
#include <fmt/format.h>

#include <ostream>

#include "uvfs/program/located.h"
#include "uvfs/program/object_text.h"
#include "uvfs/program/verbs.h"

namespace mariner::uvfs {

Answer print(client::Context& context, const Words& words) {
  auto located = Located::open(context, words);
  if (!located) return located.error();
  if (!LINUX_S_ISREG(located->found.object.mode)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} is no file but a {}: uvfs ls lists it, and uvfs restore copies it",
                             located->name.full_path(), kind_name(located->found.object.mode))};
  }
  auto contents = located->contents(located->found.inode);
  if (!contents) {
    return Error{contents.error().code,
                 fmt::format("{}: {}", located->name.full_path(), contents.error().message)};
  }
  std::ostream& out = context.console.out;
  const auto done =
      contents->for_each_byte([&](std::uint64_t, std::span<const std::byte> bytes) -> Result<void> {
        if (out.write(reinterpret_cast<const char*>(bytes.data()),
                      static_cast<std::streamsize>(bytes.size()))) {
          return {};
        }
        return Error{ErrorCode::kIo, "the output cannot be written"};
      });
  if (!done) return done.error();
  located->tell_if_mended(context);
  if (contents->is_whole()) return client::ExitCode::kDone;
  context.console.err << client::printable(located->name.full_path())
                      << ": what says where its blocks are is damaged; what was not found is "
                         "zeros\n";
  return client::ExitCode::kFailed;
}

}  // namespace mariner::uvfs
