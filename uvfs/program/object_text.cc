#include "uvfs/program/object_text.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include "proto/utf8.h"

namespace mariner::uvfs {
namespace {

constexpr std::uint32_t kMinorBits = 20;
constexpr std::uint32_t kMinorMask = (1u << kMinorBits) - 1;

bool is_device(std::uint16_t mode) { return S_ISCHR(mode) || S_ISBLK(mode); }

// 0: before 1970.
std::uint64_t ns_of(const FileTime& time) {
  return time.seconds < 0 ? 0 : static_cast<std::uint64_t>(time.seconds) * 1'000'000'000 + time.ns;
}

void put(const client::Context& context, const FileTime& time, api::FileTime& to) {
  to.set_seconds(time.seconds);
  to.set_ns(time.ns);
  if (time.seconds >= 0) to.set_utc(context.utc_time(ns_of(time)));
}

}  // namespace

std::string_view kind_name(std::uint16_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG: return "file";
    case S_IFDIR: return "directory";
    case S_IFLNK: return "link";
    case S_IFIFO: return "fifo";
    case S_IFSOCK: return "socket";
    case S_IFCHR: return "character-device";
    case S_IFBLK: return "block-device";
    default: return "unknown";
  }
}

std::string mode_text(std::uint16_t mode) {
  std::string text = "?rwxrwxrwx";
  switch (mode & S_IFMT) {
    case S_IFREG: text[0] = '-'; break;
    case S_IFDIR: text[0] = 'd'; break;
    case S_IFLNK: text[0] = 'l'; break;
    case S_IFIFO: text[0] = 'p'; break;
    case S_IFSOCK: text[0] = 's'; break;
    case S_IFCHR: text[0] = 'c'; break;
    case S_IFBLK: text[0] = 'b'; break;
    default: break;
  }
  for (unsigned i = 0; i < 9; ++i) {
    if ((mode >> (8 - i) & 1) == 0) text[i + 1] = '-';
  }
  // Set-user-ID, set-group-ID and the sticky bit stand where the right to execute does.
  const auto special = [&](std::uint16_t bit, std::size_t at, char with, char without) {
    if ((mode & bit) != 0) text[at] = text[at] == 'x' ? with : without;
  };
  special(S_ISUID, 3, 's', 'S');
  special(S_ISGID, 6, 's', 'S');
  special(S_ISVTX, 9, 't', 'T');
  return text;
}

std::string size_text(const ObjectState& object) {
  if (!is_device(object.mode)) return std::to_string(object.size);
  return fmt::format("{}, {}", object.device >> kMinorBits, object.device & kMinorMask);
}

std::string time_text(const client::Context& context, const FileTime& time) {
  return time.seconds < 0 ? "before 1970" : context.short_time(ns_of(time));
}

void put_name(std::string_view name, api::FileName& to) {
  to.set_text(to_utf8(name));
  if (!is_utf8(name)) to.set_raw(std::string(name));
}

api::FileObject to_message(const client::Context& context, const ObjectState& object,
                           ObjectNumber number) {
  api::FileObject to;
  to.set_kind(std::string(kind_name(object.mode)));
  to.set_mode(mode_text(object.mode));
  to.set_links(object.links);
  to.set_user(object.user);
  to.set_group(object.group);
  to.set_size(object.size);
  set_number(number, to);
  put(context, object.modified, *to.mutable_modified());
  put(context, object.changed, *to.mutable_changed());
  if (object.made) put(context, *object.made, *to.mutable_made());
  if (is_device(object.mode)) {
    to.set_major(object.device >> kMinorBits);
    to.set_minor(object.device & kMinorMask);
  }
  return to;
}

}  // namespace mariner::uvfs
