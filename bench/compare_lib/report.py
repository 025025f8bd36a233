"""Turns the figures of bench/compare into lines, a Markdown table and an SVG chart."""

import statistics

LABELS = {
    "cpu_us": ("server CPU per request", "us", 3), "per_s": ("throughput", "/s", 0),
    "p50_us": ("p50", "us", 0), "p99_us": ("p99", "us", 0), "p999_us": ("p99.9", "us", 0),
    "rss_mb": ("resident memory", "MB", 1), "restart_s": ("until PING answers", "s", 2),
    "rss_start_mb": ("resident when empty", "MB", 1), "used_memory_mb": ("used_memory", "MB", 1),
    "bytes_a_job": ("resident bytes a job", "B", 0), "rate": ("rate", "/s", 0),
    "checkpoints": ("checkpoints", "", 0), "checkpoint_s": ("one checkpoint", "s", 2),
    "p99_without_us": ("p99 without", "us", 0), "p999_without_us": ("p99.9 without", "us", 0),
}
SIGNS = {"<=": "≤", "<": "<", ">=": "≥"}


def medians(rounds):
    rounds = [each for each in rounds or [] if each]
    if not rounds:
        return None
    names = set.intersection(*(set(r) for r in rounds))
    return {name: statistics.median(r[name] for r in rounds) for name in LABELS if name in names}


def number(metric, value):
    if value is None:
        return "–"
    _, unit, digits = LABELS[metric]
    return f"{value:,.{digits}f} {unit}".strip()


class Line:
    """One goal of one row with the medians of both servers."""

    def __init__(self, row, goal, redis, sluice):
        self.title = row.title
        self.goal = goal
        self.label = LABELS[goal.metric][0]
        self.redis = (redis or {}).get(goal.metric)
        self.sluice = (sluice or {}).get(goal.metric)
        self.base = ""
        if goal.own:
            base = goal.base_metric
            self.redis = None
            self.base = f", against {number(base, (sluice or {}).get(base))} without"
        judged = goal.judge(redis, sluice)
        self.ratio, self.reached = judged if judged else (None, None)

    @property
    def verdict(self):
        return {True: "PASS", False: "MISS", None: "–"}[self.reached]

    @property
    def wanted(self):
        own = " of its own" if self.goal.own else ""
        return f"{SIGNS[self.goal.relation]} {self.goal.ratio:g}×{own}"

    def cells(self):
        ratio = "–" if self.ratio is None else f"{self.ratio:.2f}×"
        return [self.title, self.label, number(self.goal.metric, self.redis),
                number(self.goal.metric, self.sluice) + self.base, ratio, self.wanted, self.verdict]


def table(headings, rows):
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    return "\n".join(lines + ["| " + " | ".join(cells) + " |" for cells in rows])


def all_figures(row, redis, sluice):
    """Every figure of a row, in one cell for each server."""
    def cell(figures):
        if not figures:
            return "–"
        return "; ".join(f"{LABELS[name][0]} {number(name, value)}"
                         for name, value in figures.items())
    return [row.title, cell(redis), cell(sluice)]


def markdown(results, facts, failures):
    lines = [line for row, redis, sluice in results for line in lines_of(row, redis, sluice)]
    passed = sum(line.reached is True for line in lines)
    missed = sum(line.reached is False for line in lines)
    parts = ["# Side by side with redis-server", "",
             "Written by `bench/compare`; the chart is `compare.svg`.", ""]
    parts += [f"- {fact}" for fact in facts]
    parts += ["", f"{passed} goals reached, {missed} missed.", "",
              table(["work", "figure", "Redis", "Sluice", "ratio", "goal", ""],
                    [line.cells() for line in lines]), ""]
    if failures:
        parts += ["Runs that failed:", ""] + [f"- {failure}" for failure in failures] + [""]
    parts += ["## All figures", "", "Medians over the rounds. CPU is user and system time of the "
              "whole server process, all threads.", "",
              table(["work", "Redis", "Sluice"],
                    [all_figures(row, redis, sluice) for row, redis, sluice in results]), ""]
    return "\n".join(parts)


def lines_of(row, redis, sluice):
    return [Line(row, goal, redis, sluice) for goal in row.goals]


# -- the chart ------------------------------------------------------------------------------------

LEFT, WIDTH, ROW_HEIGHT, TOP = 430, 420, 22, 70
SCALE_END = 2.2
COLOURS = {True: "#2a9d5c", False: "#d1495b"}


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def svg(results, subtitle):
    lines = [line for row, redis, sluice in results for line in lines_of(row, redis, sluice)
             if line.ratio is not None]
    height = TOP + ROW_HEIGHT * len(lines) + 40
    at = lambda ratio: LEFT + WIDTH * min(ratio, SCALE_END) / SCALE_END  # noqa: E731
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 110}" '
           f'height="{height}" font-family="sans-serif" font-size="12">',
           f'<rect width="100%" height="100%" fill="#ffffff"/>',
           '<text x="16" y="24" font-size="16" font-weight="bold">Sluice as a multiple of '
           'redis-server</text>',
           f'<text x="16" y="44" fill="#555555">{escape(subtitle)}</text>']
    for mark in (0.5, 1.0, 1.5, 2.0):
        out.append(f'<line x1="{at(mark):.1f}" y1="{TOP - 8}" x2="{at(mark):.1f}" '
                   f'y2="{height - 30}" stroke="{"#888888" if mark == 1 else "#dddddd"}"/>')
        out.append(f'<text x="{at(mark):.1f}" y="{height - 14}" text-anchor="middle" '
                   f'fill="#555555">{mark:g}×</text>')
    for index, line in enumerate(lines):
        y = TOP + ROW_HEIGHT * index
        out.append(f'<text x="{LEFT - 8}" y="{y + 13}" text-anchor="end">'
                   f'{escape(shorten(line.title))} – {escape(line.label)}</text>')
        out.append(f'<rect x="{LEFT}" y="{y + 2}" width="{at(line.ratio) - LEFT:.1f}" height="14" '
                   f'fill="{COLOURS[line.reached]}"/>')
        goal_x = at(line.goal.ratio)
        out.append(f'<line x1="{goal_x:.1f}" y1="{y}" x2="{goal_x:.1f}" y2="{y + 18}" '
                   'stroke="#000000" stroke-width="2"/>')
        out.append(f'<text x="{max(at(line.ratio), goal_x) + 6:.1f}" y="{y + 13}">'
                   f'{line.ratio:.2f}× ({escape(line.wanted)})</text>')
    out.append(f'<text x="16" y="{height - 14}" fill="#555555">black mark: goal; green: reached; '
               'red: missed</text>')
    return "\n".join(out + ["</svg>", ""])


def shorten(title, most=48):
    return title if len(title) <= most else title[:most - 1] + "…"
