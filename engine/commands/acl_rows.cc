// The rows of the ACL family.
#include "engine/commands/acl.h"

#include "engine/commands/families.h"
#include "engine/commands/help.h"

namespace sluice {

namespace {

const Command kAclSubcommands[] = {
    {.name = "deluser",
     .flags = kAdmin | kNoScript | kLoading | kStale,
     .handler = acl_deluser_command,
     .since = "6.0.0",
     .complexity = "O(1) amortized time considering the typical user.",
     .summary = "Removes users and closes their connections.",
     .syntax = "username [username ...]",
     .secrets = Secrets::kEveryArgument},
    {.name = "getuser",
     .flags = kAdmin | kNoScript | kLoading | kStale,
     .handler = acl_getuser_command,
     .since = "6.0.0",
     .complexity =
         "O(N). Where N is the number of password, command and pattern rules that the user has.",
     .summary = "Shows all of a user's rules, passwords as hashes.",
     .syntax = "username",
     .secrets = Secrets::kEveryArgument},
    {.name = "cat",
     .flags = kNoScript | kLoading | kStale,
     .handler = acl_cat_command,
     .since = "6.0.0",
     .complexity = "O(1) since the categories and commands are a fixed set.",
     .summary = "Lists the categories, or the commands of one.",
     .syntax = "[categoryname]"},
    {.name = "list",
     .flags = kAdmin | kNoScript | kLoading | kStale,
     .handler = acl_list_command,
     .since = "6.0.0",
     .complexity = "O(N). Where N is the number of configured users.",
     .summary = "Shows all users as lines of a configuration file."},
    {.name = "dryrun",
     .flags = kAdmin | kNoScript | kLoading | kStale,
     .handler = acl_dryrun_command,
     .since = "7.0.0",
     .complexity = "O(1).",
     .summary = "Checks whether a user may run a command, without running it.",
     .syntax = "username command [arg [arg ...]]"},
    {.name = "load",
     .flags = kAdmin | kNoScript | kLoading | kStale,
     .handler = acl_load_command,
     .since = "6.0.0",
     .complexity = "O(N). Where N is the number of configured users.",
     .summary = "Replaces all users by those of the ACL file."},
    {.name = "save",
     .flags = kAdmin | kNoScript | kLoading | kStale,
     .handler = acl_save_command,
     .since = "6.0.0",
     .complexity = "O(N). Where N is the number of configured users.",
     .summary = "Writes all users into the ACL file."},
    {.name = "log",
     .flags = kAdmin | kNoScript | kLoading | kStale,
     .handler = acl_log_command,
     .since = "6.0.0",
     .complexity = "O(N) with N being the number of entries shown.",
     .summary = "Shows refused commands and failed logins.",
     .syntax = "[count | RESET]"},
    {.name = "genpass",
     .flags = kNoScript | kLoading | kStale,
     .handler = acl_genpass_command,
     .since = "6.0.0",
     .summary = "Generates a random password, of 256 bits by default.",
     .syntax = "[bits]"},
    {.name = "whoami",
     .flags = kNoScript | kLoading | kStale,
     .handler = acl_whoami_command,
     .since = "6.0.0",
     .summary = "Returns the name of the connection's user."},
    help_row("6.0.0"),
    {.name = "users",
     .flags = kAdmin | kNoScript | kLoading | kStale,
     .handler = acl_users_command,
     .since = "6.0.0",
     .complexity = "O(N). Where N is the number of configured users.",
     .summary = "Lists the names of all users."},
    {.name = "setuser",
     .flags = kAdmin | kNoScript | kLoading | kStale,
     .handler = acl_setuser_command,
     .since = "6.0.0",
     .complexity = "O(N). Where N is the number of rules provided.",
     .summary = "Creates a user, or changes one by further rules.",
     .syntax = "username [rule [rule ...]]",
     .secrets = Secrets::kEveryArgument},
};

const Command kAclRows[] = {
    {.name = "acl",
     .flags = kContainer,
     .subcommands = kAclSubcommands,
     .since = "6.0.0",
     .complexity = "Depends on subcommand.",
     .summary = "Manages users and their permissions."},
};

}  // namespace

const CommandFamily kAclCommands = {"server", kAclRows};

}  // namespace sluice
