#include "tools/cli/table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "engine/base/check.h"
#include "tools/cli/text.h"

namespace sluice::cli {

namespace {

constexpr size_t kGap = 2;
constexpr size_t kLeastWidth = 6;
// Numbers on the right are left out before a text becomes narrower than this.
constexpr size_t kReadableWidth = 14;

const char* code_of(Style style) {
  switch (style) {
    case Style::kTitle:
      return "\x1b[1m";
    case Style::kDim:
      return "\x1b[2m";
    case Style::kGood:
      return "\x1b[32m";
    case Style::kBusy:
      return "\x1b[36m";
    case Style::kBad:
      return "\x1b[31m";
    case Style::kChosen:
      return "\x1b[7m";
    case Style::kPlain:
      break;
  }
  return "";
}

}  // namespace

Screen Screen::of_output() {
  Screen screen;
  if (::isatty(STDOUT_FILENO) == 0) return screen;
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  screen.width = known ? size.ws_col : 80;
  screen.height = known && size.ws_row > 0 ? size.ws_row : 24;
  const char* no_color = std::getenv("NO_COLOR");
  const char* kind = std::getenv("TERM");
  screen.terminal = true;
  screen.moves = kind != nullptr && *kind != '\0' && std::string(kind) != "dumb";
  screen.colours = screen.moves && (no_color == nullptr || *no_color == '\0');
  return screen;
}

std::string styled(const std::string& text, Style style, const Screen& screen) {
  if (!screen.colours || style == Style::kPlain || text.empty()) return text;
  return code_of(style) + text + "\x1b[0m";
}

Style state_style(const std::string& state) {
  if (state == "active") return Style::kBusy;
  if (state == "completed") return Style::kGood;
  if (state == "failed" || state == "expired") return Style::kBad;
  if (state == "cancelled" || state == "delayed" || state == "blocked") return Style::kDim;
  return Style::kPlain;
}

// Makes columns narrower, and leaves numbers out, until `total` fits.
void Table::fit(size_t width, size_t total, std::vector<size_t>& widths) const {
  const auto least_of = [&](size_t i, size_t least) {
    if (!columns_[i].shrinks || widths[i] == 0) return widths[i];
    return std::min(widths[i], std::max(least, text_width(columns_[i].title)));
  };
  size_t least_total = total;
  for (size_t i = 0; i < widths.size(); ++i) least_total -= widths[i] - least_of(i, kReadableWidth);
  for (size_t i = widths.size(); i-- > 1 && least_total > width;) {
    if (!columns_[i].right || columns_[i].stays || widths[i] == 0) continue;
    least_total -= widths[i] + kGap;
    total -= widths[i] + kGap;
    widths[i] = 0;
  }
  // Repeatedly narrow the widest column that may be cut.
  for (; total > width; --total) {
    size_t widest = widths.size();
    for (size_t i = 0; i < widths.size(); ++i) {
      if (widths[i] <= least_of(i, kLeastWidth)) continue;
      if (widest == widths.size() || widths[i] > widths[widest]) widest = i;
    }
    if (widest == widths.size()) break;
    --widths[widest];
  }
}

std::vector<size_t> Table::widths(const Screen& screen) const {
  std::vector<size_t> widths(columns_.size(), 0);
  for (const auto& row : rows_) {
    CHECK(row.size() == columns_.size());
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], text_width(row[i].text));
    }
  }
  size_t total = 0;
  for (size_t i = 0; i < widths.size(); ++i) {
    if (widths[i] == 0 && !columns_[i].stays && !rows_.empty() && screen.terminal) continue;
    widths[i] = std::max(widths[i], text_width(columns_[i].title));
    total += widths[i] + (total == 0 ? 0 : kGap);
  }
  if (screen.width != 0) fit(screen.width, total, widths);
  return widths;
}

std::string Table::line(const std::vector<Cell>& cells, const std::vector<size_t>& widths,
                        const Screen& screen) const {
  std::string out;
  if (!screen.terminal) {
    for (size_t i = 0; i < cells.size(); ++i) out += (i == 0 ? "" : "\t") + cells[i].text;
    return out;
  }
  size_t used = 0;  // columns so far, including the gap that follows
  size_t owed = 0;  // blanks before the next text
  for (size_t i = 0; i < cells.size(); ++i) {
    if (widths[i] == 0) continue;
    size_t room = widths[i];
    if (screen.width != 0) room = std::min(room, screen.width > used ? screen.width - used : 0);
    // A number is shown whole or not at all.
    if (room == 0 || (room < widths[i] && columns_[i].right)) break;
    const std::string text = fit_text(cells[i].text, room);
    const size_t blanks = room - text_width(text);
    if (columns_[i].right) owed += blanks;
    if (!text.empty()) {
      out.append(owed, ' ');
      out += styled(text, cells[i].style, screen);
      owed = 0;
    }
    owed += (columns_[i].right ? 0 : blanks) + kGap;
    used += widths[i] + kGap;
  }
  return out;
}

std::vector<std::string> Table::lines(const Screen& screen) const {
  const std::vector<size_t> chosen = widths(screen);
  std::vector<Cell> titles;
  for (const Column& column : columns_) titles.emplace_back(column.title, Style::kTitle);
  std::vector<std::string> out = {line(titles, chosen, screen)};
  for (const auto& row : rows_) out.push_back(line(row, chosen, screen));
  return out;
}

void Table::print(const Screen& screen) const {
  const std::vector<std::string> all = lines(screen);
  for (const std::string& text : all) std::printf("%s\n", text.c_str());
}

}  // namespace sluice::cli
