#include "server/client/completion.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "server/client/group_moments.h"
#include "server/client/verbs.h"

namespace mariner::client {
namespace {

constexpr auto kPatience = std::chrono::seconds(2);

constexpr std::string_view kBash = R"shell(# bash completion for mariner
_mariner() {
  local line=${COMP_LINE:0:COMP_POINT} stem
  local -a words
  read -ra words <<< "$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  mapfile -t COMPREPLY < <("${words[0]}" __complete "${words[@]:1}" 2>/dev/null)
  # bash breaks words at these characters and replaces only what stands behind the last of them.
  stem=${words[-1]%"${words[-1]##*[@:=]}"}
  COMPREPLY=("${COMPREPLY[@]#"$stem"}")
}
complete -o default -F _mariner mariner
)shell";

// clang-format takes this one for C++.
// clang-format off
constexpr std::string_view kZsh = R"shell(#compdef mariner
_mariner() {
  local -a candidates
  candidates=(${(f)"$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)"})
  if (( ${#candidates} )); then
    compadd -a candidates
  else
    _files
  fi
}
compdef _mariner mariner
)shell";
// clang-format on

constexpr std::string_view kFish = R"shell(# fish completion for mariner
function __mariner_complete
  set -l words (commandline -opc) (commandline -ct)
  $words[1] __complete $words[2..-1] 2>/dev/null
end
complete -c mariner -a '(__mariner_complete)'
)shell";

const CLI::App* find_verb(const CLI::App& noun, const std::string& name) {
  const auto found =
      noun.get_subcommands([&name](const CLI::App* verb) { return verb->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

// The words before the last, understood as far as completion needs.
struct Place {
  const CLI::App* verb;
  std::vector<std::string> positionals;      // that were given to `verb`
  const CLI::Option* open_option = nullptr;  // the last word is its value
};

// `name` of `verb` or of what it is a verb of.
const CLI::Option* find_option(const CLI::App* verb, const std::string& name) {
  for (; verb != nullptr; verb = verb->get_parent()) {
    if (const auto* option = verb->get_option_no_throw(name)) return option;
  }
  return nullptr;
}

Place find_place(const CLI::App& app, const std::vector<std::string>& words, std::string& socket) {
  Place place{&app, {}};
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const auto& word = words[i];
    if (place.open_option != nullptr) {
      if (place.open_option->check_name("--socket")) socket = word;
      place.open_option = nullptr;
    } else if (word.starts_with("--") && word.find('=') == std::string::npos) {
      const auto* option = find_option(place.verb, word);
      if (option != nullptr && option->get_items_expected_max() > 0) place.open_option = option;
    } else if (!word.starts_with('-')) {
      const auto* sub = find_verb(*place.verb, word);
      if (sub != nullptr && place.positionals.empty()) {
        place.verb = sub;
      } else {
        place.positionals.push_back(word);
      }
    }
  }
  return place;
}

void add_group_marks(AdminClient& client, const std::string& group, const std::string& prefix,
                     std::vector<std::string>& to) {
  api::GroupMarkRequest request;
  request.set_group(group);
  if (const auto marks = client.group_mark_list(request)) {
    for (const auto& mark : marks->marks()) to.push_back(prefix + mark.name());
  }
}

// Of a volume, or of group:GROUP.
void add_marks(AdminClient& client, const std::string& volume, const std::string& prefix,
               std::vector<std::string>& to) {
  if (const auto group = group_of(volume)) return add_group_marks(client, *group, prefix, to);
  api::MarkRequest request;
  request.set_volume(volume);
  if (const auto marks = client.mark_list(request)) {
    for (const auto& mark : marks->marks()) to.push_back(prefix + mark.name());
  }
}

void add_volumes(AdminClient& client, std::vector<std::string>& to) {
  if (const auto volumes = client.volume_list()) {
    for (const auto& entry : volumes->volumes()) to.push_back(entry.name());
  }
}

void add_groups(AdminClient& client, const std::string& prefix, std::vector<std::string>& to) {
  if (const auto groups = client.group_list()) {
    for (const auto& group : groups->groups()) to.push_back(prefix + group.name());
  }
}

void add_members(AdminClient& client, const std::string& group, std::vector<std::string>& to) {
  api::GroupRequest request;
  request.set_name(group);
  if (const auto shown = client.group_show(request)) {
    for (const auto& member : shown->members()) to.push_back(member.volume());
  }
}

// VOLUME:PATH[@TIME], of which the path is not known here. What names a mark is its last part.
void add_file_objects(AdminClient& client, bool at_time, const std::string& word,
                      std::vector<std::string>& to) {
  const auto colon = word.find(':');
  if (colon == std::string::npos) {
    if (const auto volumes = client.volume_list()) {
      for (const auto& entry : volumes->volumes()) to.push_back(entry.name() + ":/");
    }
    return;
  }
  const auto at = word.rfind('@');
  if (!at_time || at == std::string::npos || word.find('/', at) != std::string::npos) return;
  const std::string object = word.substr(0, at);
  for (const auto* time : {"@now", "@yesterday"}) to.push_back(object + time);
  add_marks(client, word.substr(0, colon), object + "@mark:", to);
}

// Values of `type`, the type name of an option, as verbs.h's functions declare them.
void add_values(const std::string& type, const Place& place, const std::string& word,
                const std::string& socket, std::vector<std::string>& to) {
  AdminClient client(socket, kPatience);
  const auto volume = place.positionals.empty() ? std::string() : place.positionals.front();
  const auto object = split_object(word);
  if ((type == "VOLUME@TIME" || type == "OBJECT@TIME") && object.time) {
    for (const auto* time : {"@now", "@yesterday"}) to.push_back(object.object + time);
    add_marks(client, object.object, object.object + "@mark:", to);
  } else if (type == "VOLUME" || type == "VOLUME@TIME") {
    add_volumes(client, to);
  } else if (type == "OBJECT" || type == "OBJECT@TIME") {
    add_volumes(client, to);
    add_groups(client, "group:", to);
  } else if (type == "GROUP") {
    add_groups(client, "", to);
  } else if (type == "MEMBER") {
    add_members(client, volume, to);
  } else if (type.starts_with("VOLUME:PATH") || type == "VOLUME[:PATH]") {
    add_file_objects(client, type.ends_with("@TIME"), word, to);
  } else if (type == "INITIATOR") {
    // Those that are logged in to something are the likeliest.
    to.emplace_back("any");
    if (const auto sessions = client.session_list()) {
      for (const auto& session : sessions->sessions()) to.push_back(session.initiator());
    }
  } else if (type == "LISTED") {
    api::AccessRequest request;
    request.set_volume(volume);
    if (const auto access = client.access_show(request)) {
      if (access->any_initiator()) to.emplace_back("any");
      to.insert(to.end(), access->acl().begin(), access->acl().end());
    }
  } else if (type == "MARK") {
    add_marks(client, volume, "", to);
  } else if (type == "TIME") {
    to.insert(to.end(), {"now", "yesterday"});
    add_marks(client, volume, "mark:", to);
  } else if (type == "VIEW") {
    if (const auto views = client.view_list()) {
      for (const auto& view : views->views()) to.push_back(view.name());
    }
  } else if (type == "SESSION") {
    if (const auto sessions = client.session_list()) {
      for (const auto& session : sessions->sessions()) to.push_back(std::to_string(session.id()));
    }
  } else if (type == "NODE") {
    if (const auto cluster = client.cluster_status()) {
      for (const auto& node : cluster->nodes()) to.push_back(node.name());
    }
  } else if (type == "SHELL") {
    to.insert(to.end(), {"bash", "zsh", "fish"});
  }
}

void add_options(const CLI::App* verb, std::vector<std::string>& to) {
  for (; verb != nullptr; verb = verb->get_parent()) {
    for (const auto* option : verb->get_options()) {
      for (const auto& name : option->get_lnames()) to.push_back("--" + name);
    }
  }
}

void add_words(const Place& place, const std::string& word, const std::string& socket,
               std::vector<std::string>& to) {
  if (place.positionals.empty()) {
    for (const auto* sub : place.verb->get_subcommands([](const CLI::App*) { return true; }))
      to.push_back(sub->get_name());
  }
  std::size_t number = 0;
  for (const auto* option : place.verb->get_options()) {
    if (option->get_positional() && number++ == place.positionals.size()) {
      add_values(option->get_type_name(), place, word, socket, to);
    }
  }
}

}  // namespace

std::vector<std::string> completions(const CLI::App& app, const std::vector<std::string>& words,
                                     const std::string& socket) {
  if (words.empty()) return {};
  auto daemon = socket;
  const auto place = find_place(app, words, daemon);
  const auto& word = words.back();
  std::vector<std::string> candidates;
  if (place.open_option != nullptr) {
    add_values(place.open_option->get_type_name(), place, word, daemon, candidates);
  } else if (word.starts_with('-')) {
    add_options(place.verb, candidates);
  } else {
    add_words(place, word, daemon, candidates);
  }
  // A name with a control character could not be typed, and would break the list's lines.
  std::erase_if(candidates, [&word](const std::string& candidate) {
    return !candidate.starts_with(word) || printable(candidate) != candidate;
  });
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  return candidates;
}

std::string_view completion_script(std::string_view shell) {
  if (shell == "bash") return kBash;
  if (shell == "zsh") return kZsh;
  if (shell == "fish") return kFish;
  return {};
}

void add_completion_verb(CLI::App& app, Context& context) {
  add_verb<std::string>(
      app, context, "completion", "Print the script that completes this command in a shell",
      [](CLI::App& verb, std::string& shell) {
        verb.add_option("SHELL", shell, "bash, zsh or fish")->required()->type_name("SHELL");
      },
      [](Context& c, const std::string& shell) -> Result<ExitCode> {
        const auto script = completion_script(shell);
        if (script.empty())
          return Error{ErrorCode::kInvalidArgument, "expected bash, zsh or fish, found " + shell};
        c.console.print(script);
        return ExitCode::kDone;
      });
}

}  // namespace mariner::client
