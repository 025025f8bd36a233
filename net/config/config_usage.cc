// What --help and --version print; the former is generated from the table of directives.
#include <algorithm>

#include "net/config/config.h"
#include "net/process/version.h"

namespace sluice {
namespace {

constexpr size_t kSummaryColumn = 32;

std::string usage_line(const Directive& directive) {
  std::string line = "  --" + std::string(directive.name);
  line.resize(std::max(line.size() + 1, kSummaryColumn), ' ');
  line += directive.summary;
  if (*directive.default_value != '\0') line += " [" + std::string(directive.default_value) + ']';
  return line + '\n';
}

}  // namespace

std::optional<std::string> Config::information(int argc, const char* const* argv) {
  if (argc != 2) return std::nullopt;
  const Bytes argument = argv[1];
  if (argument == "-v" || argument == "--version") return version();
  if (argument == "-h" || argument == "--help") return usage();
  return std::nullopt;
}

std::string Config::version() {
  return std::string("Sluice server v=") + kSluiceVersion + " redis_version=" + kRedisVersion +
         '\n';
}

std::string Config::usage() {
  std::string text =
      "Usage: sluice-server [/path/to/sluice.conf] [-] [--reinit] [--directive value ...]\n"
      "       sluice-server -v | --version\n"
      "       sluice-server -h | --help\n"
      "\n"
      "A durable server that speaks Redis's protocol. '-' reads directives from standard input.\n"
      "An existing redis.conf works as well. --reinit replaces this node's data by those of "
      "another\n"
      "node of its group. Examples:\n"
      "\n"
      "  sluice-server conf/sluice.conf\n"
      "  sluice-server conf/sluice.conf --port 7000 --dir ./data\n"
      "  sluice-server --appendonly no --save \"\"\n"
      "  echo 'maxmemory 128mb' | sluice-server -\n"
      "\n"
      "Directives, with their defaults (conf/sluice.conf explains them):\n";
  for (const DirectiveKind kind : {DirectiveKind::kRedis, DirectiveKind::kOurs}) {
    text += kind == DirectiveKind::kRedis ? "\nAs in Redis:\n" : "\nSluice's own:\n";
    for (const Directive& directive : config_directives()) {
      if (directive.kind == kind) text += usage_line(directive);
    }
  }
  return text;
}

}  // namespace sluice
