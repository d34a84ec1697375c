#include "server/client/completion.h"

#include <gmock/gmock.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>

#include "tests/server/client/daemon.h"

namespace mariner::client {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

class Completion : public DaemonTest {
 protected:
  void SetUp() override {
    control.volumes.add_volumes()->set_name("db1");
    control.volumes.add_volumes()->set_name("db2");
    control.volumes.add_volumes()->set_name("web");
    control.marks.add_marks()->set_name("pre");
    control.marks.add_marks()->set_name("post");
    control.views.add_views()->set_name("v1");
    control.sessions.add_sessions()->set_id(7);
  }
  std::vector<std::string> complete(const std::vector<std::string>& words) {
    std::istringstream in;
    std::ostringstream stream;
    Console console{.in = in, .out = stream, .err = stream};
    const SystemZone zone;
    Context context{console, zone, [] { return kNow; }, {}, {}};
    const auto app = make_app(context);
    return completions(*app, words, socket);
  }
};

TEST_F(Completion, NounsAndVerbs) {
  EXPECT_THAT(complete({"vo"}), ElementsAre("volume"));
  EXPECT_THAT(complete({""}), Contains("rollback"));
  EXPECT_THAT(complete({"volume", ""}), ElementsAre("clone", "create", "delete", "export", "import",
                                                    "list", "resize", "retain", "show"));
  EXPECT_THAT(complete({"--json", "volume", "s"}), ElementsAre("show"));
  EXPECT_THAT(complete({"nonsense", ""}), IsEmpty());
  EXPECT_THAT(complete({}), IsEmpty());
}

TEST_F(Completion, Volumes) {
  EXPECT_THAT(complete({"volume", "show", ""}), ElementsAre("db1", "db2", "web"));
  EXPECT_THAT(complete({"volume", "show", "d"}), ElementsAre("db1", "db2"));
  EXPECT_THAT(complete({"volume", "show", "db1", ""}), IsEmpty());
  EXPECT_THAT(complete({"rollback", ""}), ElementsAre("db1", "db2", "status", "undo", "web"));
  EXPECT_THAT(complete({"rollback", "status", "w"}), ElementsAre("web"));
  EXPECT_THAT(complete({"rollback", "undo", "w"}), ElementsAre("web"));
}

TEST_F(Completion, MarksAndTimes) {
  EXPECT_THAT(complete({"volume", "export", "db1@m"}),
              ElementsAre("db1@mark:post", "db1@mark:pre"));
  EXPECT_THAT(complete({"volume", "clone", "w"}), Contains("web"));
  EXPECT_THAT(complete({"mark", "remove", "db1", ""}), ElementsAre("post", "pre"));
  EXPECT_EQ(control.asked.back(), "mark_list volume: \"db1\"");
  EXPECT_THAT(complete({"rollback", "db2@"}),
              ElementsAre("db2@mark:post", "db2@mark:pre", "db2@now", "db2@yesterday"));
  EXPECT_EQ(control.asked.back(), "mark_list volume: \"db2\"");
  EXPECT_THAT(complete({"view", "expose", "db1@mark:pr"}), ElementsAre("db1@mark:pre"));
  EXPECT_THAT(complete({"history", "show", "db1", "--since", "m"}),
              ElementsAre("mark:post", "mark:pre"));
}

TEST_F(Completion, GroupsWhereAMomentIsTaken) {
  control.of_groups.groups.add_groups()->set_name("g1");
  control.of_groups.marks.add_marks()->set_name("quiet");
  control.of_groups.group.add_members()->set_volume("db2");
  EXPECT_THAT(complete({"rollback", "g"}), ElementsAre("group:g1"));
  EXPECT_THAT(complete({"rollback", "undo", "g"}), ElementsAre("group:g1"));
  EXPECT_THAT(complete({"mark", "add", "group:g1@m"}), ElementsAre("group:g1@mark:quiet"));
  EXPECT_EQ(control.asked.back(), "group_mark_list group: \"g1\"");
  EXPECT_THAT(complete({"mark", "remove", "group:g1", ""}), ElementsAre("quiet"));
  EXPECT_THAT(complete({"volume", "export", "g"}), IsEmpty()) << "it takes one volume";
  EXPECT_THAT(complete({"group", "show", ""}), ElementsAre("g1"));
  EXPECT_THAT(complete({"group", "add", "g1", "w"}), ElementsAre("web"));
  EXPECT_THAT(complete({"group", "remove", "g1", ""}), ElementsAre("db2"));
}

TEST_F(Completion, FilesOfThePast) {
  EXPECT_THAT(complete({"fs", ""}), ElementsAre("cat", "diff", "find", "incarnations", "ls",
                                                "mount", "restore", "versions"));
  EXPECT_THAT(complete({"fs", "ls", "d"}), ElementsAre("db1:/", "db2:/"));
  EXPECT_THAT(complete({"fs", "cat", "db1:/a@mark:p"}),
              ElementsAre("db1:/a@mark:post", "db1:/a@mark:pre"));
  EXPECT_THAT(complete({"fs", "cat", "db1:/a@b/c"}), IsEmpty());
  EXPECT_THAT(complete({"fs", "versions", "db1:/a@"}), IsEmpty());
}

TEST_F(Completion, ViewsSessionsShellsAndOptions) {
  EXPECT_THAT(complete({"view", "unexpose", ""}), ElementsAre("v1"));
  control.access.add_acl("iqn.listed");
  EXPECT_THAT(complete({"target", "acl", "remove", "db1", ""}), ElementsAre("iqn.listed"));
  EXPECT_THAT(complete({"target", "acl", "add", "db1", "a"}), ElementsAre("any"));
  EXPECT_THAT(complete({"target", "auth", ""}), ElementsAre("clear", "set", "show"));
  EXPECT_THAT(complete({"session", "kick", ""}), ElementsAre("7"));
  EXPECT_THAT(complete({"completion", ""}), ElementsAre("bash", "fish", "zsh"));
  control.cluster.add_nodes()->set_name("n2");
  EXPECT_THAT(complete({"node", "promote", "db1", "--node", ""}), ElementsAre("n2"));
  EXPECT_THAT(complete({"node", "promote", "w"}), ElementsAre("web"));
  EXPECT_THAT(complete({"volume", "create", "--s"}),
              ElementsAre("--sanitize", "--size", "--socket"));
  EXPECT_THAT(complete({"volume", "create", "--rem"}), ElementsAre("--removable"));
  EXPECT_THAT(complete({"volume", "create", "--size", ""}), IsEmpty());
  EXPECT_THAT(complete({"rollback", "--f"}), ElementsAre("--force"));
}

TEST_F(Completion, WithoutADaemonThereAreOnlyWords) {
  const auto socket_before = socket;
  socket = "/nonexistent/socket";
  EXPECT_THAT(complete({"volume", "show", ""}), IsEmpty());
  EXPECT_THAT(complete({"--socket", socket_before, "volume", "show", "w"}), ElementsAre("web"));
}

TEST_F(Completion, TheBashScriptOffersWhatTheProgramFinds) {
  // bash breaks "db1@mark:p" into db1 @ mark : p, and replaces the last of these.
  const auto program =
      std::filesystem::temp_directory_path() / ("mariner-c-" + std::to_string(getpid()));
  std::ofstream(program) << "#!/bin/sh\n"
                            "[ \"$*\" = '__complete rollback db1@mark:p' ] && printf '%s\\n' "
                            "db1@mark:post db1@mark:pre\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const auto script = program.string() + ".sh";
  std::ofstream(script)
      << completion_script("bash") << "COMP_LINE='" << program.string()
      << " rollback db1@mark:p'; COMP_POINT=${#COMP_LINE}; _mariner; echo \"${COMPREPLY[*]}\"\n";
  FILE* bash = popen(("bash " + script).c_str(), "r");
  char line[100] = {};
  ASSERT_NE(fgets(line, sizeof line, bash), nullptr);
  pclose(bash);
  EXPECT_STREQ(line, "post pre\n");
  std::filesystem::remove(program);
  std::filesystem::remove(script);
}

TEST_F(Completion, Scripts) {
  for (const auto* shell : {"bash", "zsh", "fish"}) {
    run({"completion", shell});
    EXPECT_EQ(code, 0);
    EXPECT_EQ(out, completion_script(shell));
  }
  run({"completion", "tcsh"});
  EXPECT_EQ(code, 2);
}

}  // namespace
}  // namespace mariner::client
