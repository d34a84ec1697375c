// mariner node init | invite | enrol | list | promote
#include <fmt/format.h>

#include <csignal>
#include <istream>

#include "server/client/table.h"
#include "server/client/verbs.h"
#include "server/peer/enrol.h"
#include "server/peer/invitation.h"
#include "server/peer/pki_folder.h"

namespace mariner::client {
namespace {

peer::WallTime wall_time(const Context& context) {
  return peer::WallTime(
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::nanoseconds(context.now().ns)));
}

void add_pki_option(CLI::App& verb, std::string& pki) {
  pki = peer::PkiFolder::kDefaultPath;
  verb.add_option("--pki", pki,
                  "The folder of certificates, [cluster] pki of the daemon (default: " + pki + ")")
      ->type_name("FOLDER");
}

api::NodeIdentity to_api(const peer::NodeIdentity& identity, const std::string& pki) {
  api::NodeIdentity out;
  out.set_schema(1);
  out.set_cluster(identity.name.cluster);
  out.set_node(identity.name.node);
  out.set_pki(pki);
  out.set_fingerprint(identity.authority.fingerprint());
  const auto ends = identity.certificate.not_after().time_since_epoch();
  out.set_ends_ns(static_cast<std::uint64_t>(std::chrono::nanoseconds(ends).count()));
  return out;
}

// What the configuration says of the node called `name`. What is not known here is what the daemon
// refuses as it stands.
std::string node_entry(const std::string& name, bool first) {
  return fmt::format(
      "Each node of a cluster has an entry in the configuration of all of them (marinerd.toml(5)). "
      "This one's, with its own address:\n\n"
      "[[cluster.node]]\n"
      "id = {}\n"
      "name = \"{}\"\n"
      "addresses = [\"ADDRESS:9862\"]\n",
      first ? "1" : "0  # instead: 1 to 4095, a number that no node has or ever had", name);
}

struct InitOptions {
  std::string cluster;
  std::string node;
  std::string pki;
};

Result<ExitCode> init(Context& context, const InitOptions& options) {
  const peer::NodeName name{.cluster = options.cluster, .node = options.node};
  if (const auto good = peer::check_name("cluster", name.cluster); !good) return good.error();
  if (const auto good = peer::check_name("node", name.node); !good) return good.error();
  const peer::PkiFolder folder(options.pki);
  if (const auto vacant = folder.check_vacant(); !vacant) return vacant.error();
  if (context.flags.dry_run) {
    api::NodeIdentity planned;
    planned.set_schema(1);
    planned.set_cluster(name.cluster);
    planned.set_node(name.node);
    planned.set_pki(options.pki);
    if (!context.print_json(planned)) context.note_dry_run();
    return ExitCode::kDone;
  }
  const auto made = folder.create_cluster(name, wall_time(context));
  if (!made) return made.error();
  if (context.print_json(to_api(*made, options.pki))) return ExitCode::kDone;
  context.console.note(fmt::format(
      "Cluster {} has its first node, {}. Its certificates are in {}, with the key of the "
      "cluster's authority: keep a copy of ca.key where nobody else can read it.\n"
      "The others: mariner node invite NAME here, mariner node enrol TOKEN there.\n{}",
      name.cluster, name.node, printable(options.pki), node_entry(name.node, true)));
  return ExitCode::kDone;
}

Result<ExitCode> invite(Context& context, const std::string& node) {
  api::InviteRequest request;
  request.set_node(node);
  request.set_dry_run(context.flags.dry_run);
  const auto invitation = context.client().node_invite(request);
  if (!invitation) return invitation.error();
  if (context.print_json(*invitation)) return ExitCode::kDone;
  if (context.flags.dry_run) {
    context.note_dry_run();
    return ExitCode::kDone;
  }
  context.console.note(
      fmt::format("On {}, until {}: mariner node enrol with this line, which is a secret and good "
                  "once.\n",
                  printable(node), context.short_time(invitation->ends_ns())));
  context.console.print(printable(invitation->token()) + "\n");
  return ExitCode::kDone;
}

struct EnrolOptions {
  std::string token;
  std::string pki;
};

Result<ExitCode> enrol(Context& context, const EnrolOptions& options) {
  std::string token = options.token;
  if (token == "-") std::getline(context.console.in, token);
  const auto invitation = peer::parse_token(token);
  if (!invitation) return invitation.error();
  const peer::PkiFolder folder(options.pki);
  // Before the invitation is spent.
  if (const auto vacant = folder.check_vacant(); !vacant) return vacant.error();
  if (context.flags.dry_run) {
    context.note_dry_run();
    return ExitCode::kDone;
  }
  std::signal(SIGPIPE, SIG_IGN);  // as TlsContext demands
  const auto identity = peer::enrol(*invitation, wall_time(context));
  if (!identity) return identity.error();
  if (const auto stored = folder.store(*identity); !stored) return stored.error();
  if (context.print_json(to_api(*identity, options.pki))) return ExitCode::kDone;
  context.console.note(fmt::format(
      "This node is {} of cluster {} now. Its certificates are in {}.\n{}", identity->name.node,
      identity->name.cluster, printable(options.pki), node_entry(identity->name.node, false)));
  return ExitCode::kDone;
}

struct PromoteOptions {
  std::string volume;
  std::string node;
};

Result<ExitCode> promote(Context& context, const PromoteOptions& options) {
  api::PromoteRequest request;
  request.set_volume(options.volume);
  request.set_node(options.node);
  request.set_dry_run(context.flags.dry_run);
  const auto promotion = context.client().node_promote(request);
  if (!promotion) return promotion.error();
  if (context.print_json(*promotion)) return ExitCode::kDone;
  const std::string volume = printable(promotion->volume());
  const std::string node = printable(promotion->node());
  const std::string from =
      promotion->from().empty() ? "nobody" : "node " + printable(promotion->from());
  if (promotion->already()) {
    context.console.note(fmt::format("Node {} coordinates {} already.\n", node, volume));
  } else if (context.flags.dry_run) {
    context.console.note(fmt::format("Node {} would coordinate {}, which {} coordinates now.\n",
                                     node, volume, from));
  } else {
    context.console.note(fmt::format("Node {} serves {} now, in epoch {}; before, {} did.\n", node,
                                     volume, promotion->epoch(), from));
  }
  if (context.flags.dry_run) context.note_dry_run();
  return ExitCode::kDone;
}

Result<ExitCode> list_nodes(Context& context, const NoOptions&) {
  const auto cluster = context.client().cluster_status();
  if (!cluster) return cluster.error();
  if (context.print_json(*cluster)) return ExitCode::kDone;
  Table table({">ID", "NAME", "STATE", "ADDRESSES"});
  for (const auto& node : cluster->nodes()) {
    std::string addresses;
    for (const std::string& address : node.addresses()) {
      addresses += (addresses.empty() ? "" : ", ") + address;
    }
    table.add({std::to_string(node.number()), node.name() + (node.self() ? " (this one)" : ""),
               node.alive() ? "alive" : "not there", addresses});
  }
  context.console.print(table.text(context.console));
  if (!cluster->store_answers()) {
    context.console.note(
        "The cluster's store (etcd) does not answer here: what is shown may be old.\n");
  }
  return ExitCode::kDone;
}

}  // namespace

void add_node_verbs(CLI::App& app, Context& context) {
  auto& noun = *app.add_subcommand("node", "The nodes of a cluster and how they know each other");
  noun.require_subcommand(1);
  add_verb<InitOptions>(
      noun, context, "init", "Make a cluster, with this node as its first",
      [](CLI::App& verb, InitOptions& options) {
        verb.add_option("--cluster", options.cluster, "The cluster's name")
            ->required()
            ->type_name("NAME");
        verb.add_option("--node", options.node, "This node's name")->required()->type_name("NAME");
        add_pki_option(verb, options.pki);
      },
      init);
  add_verb<NoOptions>(noun, context, "list", "List the nodes of the cluster", no_options,
                      list_nodes);
  add_verb<PromoteOptions>(
      noun, context, "promote", "Make a node the coordinator of a volume",
      [](CLI::App& verb, PromoteOptions& options) {
        verb.add_option("VOLUME", options.volume, "The volume")->required()->type_name("VOLUME");
        verb.add_option("--node", options.node, "The node (default: the one that is asked)")
            ->type_name("NODE");
      },
      promote);
  add_verb<std::string>(
      noun, context, "invite", "Print the line with which another node enrols",
      [](CLI::App& verb, std::string& node) {
        verb.add_option("NAME", node, "The other node's name")->required()->type_name("NAME");
      },
      invite);
  add_verb<EnrolOptions>(
      noun, context, "enrol", "Make this node one of the cluster that has invited it",
      [](CLI::App& verb, EnrolOptions& options) {
        verb.add_option("TOKEN", options.token,
                        "What mariner node invite has printed; \"-\": read from standard input")
            ->required()
            ->type_name("TOKEN");
        add_pki_option(verb, options.pki);
      },
      enrol);
}

}  // namespace mariner::client
