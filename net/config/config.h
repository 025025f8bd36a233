// The server's configuration: files in redis.conf's format, command-line arguments like
// redis-server's, and CONFIG GET, SET and REWRITE with the texts of Redis 7.0.15.
//
// Threads: any. Loading happens before there are other threads. settings() returns an immutable
// snapshot. set() publishes a new one and then calls the change callbacks, one set() at a time. A
// callback may call settings() and get(), but not set().
//
// Expected failures are values: ConfigError while loading, refusal() from set() and rewrite().
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/mutex.h"
#include "engine/base/status.h"
#include "net/config/config_table.h"
#include "net/config/settings.h"

namespace sluice {

struct ConfigError {
  std::string file;       // Empty: the command line.
  int line = 0;           // 0: the file as a whole.
  std::string directive;  // The line as written.
  std::string message;
  std::string expected;  // What would be valid; may be empty.

  // "sluice.conf:3: 'port abc': argument couldn't be parsed into an integer; expected a number ..."
  std::string text() const;
};

class Config {
 public:
  using Loaded = std::optional<ConfigError>;  // Nothing on success.
  using ChangeCallback = std::function<void(const Settings& before, const Settings& after)>;
  // Returns why the files named by `after` cannot be used, if they cannot.
  using ReloadCallback = std::function<Status(const Settings& after)>;
  using Pairs = std::vector<std::pair<std::string, std::string>>;

  // All directives at their defaults.
  Config();
  Config(const Config&) = delete;
  Config& operator=(const Config&) = delete;

  // Loads a file's text on top of the current values; errors use `name` as the file's name.
  Loaded load_text(Bytes text, const std::string& name);
  // [conf] [-] [--directive value ...], without the program's name; `-` reads standard input. The
  // file comes first, then standard input, then the options. As in Redis, `include` is relative to
  // the working directory.
  Loaded apply_arguments(const std::vector<std::string>& arguments);
  Loaded apply_arguments(int argc, const char* const* argv);

  // The text that -h, --help, -v or --version as the only argument asks for; else nothing.
  static std::optional<std::string> information(int argc, const char* const* argv);
  static std::string usage();
  static std::string version();

  // Warnings from loading, among them one that lists all ignored directives.
  std::vector<std::string> warnings() const;
  // The absolute path of the main file; empty if no file was loaded.
  std::string file() const;

  std::shared_ptr<const Settings> settings() const;

  // CONFIG GET: names and values, in the table's order for each pattern, no name twice.
  Pairs get(const std::vector<std::string>& patterns) const;
  // The difference_mark() of the values that the nodes of a group should share. Defaults are left
  // out, so that a build with more directives agrees with an older one.
  std::string mark() const;

  // CONFIG SET: all pairs or none.
  Status set(const Pairs& pairs);
  // The same for one parameter, whose new value `change` computes from the present one, without a
  // change by others in between. REQUIRES: the parameter exists.
  Status update(const std::string& name,
                const std::function<std::string(const std::string& now)>& change);

  // CONFIG REWRITE: updates the main file, keeping its comments and order. `user_lines` replaces
  // its user lines ("user alice on ..."); nothing leaves them as they are.
  Status rewrite(const std::optional<std::vector<std::string>>& user_lines);
  // The same for the lines of this parameter only.
  Status keep(const std::string& name);

  // Called after each successful set(); cannot be removed.
  void on_change(ChangeCallback callback);
  // Called by set() before anything is published if one of its directives involves files
  // (Directive::reload). It may reject the change. Only the last callback set is used.
  void on_reload(ReloadCallback callback);
  // The same for a directive that the system may not allow (Directive::limited); called first.
  void on_limit(ReloadCallback callback);
  // The same for a directive that changes where the server listens (Directive::listens); called
  // last.
  void on_listen(ReloadCallback callback);
  // Replaces loaded values by values that the system allows, before the server uses them. REQUIRES:
  // the values are valid.
  void lower(const Pairs& pairs);

 private:
  struct Source;

  Loaded load_stream(std::istream& stream, const std::string& name, int depth, ConfigDraft& draft);
  Loaded load_path(const std::string& path, int depth, ConfigDraft& draft);
  Loaded load_line(const std::string& line, const Source& source, ConfigDraft& draft);
  Loaded include(const std::string& pattern, const Source& source, ConfigDraft& draft);
  Loaded load(const std::string& name, const std::function<Loaded(ConfigDraft&)>& fill);
  // kInvalid for values that are good alone, but not together.
  static Status check_together(const Settings& settings);
  static Status change(const Pairs& pairs, ConfigDraft& draft);
  Status ask(const Pairs& pairs, bool Directive::*flag, const ReloadCallback& callback,
             const Settings& after) REQUIRES(set_mutex_);
  void publish(ConfigDraft draft) REQUIRES(mutex_);
  Status set_now(const Pairs& pairs) REQUIRES(set_mutex_);
  Status rewrite_file(const std::optional<std::vector<std::string>>& user_lines,
                      const Directive* only);

  // Held by set() from its first check to its last callback. Before mutex_.
  Mutex set_mutex_;
  ReloadCallback reload_ GUARDED_BY(set_mutex_);
  ReloadCallback limit_ GUARDED_BY(set_mutex_);
  ReloadCallback listen_ GUARDED_BY(set_mutex_);
  mutable Mutex mutex_;
  ConfigDraft current_ GUARDED_BY(mutex_);
  std::shared_ptr<const Settings> settings_ GUARDED_BY(mutex_);
  std::string file_ GUARDED_BY(mutex_);
  std::vector<ChangeCallback> callbacks_ GUARDED_BY(mutex_);
};

}  // namespace sluice
