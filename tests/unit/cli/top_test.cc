// TopModel and its lines, with the answers of a server that a test makes up.
#include <map>
#include <string>
#include <vector>

#include "tools/cli/text.h"
#include "tools/cli/top_model.h"
#include "tools/cli/top_view.h"

#include "tests/support/made_replies.h"
#include "tests/support/test.h"

namespace {

using sluice::RespValue;
using sluice::cli::Key;
using sluice::cli::KeyPress;
using sluice::cli::Screen;
using sluice::cli::share_rows;
using sluice::cli::TopCommand;
using sluice::cli::TopList;
using sluice::cli::TopModel;
using sluice::cli::TopStep;
using sluice::cli::TopView;
using sluice::cli::Words;
using sluice::test::list;
using sluice::test::number;
using sluice::test::text;
using Names = std::vector<std::string>;

// A server of queues with pending jobs, whose other lists are given.
struct Server {
  std::map<std::string, int64_t> pending;
  std::map<std::string, Names> ids;  // of jobs by state; "next" for those by dispatch
  Names workers;
  std::map<std::string, std::string> paused;
  std::string log;
  int asked = 0;
  std::map<std::string, int> stats_asked;

  RespValue jobs(const std::string& state) const {
    std::vector<RespValue> all;
    const auto found = ids.find(state);
    for (const std::string& id : found == ids.end() ? Names() : found->second) {
      all.push_back(list({text("id"), text(id), text("state"), text(state)}));
    }
    return list({text("0"), list(all)});
  }

  RespValue answer(const Words& words) {
    ++asked;
    if (words[0] == "TIME") return list({text("1700000000"), text("5000")});
    if (words[0] == "Q.CONFIG") {
      const auto found = paused.find(words[1]);
      return list({text("paused"), text(found == paused.end() ? "none" : found->second)});
    }
    if (words[0] == "Q.GET")
      return list({text("id"), text(words[2]), text("state"), text("active")});
    if (words[0] == "Q.LOG") {
      return list({number(0), text(log), number(static_cast<int64_t>(log.size())), number(0)});
    }
    if (words[0] == "Q.LIST") return jobs(words[2] == "BY" ? "next" : words[4]);
    if (words[2] == "BY") {
      std::vector<RespValue> lines;
      for (const std::string& worker : workers) {
        lines.push_back(text(worker));
        lines.push_back(list({text("active"), number(1), text("quiet"), number(0)}));
      }
      return list({text("0"), list(lines)});
    }
    ++stats_asked[words[1]];
    return list({text("pending"), number(pending[words[1]])});
  }
};

struct Top {
  Server server;
  TopModel model;

  explicit Top(std::map<std::string, int64_t> pending, const Names& named = {}) : model(named) {
    sluice::cli::use_utf8();
    server.pending = std::move(pending);
    if (named.empty()) find();
    read();
  }
  void find() {
    Names names;
    for (const auto& [name, count] : server.pending) names.push_back(name);
    model.set_names(names);
  }
  void read(size_t rows = 24) {
    for (const auto& question : model.questions(rows)) question.take(server.answer(question.words));
    model.arrange();
    // What follows the order of a first reading.
    for (const auto& question : model.questions(rows)) question.take(server.answer(question.words));
    model.arrange();
  }
  TopStep press(Key key) { return model.press({key}); }
  // Each character as a key; reads in between as a program would.
  TopStep type(const std::string& keys) {
    TopStep step;
    for (const char key : keys) step = model.press({Key::kText, std::string(1, key)});
    return step;
  }
  std::vector<std::string> lines(size_t width, size_t height) const {
    Screen screen;
    screen.width = width;
    screen.height = height;
    screen.terminal = true;
    return sluice::cli::top_lines(model, screen, "host:1");
  }
  bool shows(const std::string& part, size_t width = 80, size_t height = 24) const {
    for (const std::string& line : lines(width, height)) {
      if (line.find(part) != std::string::npos) return true;
    }
    return false;
  }
};

TEST_CASE("rows are shared: none gets more than it wants or less than its part") {
  const auto shared = [](size_t rows, const std::vector<size_t>& wanted) {
    return share_rows(rows, wanted);
  };
  CHECK(shared(10, {2, 20, 20}) == std::vector<size_t>{2, 4, 4});
  CHECK(shared(100, {2, 20, 20}) == std::vector<size_t>{2, 20, 20});
  CHECK(shared(0, {2, 20}) == std::vector<size_t>{0, 0});
  CHECK(shared(7, {9, 9, 9}) == std::vector<size_t>{3, 2, 2});
  CHECK(shared(3, {}).empty());
}

TEST_CASE("queues are sorted by a column, equal ones by name, and inverted") {
  Top top({{"a", 1}, {"b", 5}, {"c", 5}, {"d", 0}});
  CHECK(top.model.state().queues == Names{"b", "c", "a", "d"});
  top.type("i");
  CHECK(top.model.state().queues == Names{"d", "a", "b", "c"});
  top.type("S");
  CHECK(top.model.state().queues == Names{"a", "b", "c", "d"});
  CHECK(top.shows("4 queues by QUEUE▲"));
  top.type("i");
  CHECK(top.model.state().queues == Names{"d", "c", "b", "a"});
  top.type("s");
  CHECK(top.model.state().queues == Names{"b", "c", "a", "d"});
  CHECK(top.shows("by PENDING▼"));
}

TEST_CASE("the selection is a name: it stays while lines move, and goes on where it was") {
  Top top({{"a", 1}, {"b", 5}, {"c", 3}});
  CHECK(top.model.queue() == "b");
  CHECK(top.press(Key::kDown).asks);
  CHECK(top.model.queue() == "c");
  top.server.pending["a"] = 9;
  top.read();
  CHECK(top.model.state().queues == Names{"a", "b", "c"});
  CHECK(top.model.queue() == "c");
  CHECK(top.model.selected(TopList::kQueues) == 2);
  top.server.pending.erase("c");
  top.find();
  CHECK(top.model.queue() == "b");
  top.press(Key::kHome);
  CHECK(top.model.queue() == "a");
  top.type("G");
  CHECK(top.model.queue() == "b");
  top.press(Key::kPageDown);
  CHECK(top.model.queue() == "b");
  top.type("k");
  CHECK(top.model.queue() == "a");
}

TEST_CASE("a filter shows the queues whose names contain it, whatever the case") {
  Top top({{"Mail-\u00fc", 1}, {"exec", 5}, {"email", 3}});
  top.type("/MAIL");
  CHECK(top.model.state().edits_filter);
  CHECK(top.shows("filter: MAIL_"));
  CHECK(top.model.state().queues == Names{"email", "Mail-\u00fc"});
  CHECK(top.shows("3 queues, 2 shown"));
  top.model.press({Key::kText, "-"});
  top.model.press({Key::kText, "\u00fc"});
  CHECK(top.model.state().queues == Names{"Mail-\u00fc"});
  top.press(Key::kErase);
  CHECK(top.model.state().filter == "MAIL-");
  top.press(Key::kEnter);
  CHECK_FALSE(top.model.state().edits_filter);
  CHECK(top.shows("/: MAIL-"));
  top.press(Key::kEscape);
  CHECK(top.model.state().queues.size() == 3);
  top.type("/q");
  CHECK(top.model.state().queues.empty());
  CHECK(top.shows("no queues"));
  top.press(Key::kEscape);
  CHECK(top.model.state().queues.size() == 3);
}

TEST_CASE("in another list the filter is of workers and jobs, by any of their texts") {
  Top top({{"exec", 5}, {"mail", 1}});
  top.server.workers = {"host-1", "Other"};
  top.server.ids = {{"active", {"a1", "other-1"}}, {"next", {"n1"}}, {"failed", {"f1", "f2"}}};
  top.read();
  top.press(Key::kTab);
  CHECK(top.type("/OTHER").asks);
  CHECK(top.model.state().queues.size() == 2);
  top.read();
  CHECK(top.model.count(TopList::kWorkers) == 1);
  CHECK(top.model.count(TopList::kActive) == 1);
  CHECK(top.model.count(TopList::kFailed) == 0);
  CHECK(top.shows("no failed jobs with OTHER"));
  CHECK(top.shows("filter: OTHER_"));
  top.press(Key::kEnter);
  top.press(Key::kTab);
  CHECK(top.press(Key::kEnter).asks);
  CHECK(top.model.state().job_id == "other-1");
  top.press(Key::kEscape);
  CHECK(top.shows("/: OTHER"));
  // First all lines, then the view before.
  top.press(Key::kEscape);
  top.read();
  CHECK(top.model.count(TopList::kActive) == 2);
  // A state is a text, too.
  top.type("/failed");
  top.read();
  CHECK(top.model.count(TopList::kFailed) == 2);
  CHECK(top.model.count(TopList::kActive) == 0);
}

TEST_CASE("Enter opens a queue and then a job, Esc goes back") {
  Top top({{"exec", 5}, {"mail", 1}});
  top.server.ids = {{"active", {"a1", "a2"}}, {"next", {"n1"}}, {"failed", {"f1"}}};
  top.server.log = "one\ntwo\x1b[31m\n";
  top.read();
  CHECK(top.press(Key::kEnter).asks);
  CHECK(top.model.view() == TopView::kQueue);
  CHECK(top.model.state().focus == TopList::kActive);
  top.press(Key::kDown);
  CHECK(top.press(Key::kEnter).asks);
  CHECK(top.model.view() == TopView::kJob);
  CHECK(top.model.state().job_id == "a2");
  CHECK(top.shows("not known yet"));
  top.read();
  CHECK(top.shows("exec  a2"));
  CHECK(top.shows("two\\x1b[31m"));
  top.press(Key::kEscape);
  CHECK(top.model.view() == TopView::kQueue);
  CHECK(top.model.selected(TopList::kActive) == 1);
  top.press(Key::kEscape);
  CHECK(top.model.view() == TopView::kQueues);
  CHECK(top.model.state().focus == TopList::kQueues);
  CHECK(top.type("q").quits);
}

TEST_CASE("a queue that is named alone is shown in full, and stays when it has gone") {
  Top top({{"exec", 5}}, {"exec"});
  CHECK(top.model.view() == TopView::kQueue);
  CHECK_FALSE(top.model.is_searching());
  top.model.set_names({});
  CHECK(top.model.queue() == "exec");
}

TEST_CASE("Tab goes through the lists of the view") {
  Top top({{"exec", 5}});
  for (const TopList wanted :
       {TopList::kWorkers, TopList::kActive, TopList::kNext, TopList::kFailed, TopList::kQueues}) {
    top.press(Key::kTab);
    CHECK(top.model.state().focus == wanted);
  }
  top.press(Key::kBackTab);
  CHECK(top.model.state().focus == TopList::kFailed);
  top.press(Key::kTab);
  top.press(Key::kEnter);
  for (int i = 0; i < 3; ++i) top.press(Key::kTab);
  CHECK(top.model.state().focus == TopList::kWorkers);
}

TEST_CASE("p pauses and resumes a queue, and makes a worker quiet") {
  Top top({{"exec", 5}});
  top.server.workers = {"w*1"};
  top.read();
  CHECK(top.type("p").command->words == Words{"Q.CONFIG", "exec", "SET", "paused", "out"});
  top.server.paused["exec"] = "all";
  top.read();
  CHECK(top.type("p").command->words == Words{"Q.CONFIG", "exec", "SET", "paused", "none"});
  top.press(Key::kTab);
  CHECK(top.type("p").command->words ==
        Words{"Q.CONFIG", "exec", "WORKER", "w\\*1", "SET", "quiet", "on"});
}

TEST_CASE("a pause is seen in the list of queues and in one that is shown in full") {
  Top top({{"a", 5}, {"b", 1}});
  CHECK_FALSE(top.shows("PAUSED"));
  top.server.paused["b"] = "out";
  top.read();
  std::vector<std::string> lines = top.lines(80, 24);
  CHECK(lines[1].ends_with("  PAUSED"));
  CHECK_FALSE(lines[2].ends_with("out"));
  CHECK(lines[3].ends_with("  out"));
  top.press(Key::kDown);
  top.press(Key::kEnter);
  CHECK(top.lines(80, 24)[2].ends_with("  out"));
  top.server.paused["b"] = "none";
  top.read();
  CHECK_FALSE(top.shows("PAUSED"));
}

TEST_CASE("queues are sorted by their pauses, those out of view too") {
  std::map<std::string, int64_t> pending;
  for (int i = 1000; i < 1300; ++i) pending["q" + std::to_string(i)] = i;
  Top top(pending);
  top.server.paused["q1001"] = "in";
  top.type("SS");
  CHECK(top.shows("by PAUSED▼"));
  for (int i = 0; i < 6; ++i) top.read();
  CHECK(top.model.state().queues[0] == "q1001");
}

TEST_CASE("p waits until it is known whether the queue is paused") {
  Top top({{"exec", 5}, {"mail", 1}});
  top.press(Key::kDown);
  const TopStep step = top.type("p");
  CHECK_FALSE(step.command.has_value());
  CHECK(step.asks);
  top.read();
  CHECK(top.type("p").command->words[1] == "mail");
}

TEST_CASE("what cannot be undone is asked first") {
  Top top({{"exec", 5}});
  top.server.ids = {{"active", {"a1"}}, {"failed", {"f1"}}};
  top.read();
  CHECK_FALSE(top.type("c").command.has_value());
  CHECK(top.model.state().said == "cancel: select a job first");
  CHECK_FALSE(top.type("r").command.has_value());
  top.press(Key::kTab);
  top.press(Key::kTab);
  CHECK_FALSE(top.type("c").command.has_value());
  CHECK(top.shows("cancel a1 of exec? [y/N]"));
  CHECK_FALSE(top.press(Key::kEnter).command.has_value());
  CHECK(top.model.state().said == "nothing was changed");
  top.type("c");
  CHECK(top.type("y").command->words == Words{"Q.CANCEL", "exec", "a1"});
  CHECK(top.model.state().question.empty());
  top.press(Key::kBackTab);
  top.press(Key::kBackTab);
  top.press(Key::kBackTab);
  CHECK(top.type("r").command->words == Words{"Q.RETRY", "exec", "f1"});
  CHECK_FALSE(top.type("Rq").command.has_value());
  top.type("R");
  const TopStep all = top.type("y");
  CHECK(all.command->in_pages);
  CHECK(all.command->words == Words{"Q.RETRY", "exec", "WHERE", "STATE", "failed"});
}

TEST_CASE("help is shown until the next key") {
  Top top({{"exec", 5}});
  top.type("?");
  CHECK(top.shows("Shift-Tab"));
  top.press(Key::kDown);
  CHECK_FALSE(top.shows("Shift-Tab"));
  top.type("?");
  CHECK(top.type("q").quits);
}

TEST_CASE("the last line names as many keys as there is room for, each whole") {
  Top top({{"exec", 5}});
  const std::string last = top.lines(80, 24).back();
  CHECK(last.starts_with("q: quit  ?: help  Enter: open  Tab: next list  /: filter  p: pause"));
  CHECK(last.find("…") == std::string::npos);
  CHECK(top.lines(120, 40).back().ends_with("c: cancel  s: sort"));
  CHECK(top.lines(20, 5).back() == "q: quit  ?: help");
  top.type("/" + std::string(100, 'x'));
  top.press(Key::kEnter);
  CHECK(top.lines(80, 24).back().find("/: " + std::string(23, 'x') + "…") != std::string::npos);
}

TEST_CASE("of many queues those in view are asked for each time, the others in turn") {
  std::map<std::string, int64_t> pending;
  for (int i = 1000; i < 2000; ++i) pending["q" + std::to_string(i)] = i;
  Top top(pending);
  CHECK(top.server.stats_asked.size() == 1000);
  top.server.stats_asked.clear();
  for (int i = 0; i < 20; ++i) {
    top.server.asked = 0;
    top.read(24);
    CHECK(top.server.asked <= 2 * (1 + 2 * 24 + 50 + 5));
  }
  CHECK(top.server.stats_asked["q1999"] == 40);
  CHECK(top.server.stats_asked.size() == 1000);
}

TEST_CASE("the screen is full and no line is too long, at every size") {
  std::map<std::string, int64_t> pending;
  for (int i = 0; i < 40; ++i) pending["queue-\u4e2d\u4e2d-" + std::to_string(i)] = i;
  pending["bad\x1b[2J\n\u202e"] = 100;
  Top top(pending);
  top.server.workers = {"w1", "w2"};
  Names many;
  for (int i = 0; i < 300; ++i) many.push_back("job-\u4e2d-" + std::to_string(i));
  top.server.ids = {{"active", many}, {"next", many}, {"failed", many}};
  top.read(60);
  for (const Key key : {Key::kOther, Key::kEnter, Key::kEnter}) {
    top.press(key);
    top.read(60);
    for (const auto& [width, height] : {std::pair<size_t, size_t>{80, 24},
                                        {120, 40},
                                        {200, 60},
                                        {40, 10},
                                        {20, 5},
                                        {3, 3},
                                        {1, 1}}) {
      const std::vector<std::string> lines = top.lines(width, height);
      CHECK(lines.size() <= height);
      if (height > 2 && width > 2) CHECK(lines.size() == height);
      for (const std::string& line : lines) {
        CHECK(sluice::cli::text_width(line) <= width);
        CHECK(line.find('\x1b') == std::string::npos);
      }
    }
  }
}

TEST_CASE("the selected line is in view and marked, without colours too") {
  std::map<std::string, int64_t> pending;
  for (int i = 10; i < 99; ++i) pending["q" + std::to_string(i)] = i;
  Top top(pending);
  for (int i = 0; i < 50; ++i) {
    CHECK(top.shows("> " + top.model.queue()));
    top.press(Key::kDown);
  }
}

}  // namespace
