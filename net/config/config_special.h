// The parsers of directives that are more than one plain value; see SpecialParser.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include "net/config/config_table.h"

namespace sluice::config_special {

// Redis's memory sizes: digits and a unit (b, k, kb, m, mb, g, gb in any case). Too large a number
// is the largest one, and no digits are zero, as in Redis. Nothing if it is no memory size.
std::optional<uint64_t> parse_memory(Bytes text);

// Splits at single blanks, as Redis splits the one value that CONFIG SET gives to a directive of
// several arguments; an empty text has no parts.
std::vector<std::string> split_value(Bytes text);

// The parts with a blank between them.
std::string joined(std::span<const std::string> parts);

// Redis's strtol over the whole of an argument. Nothing if it is no number.
std::optional<int64_t> parse_long(const std::string& text);

// `text` as one argument in quotes, so that split_quoted_args() gives it back as it is.
std::string quoted(Bytes text);

// The binding of a choice whose enumeration has the order of the row's choices.
template <auto Member>
void set_choice(Settings& settings, size_t index) {
  settings.*Member = static_cast<std::remove_reference_t<decltype(settings.*Member)>>(index);
}

using Arguments = std::span<const std::string>;
std::string parse_bind(Arguments arguments, ConfigDraft& draft, std::string& value);
std::string parse_port_number(Arguments arguments, int64_t& port, std::string& value);
template <int64_t Settings::*Member>
std::string parse_port(Arguments arguments, ConfigDraft& draft, std::string& value) {
  return parse_port_number(arguments, draft.settings.*Member, value);
}
std::string parse_http_bind(Arguments arguments, ConfigDraft& draft, std::string& value);
std::string parse_http_host(Arguments arguments, ConfigDraft& draft, std::string& value);
std::string parse_http_token(Arguments arguments, ConfigDraft& draft, std::string& value);
template <std::string HttpAliases::*Member>
std::string parse_alias(Arguments arguments, ConfigDraft& draft, std::string& value) {
  if (arguments.size() != 1) return "wrong number of arguments";
  draft.settings.http_aliases.*Member = value = arguments[0];
  return "";
}
std::string parse_otlp_endpoint(Arguments arguments, ConfigDraft& draft, std::string& value);
std::string parse_otlp_header(Arguments arguments, ConfigDraft& draft, std::string& value);
std::string parse_io_threads(Arguments arguments, ConfigDraft& draft, std::string& value);
std::string parse_dir(Arguments arguments, ConfigDraft& draft, std::string& value);
std::string parse_save(Arguments arguments, ConfigDraft& draft, std::string& value);
std::string parse_output_limits(Arguments arguments, ConfigDraft& draft, std::string& value);
std::string parse_keyspace_events(Arguments arguments, ConfigDraft& draft, std::string& value);
std::string parse_user(Arguments arguments, ConfigDraft& draft, std::string& value);
std::string parse_daemonize(Arguments arguments, ConfigDraft& draft, std::string& value);
std::string parse_replicaof(Arguments arguments, ConfigDraft& draft, std::string& value);
std::string refuse_rename_command(Arguments arguments, ConfigDraft& draft, std::string& value);
std::string refuse_loadmodule(Arguments arguments, ConfigDraft& draft, std::string& value);
std::string parse_percentiles(Arguments arguments, ConfigDraft& draft, std::string& value);
std::string parse_loglevel(Arguments arguments, ConfigDraft& draft, std::string& value);

// Of ignored directives: checked enough to give Redis's answer (config_special_ignored.cc).
std::string parse_activedefrag(Arguments arguments, ConfigDraft& draft, std::string& value);
// Redis takes more of these than it uses, and keeps what it uses.
std::string parse_dbfilename(Arguments arguments, ConfigDraft& draft, std::string& value);
std::string parse_hz(Arguments arguments, ConfigDraft& draft, std::string& value);
std::string parse_backlog_size(Arguments arguments, ConfigDraft& draft, std::string& value);
std::string parse_hostname(Arguments arguments, ConfigDraft& draft, std::string& value);
std::string parse_title_template(Arguments arguments, ConfigDraft& draft, std::string& value);
// TLS between servers: it asks for certificates, although there is no other server.
std::string parse_peer_tls(Arguments arguments, ConfigDraft& draft, std::string& value);
std::string parse_oom_scores(Arguments arguments, ConfigDraft& draft, std::string& value);
std::string parse_shutdown_options(Arguments arguments, ConfigDraft& draft, std::string& value);

}  // namespace sluice::config_special
