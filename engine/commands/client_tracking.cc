// CLIENT TRACKING and related commands; engine/clients/tracking.h records which client has read
// which keys.
#include "engine/clients/tracking.h"

#include "engine/commands/connection.h"
#include "engine/execution/call.h"
#include "engine/execution/engine.h"

namespace sluice {

namespace {

struct TrackingRequest {
  TrackingOptions options;
  std::vector<std::string> prefixes;
};

bool parse_redirect(const Call& call, size_t argument, TrackingOptions& options) {
  if (options.redirect != 0) {
    return fail(call, "ERR A client can only redirect to a single other client");
  }
  int64_t id = 0;
  if (!call.integer(argument, id)) return false;
  options.redirect_port =
      id > 0 ? call.engine.server().client_port(static_cast<uint64_t>(id)) : nullptr;
  if (options.redirect_port == nullptr) {
    return fail(call, "ERR The client ID you want redirect to does not exist");
  }
  options.redirect = static_cast<uint64_t>(id);
  return true;
}

bool parse(const Call& call, TrackingRequest& request) {
  for (size_t at = 3; at < call.args.size(); ++at) {
    const bool more = at + 1 < call.args.size();
    if (more && call.option(at, "REDIRECT")) {
      if (!parse_redirect(call, ++at, request.options)) return false;
    } else if (call.option(at, "BCAST")) {
      request.options.broadcast = true;
    } else if (call.option(at, "OPTIN")) {
      request.options.opt_in = true;
    } else if (call.option(at, "OPTOUT")) {
      request.options.opt_out = true;
    } else if (call.option(at, "NOLOOP")) {
      request.options.no_loop = true;
    } else if (more && call.option(at, "PREFIX")) {
      request.prefixes.emplace_back(call.args[++at]);
    } else {
      return fail(call, errors::kSyntax);
    }
  }
  return true;
}

bool overlap(Bytes a, Bytes b) { return a.starts_with(b) || b.starts_with(a); }

bool check_prefixes(const Call& call, const TrackedClient* tracked,
                    const std::vector<std::string>& prefixes) {
  const auto refuse = [&](const std::string& prefix, const char* what, const std::string& other) {
    return fail(call, "ERR Prefix '" + prefix + "' overlaps with " + what + " prefix '" + other +
                          "'. Prefixes for a single client must not overlap.");
  };
  for (size_t i = 0; i < prefixes.size(); ++i) {
    if (tracked != nullptr) {
      for (const std::string& other : tracked->prefixes) {
        if (overlap(prefixes[i], other)) return refuse(prefixes[i], "an existing", other);
      }
    }
    for (size_t j = i + 1; j < prefixes.size(); ++j) {
      if (overlap(prefixes[i], prefixes[j])) {
        return refuse(prefixes[i], "another provided", prefixes[j]);
      }
    }
  }
  return true;
}

// Whether the options are compatible with each other and with the present mode.
bool check(const Call& call, const TrackingRequest& request) {
  const TrackingOptions& wanted = request.options;
  const TrackedClient* tracked = call.client.tracking.get();
  if (!wanted.broadcast && !request.prefixes.empty()) {
    return fail(call, "ERR PREFIX option requires BCAST mode to be enabled");
  }
  if (tracked != nullptr && tracked->options.broadcast != wanted.broadcast) {
    return fail(call,
                "ERR You can't switch BCAST mode on/off before disabling tracking for this client, "
                "and then re-enabling it with a different mode.");
  }
  if (wanted.broadcast && (wanted.opt_in || wanted.opt_out)) {
    return fail(call, "ERR OPTIN and OPTOUT are not compatible with BCAST");
  }
  if (wanted.opt_in && wanted.opt_out) {
    return fail(call, "ERR You can't specify both OPTIN mode and OPTOUT mode");
  }
  if (tracked != nullptr && ((wanted.opt_in && tracked->options.opt_out) ||
                             (wanted.opt_out && tracked->options.opt_in))) {
    return fail(call,
                "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, "
                "and then re-enabling it with a different mode.");
  }
  return !wanted.broadcast || check_prefixes(call, tracked, request.prefixes);
}

}  // namespace

void client_tracking_command(Call& call) {
  TrackingRequest request;
  if (!parse(call, request)) return;
  if (call.option(2, "ON")) {
    if (!check(call, request)) return;
    call.engine.tracking().enable(call.client, request.options, request.prefixes);
  } else if (call.option(2, "OFF")) {
    call.engine.tracking().disable(call.client);
  } else {
    return call.reply.error(errors::kSyntax);
  }
  call.engine.observe_tracking();
  call.reply.ok();
}

void client_caching_command(Call& call) {
  TrackedClient* tracked = call.client.tracking.get();
  if (tracked == nullptr) {
    return call.reply.error(
        "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or "
        "OPTOUT mode enabled");
  }
  if (call.option(2, "YES")) {
    if (!tracked->options.opt_in) {
      return call.reply.error(
          "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.");
    }
  } else if (call.option(2, "NO")) {
    if (!tracked->options.opt_out) {
      return call.reply.error(
          "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.");
    }
  } else {
    return call.reply.error(errors::kSyntax);
  }
  tracked->caching = true;
  call.reply.ok();
}

void client_getredir_command(Call& call) {
  const TrackedClient* tracked = call.client.tracking.get();
  call.reply.integer(tracked == nullptr ? -1 : static_cast<int64_t>(tracked->options.redirect));
}

void client_trackinginfo_command(Call& call) {
  const TrackedClient* tracked = call.client.tracking.get();
  std::vector<Bytes> flags;
  if (tracked == nullptr) {
    flags.emplace_back("off");
  } else {
    const TrackingOptions& options = tracked->options;
    flags.emplace_back("on");
    if (options.broadcast) flags.emplace_back("bcast");
    if (options.opt_in) flags.emplace_back("optin");
    if (options.opt_in && tracked->caching) flags.emplace_back("caching-yes");
    if (options.opt_out) flags.emplace_back("optout");
    if (options.opt_out && tracked->caching) flags.emplace_back("caching-no");
    if (options.no_loop) flags.emplace_back("noloop");
    if (tracked->broken.load(std::memory_order_relaxed)) flags.emplace_back("broken_redirect");
  }
  call.reply.map(3);
  call.reply.bulk("flags");
  call.reply.set(flags.size());
  for (const Bytes flag : flags) call.reply.bulk(flag);
  call.reply.bulk("redirect");
  client_getredir_command(call);
  call.reply.bulk("prefixes");
  call.reply.array(tracked == nullptr ? 0 : tracked->prefixes.size());
  if (tracked == nullptr) return;
  for (const std::string& prefix : tracked->prefixes) call.reply.bulk(prefix);
}

}  // namespace sluice
