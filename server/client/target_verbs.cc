// mariner target acl add | remove | list, target auth set | clear | show, target redirect
#include <fmt/format.h>

#include "server/client/access_text.h"
#include "server/client/session_text.h"
#include "server/client/table.h"
#include "server/client/verbs.h"

namespace mariner::client {
namespace {

struct AclOptions {
  std::string volume;
  std::string initiator;
  bool force = false;
};

struct AuthOptions {
  std::string volume;
  std::vector<std::string> accounts;
};

struct RedirectOptions {
  std::string volume;
  std::string address;
  bool permanent = false;
  bool off = false;
};

Result<ExitCode> show_access(Context& context, const std::string& volume) {
  api::AccessRequest request;
  request.set_volume(volume);
  const auto access = context.client().access_show(request);
  if (!access) return access.error();
  if (context.print_json(*access)) return ExitCode::kDone;
  Facts facts;
  facts.add("volume", access->volume());
  facts.add("initiators", initiators_text(*access));
  facts.add("accounts", accounts_text(*access));
  facts.add("redirected to", redirect_text(*access));
  if (!access->declared_in().empty()) facts.add("declared in", access->declared_in());
  context.console.print(facts.text(context.console));
  return ExitCode::kDone;
}

// What holds now, or would, and who is asked to leave for it.
Result<ExitCode> report(Context& context, const Result<api::Access>& access,
                        const std::string& what) {
  if (!access) return access.error();
  if (context.print_json(*access)) return ExitCode::kDone;
  context.console.note(fmt::format("{}: {}\n", printable(access->volume()), printable(what)));
  for (const auto& session : access->sessions()) context.console.note(session_line(session));
  if (access->sessions_size() > 0) {
    context.console.note(fmt::format("{} sessions {} asked to log out\n", access->sessions_size(),
                                     context.flags.dry_run ? "would be" : "are"));
  }
  context.note_dry_run();
  return ExitCode::kDone;
}

Result<ExitCode> change_acl(Context& context, const AclOptions& options, bool add) {
  api::AclRequest request;
  request.set_volume(options.volume);
  request.set_initiator(options.initiator);
  request.set_dry_run(context.flags.dry_run);
  request.set_force(options.force || context.flags.yes);
  context.force_helps = !request.force();
  auto client = context.client();
  const auto access = add ? client.acl_add(request) : client.acl_remove(request);
  return report(context, access, access ? initiators_text(*access) + " may use it" : "");
}

Result<ExitCode> set_accounts(Context& context, const AuthOptions& options) {
  api::AuthRequest request;
  request.set_volume(options.volume);
  for (const auto& account : options.accounts) request.add_accounts(account);
  request.set_dry_run(context.flags.dry_run);
  const auto access = context.client().auth_set(request);
  return report(context, access,
                options.accounts.empty()
                    ? "no account needs to log in"
                    : fmt::format("one of these accounts is to log in from now on: {}",
                                  access ? accounts_text(*access) : ""));
}

Result<ExitCode> redirect(Context& context, const RedirectOptions& options) {
  if (options.off ? options.permanent || !options.address.empty() : options.address.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "expected VOLUME ADDRESS:PORT [--permanent], or VOLUME --off"};
  }
  api::RedirectRequest request;
  request.set_volume(options.volume);
  request.set_address(options.address);
  request.set_permanent(options.permanent);
  request.set_dry_run(context.flags.dry_run);
  const auto access = context.client().redirect_set(request);
  return report(context, access,
                options.off ? "is used here"
                            : "initiators are sent to " + (access ? redirect_text(*access) : ""));
}

void add_volume(CLI::App& verb, std::string& volume) {
  verb.add_option("VOLUME", volume, "The volume")->required()->type_name("VOLUME");
}

void add_acl_verb(CLI::App& noun, Context& context, bool add) {
  add_verb<AclOptions>(
      noun, context, add ? "add" : "remove",
      add ? "Let an initiator use the volume (\"any\": every one)"
          : "Do not let an initiator use the volume any more",
      [add](CLI::App& verb, AclOptions& options) {
        add_volume(verb, options.volume);
        verb.add_option("INITIATOR", options.initiator, "Its iSCSI name, or any")
            ->required()
            ->type_name(add ? "INITIATOR" : "LISTED");
        verb.add_flag("--force", options.force,
                      "Also if sessions lose their access; they are asked to log out");
      },
      [add](Context& c, const AclOptions& options) { return change_acl(c, options, add); });
}

}  // namespace

void add_target_verbs(CLI::App& app, Context& context) {
  auto& noun = *app.add_subcommand("target", "Who may use a volume, and where");
  noun.require_subcommand(1);
  auto& acl = *noun.add_subcommand("acl", "The initiators that may use a volume");
  acl.require_subcommand(1);
  add_acl_verb(acl, context, true);
  add_acl_verb(acl, context, false);
  add_verb<std::string>(acl, context, "list", "Show who may use a volume", add_volume, show_access);
  auto& auth = *noun.add_subcommand("auth", "The accounts of which one is to log in by CHAP");
  auth.require_subcommand(1);
  add_verb<AuthOptions>(
      auth, context, "set", "Ask for one of these accounts at logins",
      [](CLI::App& verb, AuthOptions& options) {
        add_volume(verb, options.volume);
        verb.add_option("ACCOUNT", options.accounts, "NAME of an [auth.NAME] of the configuration")
            ->required()
            ->type_name("ACCOUNT");
      },
      set_accounts);
  add_verb<AuthOptions>(
      auth, context, "clear", "Ask for no account",
      [](CLI::App& verb, AuthOptions& options) { add_volume(verb, options.volume); }, set_accounts);
  add_verb<std::string>(auth, context, "show", "Show who may use a volume", add_volume,
                        show_access);
  add_verb<RedirectOptions>(
      noun, context, "redirect", "Send initiators to another address",
      [](CLI::App& verb, RedirectOptions& options) {
        add_volume(verb, options.volume);
        verb.add_option("ADDRESS", options.address, "ADDRESS:PORT of a portal")
            ->type_name("ADDRESS");
        verb.add_flag("--permanent", options.permanent, "Say that it is so for good");
        verb.add_flag("--off", options.off, "Serve initiators here again");
      },
      redirect);
}

}  // namespace mariner::client
