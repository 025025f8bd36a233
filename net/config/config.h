// The server's configuration: files in redis.conf's form, command-line arguments as redis-server
// takes them, CONFIG GET, SET and REWRITE with Redis 7.0.15's texts.
//
// Threads: any. Loading happens before there are other threads. settings() hands out an immutable
// snapshot; whoever reads often keeps one and compares version(), a plain atomic. set() publishes a
// new snapshot and then calls the change callbacks, one set() at a time; a callback may call
// settings(), get() and version(), not set().
//
// Expected failures are values: ConfigError while loading, error texts from set() and rewrite().
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/mutex.h"
#include "net/config/config_table.h"
#include "net/config/settings.h"

namespace sluice {

struct ConfigError {
  std::string file;       // Empty: the command line.
  int line = 0;           // 0: the file as a whole.
  std::string directive;  // The line as it is written.
  std::string message;
  std::string expected;  // What would have been right; may be empty.

  // "sluice.conf:3: 'port abc': argument couldn't be parsed into an integer; expected a number ..."
  std::string text() const;
};

class Config {
 public:
  using Loaded = std::optional<ConfigError>;  // Nothing = good.
  using ChangeCallback = std::function<void(const Settings& before, const Settings& after)>;
  // Empty, or why the files that `after` names cannot be used.
  using ReloadCallback = std::function<std::string(const Settings& after)>;
  using Pairs = std::vector<std::pair<std::string, std::string>>;

  // All directives at their defaults.
  Config();
  Config(const Config&) = delete;
  Config& operator=(const Config&) = delete;

  // Loads a file on top of what is there. `include` is relative to the working directory, as in
  // Redis.
  Loaded load_file(const std::string& path);
  // The same from memory; `name` is what errors call it.
  Loaded load_text(Bytes text, const std::string& name);
  // [conf] [-] [--directive value ...], without the program's name; `-` reads standard input. The
  // file comes first, then standard input, then the options.
  Loaded apply_arguments(const std::vector<std::string>& arguments);
  Loaded apply_arguments(int argc, const char* const* argv);

  // What -h, --help, -v or --version as the only argument ask for; else nothing.
  static std::optional<std::string> information(int argc, const char* const* argv);
  static std::string usage();
  static std::string version();

  // Of loading; among them one that names all ignored directives.
  std::vector<std::string> warnings() const;
  // The absolute path of the main file; empty if there is none.
  std::string file() const;

  std::shared_ptr<const Settings> settings() const;
  // Grows with each successful set() and load.
  uint64_t version_number() const { return version_.load(std::memory_order_acquire); }

  // CONFIG GET: names and values, in the table's order for each pattern, no name twice.
  Pairs get(const std::vector<std::string>& patterns) const;

  // CONFIG SET: all pairs or none. Returns the whole error ("ERR CONFIG SET failed ..."), or "".
  std::string set(const Pairs& pairs);
  // The same for one parameter, whose new value `change` makes of the present one: nobody else sets
  // anything in between. REQUIRES: there is such a parameter.
  std::string update(const std::string& name,
                     const std::function<std::string(const std::string& now)>& change);

  // CONFIG REWRITE: brings the main file up to date, its comments and order kept. `user_lines`
  // replaces its user lines ("user alice on ..."); nothing keeps them. Returns the whole error, or
  // "".
  std::string rewrite(const std::optional<std::vector<std::string>>& user_lines);
  // The same for the lines of this parameter alone.
  std::string keep(const std::string& name);

  // Called after each successful set(); cannot be taken back.
  void on_change(ChangeCallback callback);
  // Called by set() when one of its directives comes with files (Directive::reload), before
  // anything is published: it may refuse. The last callback given counts.
  void on_reload(ReloadCallback callback);
  // The same for a directive that the system may not allow (Directive::limited); comes first.
  void on_limit(ReloadCallback callback);
  // The same for a directive by which the server listens elsewhere (Directive::listens); comes
  // last.
  void on_listen(ReloadCallback callback);
  // Before anything runs by them: values that the system allows take the place of those that were
  // loaded. REQUIRES: they are good.
  void lower(const Pairs& pairs);

 private:
  struct Source;

  Loaded load_stream(std::istream& stream, const std::string& name, int depth, ConfigDraft& draft);
  Loaded load_path(const std::string& path, int depth, ConfigDraft& draft);
  Loaded load_line(const std::string& line, const Source& source, ConfigDraft& draft);
  Loaded include(const std::string& pattern, const Source& source, ConfigDraft& draft);
  Loaded load(const std::function<Loaded(ConfigDraft&)>& fill);
  static std::string check_together(const ConfigDraft& draft);
  static std::string change(const Pairs& pairs, ConfigDraft& draft);
  std::string ask(const Pairs& pairs, bool Directive::*flag, const ReloadCallback& callback,
                  const Settings& after) REQUIRES(set_mutex_);
  void publish(ConfigDraft draft) REQUIRES(mutex_);
  std::string set_now(const Pairs& pairs) REQUIRES(set_mutex_);
  std::string rewrite_file(const std::optional<std::vector<std::string>>& user_lines,
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
  std::atomic<uint64_t> version_{0};
};

}  // namespace sluice
