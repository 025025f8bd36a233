// Table: aligned columns that fit the terminal, without those that have only empty cells. Without a
// terminal each line has every column, whole and divided by tabs, so that scripts can count them.
//
// Cells are printable text (text.h), so without tabs. Used by one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::cli {

enum class Style : uint8_t { kPlain, kTitle, kDim, kGood, kBusy, kBad, kChosen };

struct Cell {
  std::string text;
  Style style = Style::kPlain;

  Cell() = default;
  Cell(std::string of, Style in = Style::kPlain) : text(std::move(of)), style(in) {}  // NOLINT
  Cell(const char* of) : text(of) {}                                                  // NOLINT
};

// How to print to standard output: its width in columns (0: unlimited), and whether in colours.
struct Screen {
  size_t width = 0;
  size_t height = 0;
  bool colours = false;
  bool terminal = false;
  bool moves = false;  // a terminal that can be drawn on: not TERM=dumb

  // Unlimited and without colours if it is not a terminal; no colours with NO_COLOR, nor on a
  // terminal that knows none.
  static Screen of_output();
};

std::string styled(const std::string& text, Style style, const Screen& screen);
// The style in which a job's state is shown.
Style state_style(const std::string& state);

class Table {
 public:
  struct Column {
    std::string title;
    bool right = false;
    bool shrinks = false;  // may be cut if the terminal is too narrow
    bool stays = false;    // shown without any text and on a narrow terminal too
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // The row must have as many cells as there are columns.
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.empty(); }

  // The line of titles, and one line for each row.
  std::vector<std::string> lines(const Screen& screen) const;
  void print(const Screen& screen) const;

 private:
  std::vector<size_t> widths(const Screen& screen) const;
  void fit(size_t width, size_t total, std::vector<size_t>& widths) const;
  std::string line(const std::vector<Cell>& cells, const std::vector<size_t>& widths,
                   const Screen& screen) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace sluice::cli
