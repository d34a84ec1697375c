#include "uvfs/program/object_name.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/client/console.h"
#include "uvfs/path_search.h"

namespace mariner::uvfs {
namespace {

Error wrong(std::string what) { return {ErrorCode::kInvalidArgument, std::move(what)}; }

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("/._-+:@%,=").find(c) != std::string_view::npos;
}

}  // namespace

std::string ObjectName::at(SequenceNumber moment) const {
  // (A '#' within a word begins no comment.)
  return fmt::format("{}{}{}@#{}", volume.empty() ? "" : shell_word(volume),
                     volume.empty() ? "" : ":", shell_word(full_path()), moment.value);
}

Result<void> ObjectName::enter(const std::string& chosen) {
  if (!path.starts_with(chosen) ||
      (path.size() > chosen.size() && !chosen.empty() && path[chosen.size()] != '/')) {
    return wrong(fmt::format("{} is not in {}: expected two moments of one part", path, chosen));
  }
  part = chosen;
  path = path.substr(chosen.size());
  if (path.empty()) path = "/";
  return {};
}

std::string ObjectName::full_path() const { return full_path(path); }

std::string ObjectName::full_path(std::string_view within) const {
  return part + (part.empty() || within != "/" ? std::string(within) : "");
}

Result<ObjectName> parse_object_name(const client::Context& context, std::string_view text,
                                     const ObjectNameRule& rule) {
  ObjectName name;
  const auto colon = text.find(':');
  if (rule.image) {
    const bool root = rule.path_less && (text.empty() || text.starts_with('@'));
    if (colon != 0 && !text.starts_with('/') && !root) {
      return wrong(fmt::format("\"{}\": with --image, expected PATH[@TIME]", text));
    }
    if (colon == 0) text.remove_prefix(1);
  } else {
    // (A time has colons, too.)
    const bool alone = rule.path_less && text.find('@') < colon;
    name.volume = text.substr(0, alone ? text.find('@') : colon);
    if (name.volume.empty() || (colon == std::string_view::npos && !rule.path_less)) {
      return wrong(
          fmt::format("\"{}\": expected VOLUME:PATH[@TIME], as in db1:/etc/passwd@-1h", text));
    }
    if (name.volume.find('@') != std::string::npos) {
      return wrong(fmt::format("\"{}\": the time stands at the end: VOLUME:PATH@TIME", text));
    }
    text.remove_prefix(std::min(text.size(), name.volume.size() + (alone ? 0 : 1)));
  }
  const auto at = text.rfind('@');
  if (at != std::string_view::npos && text.find('/', at) == std::string_view::npos) {
    name.time = std::string(text.substr(at + 1));
    text = text.substr(0, at);
    const auto time = name.time->empty() ? Result<api::MomentSpec>(wrong("expected a time"))
                                         : context.moment_spec(*name.time);
    if (!time) {
      return wrong(
          fmt::format("what follows the last @ is no time: {}. (If it belongs to the "
                      "file's name, append @now)",
                      time.error().message));
    }
  }
  name.path = text;
  if (name.path.empty() && rule.path_less) name.path = "/";
  const auto parts = PathSearch::components_of(name.path);
  if (!parts) return parts.error();
  name.path.clear();
  for (const std::string& each : *parts) name.path += "/" + each;
  if (name.path.empty()) name.path = "/";
  return name;
}

std::string shell_word(std::string_view text) {
  if (!text.empty() && std::ranges::all_of(text, is_plain)) return std::string(text);
  if (client::printable(text) == text) {
    std::string word = "'";
    for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
    return word + "'";
  }
  std::string word = "$'";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\'' || c == '\\') {
      word += std::string("\\") + c;
    } else if (byte < 0x20 || byte >= 0x7F) {
      word += fmt::format("\\x{:02x}", byte);
    } else {
      word += c;
    }
  }
  return word + "'";
}

}  // namespace mariner::uvfs
