// Parsers of directives whose value is more than one plain value; see SpecialParser.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include "net/config/config_table.h"

namespace sluice::config_special {

inline constexpr const char* kWrongNumber = "wrong number of arguments";

// Parses a memory size as Redis does: digits and a unit (b, k, kb, m, mb, g, gb in any case). As in
// Redis, too large a number becomes the largest one, and no digits mean zero. Nothing if it is not
// a memory size.
std::optional<uint64_t> parse_memory(Bytes text);

// Splits at single blanks, as Redis splits the one value of CONFIG SET for a directive with several
// arguments. An empty text has no parts.
std::vector<std::string> split_value(Bytes text);

// Joins the parts with blanks.
std::string joined(std::span<const std::string> parts);

// Redis's strtol over the whole argument. Nothing if it is not a number.
std::optional<int64_t> parse_long(const std::string& text);

// Quotes `text` as one argument that split_quoted_args() turns back into it.
std::string quoted(Bytes text);

// The binding of a choice whose enumeration is in the order of the row's choices.
template <auto Member>
void set_choice(Settings& settings, size_t index) {
  settings.*Member = static_cast<std::remove_reference_t<decltype(settings.*Member)>>(index);
}

using Arguments = std::span<const std::string>;
Result<std::string> parse_bind(Arguments arguments, ConfigDraft& draft);
Result<std::string> parse_port_number(Arguments arguments, int64_t& port);
template <int64_t Settings::*Member>
Result<std::string> parse_port(Arguments arguments, ConfigDraft& draft) {
  return parse_port_number(arguments, draft.settings.*Member);
}
Result<std::string> parse_http_bind(Arguments arguments, ConfigDraft& draft);
Result<std::string> parse_http_host(Arguments arguments, ConfigDraft& draft);
Result<std::string> parse_http_token(Arguments arguments, ConfigDraft& draft);
template <std::string HttpAliases::*Member>
Result<std::string> parse_alias(Arguments arguments, ConfigDraft& draft) {
  return draft.settings.http_aliases.*Member = arguments[0];
}
Result<std::string> parse_otlp_endpoint(Arguments arguments, ConfigDraft& draft);
Result<std::string> parse_otlp_header(Arguments arguments, ConfigDraft& draft);
Result<std::string> parse_io_threads(Arguments arguments, ConfigDraft& draft);
Result<std::string> parse_dir(Arguments arguments, ConfigDraft& draft);
Result<std::string> parse_save(Arguments arguments, ConfigDraft& draft);
Result<std::string> parse_output_limits(Arguments arguments, ConfigDraft& draft);
Result<std::string> parse_keyspace_events(Arguments arguments, ConfigDraft& draft);
Result<std::string> parse_user(Arguments arguments, ConfigDraft& draft);
Result<std::string> parse_daemonize(Arguments arguments, ConfigDraft& draft);
Result<std::string> parse_replicaof(Arguments arguments, ConfigDraft& draft);
Result<std::string> refuse_rename_command(Arguments arguments, ConfigDraft& draft);
Result<std::string> refuse_loadmodule(Arguments arguments, ConfigDraft& draft);
Result<std::string> parse_percentiles(Arguments arguments, ConfigDraft& draft);
Result<std::string> parse_loglevel(Arguments arguments, ConfigDraft& draft);

// Ignored directives: checked only as far as Redis's replies require (config_special_ignored.cc).
Result<std::string> parse_activedefrag(Arguments arguments, ConfigDraft& draft);
// Redis accepts more of these than it uses, and keeps those it uses.
Result<std::string> parse_dbfilename(Arguments arguments, ConfigDraft& draft);
Result<std::string> parse_hz(Arguments arguments, ConfigDraft& draft);
Result<std::string> parse_backlog_size(Arguments arguments, ConfigDraft& draft);
Result<std::string> parse_hostname(Arguments arguments, ConfigDraft& draft);
Result<std::string> parse_title_template(Arguments arguments, ConfigDraft& draft);
// TLS between servers: Redis requires certificates for it, although there is no other server here.
Result<std::string> parse_peer_tls(Arguments arguments, ConfigDraft& draft);
Result<std::string> parse_oom_scores(Arguments arguments, ConfigDraft& draft);
Result<std::string> parse_shutdown_options(Arguments arguments, ConfigDraft& draft);

}  // namespace sluice::config_special
