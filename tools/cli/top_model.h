// TopModel: what sluice top shows and what its keys do, without a terminal and without a server.
//
// It says what to ask the server, takes the answers, and turns keys into steps. A selection is a
// name and not a line, so that it stays where it is while the lines move. Used by one thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "net/resp/resp_value.h"
#include "tools/cli/arguments.h"
#include "tools/cli/keys.h"
#include "tools/cli/queue_view.h"

namespace sluice::cli {

enum class TopView : uint8_t { kQueues, kQueue, kJob };
// The lists of a view; the last four are of one queue.
enum class TopList : uint8_t { kQueues, kWorkers, kActive, kNext, kFailed };
inline constexpr size_t kTopLists = 5;

// A command to run for a key.
struct TopCommand {
  Words words;
  std::string done;       // what to say afterwards
  bool in_pages = false;  // it takes a cursor and returns one with a count, which is said first
};

struct TopStep {
  bool quits = false;
  bool asks = false;  // what is shown now has not been read
  std::optional<TopCommand> command = {};
};

struct TopQuestion {
  Words words;
  std::function<void(RespValue)> take;
};

// What the view shows besides lists.
struct TopState {
  TopList focus = TopList::kQueues;
  bool shows_help = false;
  std::vector<std::string> queues;  // sorted and filtered
  size_t sort = 0;                  // a column of queue_columns()
  bool is_descending = true;
  std::string filter;      // of the names of queues
  std::string job_filter;  // of workers and jobs
  std::string& filter_in_focus() { return focus == TopList::kQueues ? filter : job_filter; }
  bool edits_filter = false;
  std::string job_id;  // of the view of a job
  RespValue job;       // null: not known
  std::string log;     // its end
  size_t scrolled = 0;
  std::string question;  // to be answered with y
  std::string said;
  bool is_said_bad = false;
  int64_t now_ms = 0;  // the server's clock at the last reading; 0: never
};

class TopModel {
 public:
  // `named`: the queues to show; empty: all. One alone is shown in full.
  explicit TopModel(std::vector<std::string> named);
  // The questions refer to the object.
  TopModel(const TopModel&) = delete;
  TopModel& operator=(const TopModel&) = delete;

  // Whether set_names() shall be told the queues that there are.
  bool is_searching() const { return is_searching_; }
  void set_names(std::vector<std::string> names);
  // The commands whose replies the screen of so many rows needs. Queues out of view are asked for
  // in turn, so that many of them cost the server little.
  std::vector<TopQuestion> questions(size_t rows);
  // Call it when their answers have been taken.
  void arrange();

  TopStep press(const KeyPress& key);
  // What is said until the next key.
  void say(std::string text, bool is_bad);

  const TopState& state() const { return state_; }
  TopView view() const { return views_.back(); }
  size_t known_queues() const { return stats_.size(); }
  const RespValue* stats_of(const std::string& queue) const;
  // The queue whose lists are shown, if there is one.
  bool has_queue() const { return places_[0].name.has_value(); }
  std::string queue() const;
  // Whether its lists have been read.
  bool has_lists() const { return details_of_ == places_[0].name; }
  const RespValue& lines(TopList list) const { return lines_[static_cast<size_t>(list)]; }
  size_t count(TopList list) const;
  size_t selected(TopList list) const { return places_[static_cast<size_t>(list)].index; }

 private:
  struct Place {
    std::optional<std::string> name;  // the empty one is a name, too
    size_t index = 0;
  };

  std::optional<std::string> name_at(TopList list, size_t index) const;
  Place& place(TopList list) { return places_[static_cast<size_t>(list)]; }
  void ask_queues(size_t rows, std::vector<TopQuestion>& questions);
  void ask_details(const std::string& queue, size_t rows, std::vector<TopQuestion>& questions);
  void ask_job(const std::string& queue, std::vector<TopQuestion>& questions);
  void take_list(TopList list, RespValue value);
  void forget_details();
  void sort();

  TopStep press_in_filter(const KeyPress& key);
  TopStep answer_question(const KeyPress& key);
  TopStep move(int64_t lines);
  TopStep move_focus(int64_t lists);
  TopStep open();
  TopStep back();
  TopStep press_letter(const std::string& letter);
  void sort_next(bool is_forward);
  TopStep pause();
  TopStep retry();
  TopStep retry_all();
  TopStep cancel();
  std::optional<std::string> selected_job() const;
  TopStep confirm(std::string question, TopCommand command);

  bool is_searching_;
  TopState state_;
  std::vector<TopView> views_;  // the one that is shown, behind those that it was opened from
  std::map<std::string, RespValue> stats_;  // of all known queues; null: not read yet
  bool was_read_ = false;
  std::string turn_;  // the last queue out of view that was asked for
  std::array<Place, kTopLists> places_;

  std::optional<std::string> details_of_;  // the queue of what follows, once that has been read
  std::array<RespValue, kTopLists> lines_;
  int64_t log_next_ = 0;

  TopCommand asked_command_;
};

}  // namespace sluice::cli
