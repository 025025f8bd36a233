// Many queues: a table with a line for each, which can be sorted by each column.
import type { QueueRef } from "./api";
import { queue_link } from "./address";
import { is_addressable, name_of, shown } from "./bytes";
import { KeyedList, h, replace, set_class, set_text } from "./dom";
import type { Child } from "./dom";
import { duration, rate, short_count } from "./format";
import { series_of } from "./history";
import { Spark } from "./spark";
import { by_trouble, failed_lately, trouble_of } from "./trouble";
import type { QueueLine } from "./types";
import { shown_name } from "./view";
import { slots_in_words } from "./words";

interface Row {
  root: HTMLTableRowElement;
  key: string;
  trouble: HTMLElement;
  drawn_trouble: string;
  cells: Record<string, HTMLElement>;
  sparks: Spark[];
}

interface Column {
  key: string;
  name: string;
  title: string;
  // What sorts; numbers are sorted from the greatest on.
  value: (line: QueueLine, db: number) => number;
  words: (line: QueueLine, db: number) => string;
}

const counted = (key: "pending" | "delayed" | "blocked" | "active", title: string): Column => ({
  key, name: key, title, value: ({ stats }) => stats[key],
  words: ({ stats }) => short_count(stats[key]) });

const flow = (key: "added" | "completed", name: string, title: string): Column => ({
  key: name, name: `${name}/s`, title,
  value: (line, db) => series_of(db, name_of(line)).rate_of(key, line.stats),
  words: (line, db) =>
    rate(series_of(db, name_of(line)).rate_of(key, line.stats)) });

// The slots stay together where the cell has two lines.
function active_in_words({ stats }: QueueLine): string {
  const slots = slots_in_words(stats).replaceAll(" ", "\u00a0");
  return short_count(stats.active) + (slots && `, ${slots}`);
}

const COLUMNS: Column[] = [
  counted("pending", "jobs that may run now"),
  counted("delayed", "jobs that wait for their time"),
  counted("blocked", "jobs that wait for other jobs"),
  { ...counted("active", "jobs that run, and the slots that they take of the cap"),
    words: active_in_words },
  { key: "oldest", name: "oldest wait", title: "the longest wait of a pending job",
    value: ({ stats }) => stats.oldest_ms ?? -1, words: ({ stats }) => duration(stats.oldest_ms) },
  flow("added", "added", "jobs added a second"),
  flow("completed", "ended", "jobs ended a second"),
  { key: "failed", name: "failed, last hour", title: "jobs that failed in the last hour, if known",
    value: (line, db) => failed_lately(db, line),
    words: (line, db) => short_count(failed_lately(db, line)) },
];

// A word for each kind of trouble; its words are the title.
const SHORT = { failed: "failing", full: "full", paused: "paused", idle: "no worker" };

interface SparkColumn {
  what: string;
  lines: { name: "waiting" | "ended" | "failed"; colour: string }[];
  of: string;
}

const SPARKS: SparkColumn[] = [
  { what: "waiting", lines: [{ name: "waiting", colour: "waiting" }], of: ", last hour" },
  { what: "a minute", lines: [{ name: "ended", colour: "done" }, { name: "failed", colour: "bad" }],
    of: " a\u00a0minute, last hour" }];

// The keys of its lines. They stand in the head, and in each cell where the table has none.
function spark_name({ lines, of }: SparkColumn): Child[] {
  return [...lines.flatMap(({ name, colour }, n) =>
    [n ? ", " : "", h("span.key", { "data-colour": colour }, name)]), of];
}

type Order = (a: QueueLine, b: QueueLine) => number;

// `sort`: "trouble", "name", or the key of a column.
export function order_of(sort: string, db: number): Order {
  const by_name: Order = (a, b) => {
    const [left, right] = [name_of(a), name_of(b)];
    return left < right ? -1 : left > right ? 1 : 0;
  };
  if (sort === "name") return by_name;
  const column = COLUMNS.find(({ key }) => key === sort);
  const first: Order = column ? (a, b) => column.value(b, db) - column.value(a, db)
    : by_trouble(db);
  return (a, b) => first(a, b) || by_name(a, b);
}

export class QueueTable {
  readonly body = h("tbody");
  private readonly heads = new Map<string, HTMLTableCellElement>();
  readonly root: HTMLTableElement;
  private readonly list: KeyedList<QueueLine, Row>;

  constructor(private db: number, choose: (sort: string) => void) {
    const head = (key: string, name: string, title: string) => {
      const cell = h("th", { scope: "col", title }, h("button.sort", { click: () => choose(key) },
        name));
      this.heads.set(key, cell);
      return cell;
    };
    this.root = h("table.queues", { "aria-label": "Queues" }, h("thead", {}, h("tr", {},
      head("name", "queue", "sort by name"),
      head("trouble", "trouble", "failing first, then the longest waits, paused, full"),
      ...COLUMNS.map(({ key, name, title }) => head(key, name, title)),
      ...SPARKS.map((column) => h("th.spark-head", { scope: "col" }, ...spark_name(column))))),
    this.body);
    this.list = new KeyedList<QueueLine, Row>(this.body, name_of,
      (key) => this.make(key), (row, line) => this.update(row, line));
  }

  stop(): void {
    for (const row of this.list.values()) row.sparks.forEach((spark) => spark.stop());
  }

  draw(lines: readonly QueueLine[], sort: string): void {
    for (const [key, cell] of this.heads) {
      if (key !== sort) cell.removeAttribute("aria-sort");
      else cell.setAttribute("aria-sort", key === "name" ? "ascending" : "descending");
    }
    const before = new Set(this.list.values());
    this.list.render(lines);
    for (const row of this.list.values()) before.delete(row);
    for (const row of before) row.sparks.forEach((spark) => spark.stop());
  }

  private make(key: string): Row {
    const ref: QueueRef = { queue: key, db: this.db };
    const cells: Record<string, HTMLElement> = {};
    const row: Row = { root: h("tr"), key, trouble: h("td.trouble"), drawn_trouble: "", cells,
      sparks: SPARKS.map(({ what }) => new Spark(what, short_count)) };
    row.root.append(h("th", { scope: "row", title: shown(key) }, queue_anchor(ref)), row.trouble,
      ...COLUMNS.map((column) => {
        cells[column.key] = h("td", { "data-name": column.name });
        return cells[column.key];
      }), ...row.sparks.map((spark, n) => h("td.spark-cell", {},
        h("small", {}, ...spark_name(SPARKS[n])), spark.root)));
    return row;
  }

  private update(row: Row, line: QueueLine): void {
    for (const column of COLUMNS) set_text(row.cells[column.key], column.words(line, this.db));
    set_class(row.cells.failed, "warn", failed_lately(this.db, line) > 0);
    const trouble = trouble_of(this.db, line);
    const words = trouble.map((each) => each.words).join();
    if (words !== row.drawn_trouble) {
      row.drawn_trouble = words;
      replace(row.trouble, ...trouble.map((each) =>
        h("span.pill", { "data-state": each.kind, title: each.words }, SHORT[each.kind])));
    }
    const series = series_of(this.db, row.key);
    const hour = series.hour_of(line.stats);
    for (const [n, { lines }] of SPARKS.entries()) {
      row.sparks[n].draw(lines.map((each) => ({ ...each, values: hour[each.name] })),
        series.has_hour);
    }
  }
}

export function queue_anchor(ref: QueueRef): HTMLElement {
  const name = h("bdi", {}, shown_name(ref.queue));
  return is_addressable(ref.queue)
    ? h("a.id", { href: queue_link(ref), "data-row": ref.queue }, name)
    : h("span.id", { title: "This name cannot be part of an address." }, name);
}
