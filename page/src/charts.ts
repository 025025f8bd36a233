// Charts with uPlot: lines for several values along one time axis, with a legend that shows the
// values under the pointer, else the latest ones.
import uPlot from "uplot";
import { shown } from "./bytes";
import { h, replace, set_text, show } from "./dom";
import { duration, moment, rate, short_count } from "./format";
import type { Lines, Values } from "./history";
import { colour, on_theme } from "./theme";

export type ChartKind = "depth" | "flow" | "wait";
// A small chart has no axes; its greatest value stands in its legend.
export type ChartSize = "small" | "full";

// The least span of time that is drawn.
const LEAST_S = 120;
export const BAND_COLOURS = 8;
export const MOST_CARD_BANDS = 8;

interface Line {
  name: string;
  colour: string;
  dash?: number[];
  fill?: boolean;
  // null: a gap; undefined: unknown, the line continues.
  values: Values;
}

function lines_of(kind: ChartKind, lines: Lines): Line[] {
  if (kind === "depth") {
    return [{ name: "waiting", colour: "waiting", fill: true, values: lines.waiting },
      { name: "active", colour: "active", values: lines.active }];
  }
  if (kind === "flow") {
    return [{ name: "added", colour: "waiting", values: lines.added },
      { name: "ended", colour: "done", fill: true, values: lines.ended },
      { name: "failed", colour: "bad", values: lines.failed }];
  }
  return [...lines.waits].flatMap(([band, wait]) => {
    const colour = `band-${wait.place % BAND_COLOURS}`;
    return [{ name: `${shown(band)} p95`, colour, values: wait.p95 },
      { name: `${shown(band)} p50`, colour, dash: [3, 3], values: wait.p50 }];
  });
}

const TITLE: Record<ChartKind, string> = { depth: "Jobs", flow: "Jobs a second",
  wait: "Wait by band: p50 (dashed), p95" };

const LABEL: Record<ChartKind, (value: number) => string> = {
  depth: short_count,
  flow: (value) => `${rate(value)}/s`,
  wait: (value) => duration(value * 1000),
};

// Half a job and half a millisecond would be labelled like whole ones.
const STEP: Record<ChartKind, number> = { depth: 1, flow: 0.1, wait: 0.001 };

function draw_span(kind: ChartKind): uPlot.Axis["values"] {
  const fits = (tick: number) => Math.abs(tick / STEP[kind] - Math.round(tick / STEP[kind])) < 1e-6;
  return (_, ticks) => ticks.map((tick) => tick !== null && fits(tick) ? LABEL[kind](tick) : "");
}

// The indices of values without a neighbour, which no line shows. What is unknown is passed over
// by a line.
function lone_points(plot: uPlot, series: number): number[] {
  const values = plot.data[series];
  const known = (index: number) => values[index] !== null && values[index] !== undefined;
  const beside = (index: number, step: number) => {
    do index += step; while (index in values && values[index] === undefined);
    return known(index);
  };
  const lone: number[] = [];
  for (let index = 0; index < values.length; ++index) {
    if (known(index) && !beside(index, -1) && !beside(index, 1)) lone.push(index);
  }
  return lone;
}

export class Chart {
  readonly root: HTMLElement;
  private readonly legend = h("figcaption");
  private readonly spot = h("div.plot", { role: "img" });
  private values: HTMLElement[] = [];
  private readonly when = h("small");
  private plot: uPlot | null = null;
  private names = "";
  private lines: Line[] = [];
  private given: Lines | null = null;
  private span_s = Infinity;
  // The range of time that is marked, in milliseconds.
  private marked: [number, number] | null = null;
  private dragging = false;
  // The point under the pointer.
  private at: number | null = null;
  private readonly resize = new ResizeObserver(() => this.fit());
  private readonly forget_theme = on_theme(() => this.rebuild());

  // `selected`: a range of time was dragged, in milliseconds.
  constructor(private kind: ChartKind, private size: ChartSize,
              private selected?: (from: number, to: number) => void) {
    this.spot.setAttribute("aria-label", TITLE[kind]);
    this.root = h("figure", { "data-size": size }, this.legend, this.spot);
    this.resize.observe(this.spot);
  }

  stop(): void {
    this.resize.disconnect();
    this.forget_theme();
    this.plot?.destroy();
    this.plot = null;
  }

  // `span_s`: how much of it is drawn.
  draw(lines: Lines, span_s = 3600): void {
    this.given = lines;
    this.span_s = span_s;
    this.lines = lines_of(this.kind, lines);
    const names = this.lines.map(({ name }) => name).join();
    if (names !== this.names || this.legend.childElementCount === 0) this.make_legend(names);
    this.draw_legend();
    if (this.spot.clientWidth < 20) return;
    if (!this.plot) this.build();
    this.plot!.setData([lines.time, ...this.lines.map(({ values }) => values)] as
      uPlot.AlignedData);
  }

  // Marks this range of time in the chart; null: none.
  mark(range: [number, number] | null): void {
    this.marked = range;
    this.draw_mark();
  }

  // The range moves with the axis: this is called after each drawing.
  private draw_mark(): void {
    if (!this.plot?.data[0].length || this.dragging || this.selected === undefined) return;
    const width = this.plot.over.clientWidth;
    const [left, right] = (this.marked ?? [0, 0]).map((ms) => this.marked === null ? 0
      : Math.min(Math.max(this.plot!.valToPos(ms / 1000, "x"), 0), width));
    this.plot.setSelect({ left, width: right - left, top: 0,
      height: this.plot.over.clientHeight }, false);
  }

  private rebuild(): void {
    this.plot?.destroy();
    this.plot = null;
    if (this.given) this.draw(this.given, this.span_s);
  }

  private fit(): void {
    const { clientWidth: width, clientHeight: height } = this.spot;
    if (width < 20 || height < 20) return;
    if (this.plot) this.plot.setSize({ width, height });
    else if (this.given) this.draw(this.given, this.span_s);
  }

  private make_legend(names: string): void {
    this.names = names;
    this.plot?.destroy();
    this.plot = null;
    this.values = this.lines.map(() => h("b"));
    // Two lines of a band have one key, with both values.
    const keys: HTMLElement[] = [];
    for (const [index, line] of this.lines.entries()) {
      const pair = this.kind === "wait" && index % 2 === 1;
      if (pair) continue;
      keys.push(h("span.key", { "data-colour": line.colour }, `${line.name.replace(/ p95$/, "")} `,
        ...(this.kind === "wait" ? [this.values[index + 1], ", "] : []), this.values[index]));
    }
    replace(this.legend, h("strong", {}, TITLE[this.kind]), ...keys, this.when);
  }

  // Texts for people and, as the label of the drawing, for screen readers.
  private draw_legend(): void {
    const time = this.given?.time ?? [];
    const index = this.at !== null && this.at < time.length ? this.at : time.length - 1;
    const words = this.lines.map(({ values }) => {
      const value = values[index];
      return value === null || value === undefined ? "–" : LABEL[this.kind](value);
    });
    words.forEach((text, n) => set_text(this.values[n], text));
    // A small chart has no room for what it does not draw.
    if (this.size === "small") {
      this.values.forEach((value, n) => show(value.parentElement!, words[n] !== "–"));
    }
    set_text(this.when, this.at !== null && time[index] !== undefined
      ? `at ${moment(time[index] * 1000)}` : this.size === "small" ? this.top_in_words() : "");
    if (this.at !== null) return;
    this.spot.setAttribute("aria-label", `${TITLE[this.kind]}: ` + this.lines.flatMap((line, n) =>
      words[n] === "–" ? [] : [`${line.name} ${words[n]}`]).join(", "));
  }

  private top_in_words(): string {
    let most = 0;
    for (const { values } of this.lines) {
      for (const value of values) if (value && value > most) most = value;
    }
    return most > 0 ? `max ${LABEL[this.kind](most)}` : "";
  }

  private axis(extra: Partial<uPlot.Axis>): uPlot.Axis {
    const font = `11px ${getComputedStyle(document.body).fontFamily}`;
    return { show: this.size === "full", stroke: colour("dim"), font,
      grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, ...extra };
  }

  // The pointer marks the same time in all charts; a range that is dragged is told.
  private cursor(): uPlot.Cursor {
    return { show: true, y: false, sync: { key: "time" },
      drag: { x: this.selected !== undefined, y: false, setScale: false } };
  }

  private readonly pointed = (plot: uPlot) => {
    const at = plot.cursor.idx ?? null;
    if (at === this.at) return;
    this.at = at;
    this.draw_legend();
  };

  private watch_drag(over: HTMLElement): void {
    over.addEventListener("mousedown", () => {
      this.dragging = true;
      // uPlot tells of the range at the same event.
      addEventListener("mouseup", () => setTimeout(() => { this.dragging = false; }),
        { once: true });
    });
  }

  private readonly dragged = (plot: uPlot) => {
    const { left, width } = plot.select;
    if (width < 4 || !plot.cursor.event) return;
    this.selected?.(plot.posToVal(left, "x") * 1000, plot.posToVal(left + width, "x") * 1000);
  };

  private build(): void {
    const least = this.kind === "wait" ? 0.001 : 1;
    const full = this.size === "full";
    this.plot = new uPlot({
      width: this.spot.clientWidth,
      height: this.spot.clientHeight,
      // A label of the time axis needs half its width beside the newest point.
      padding: [full ? 8 : 2, full ? 28 : 0, full ? 0 : 2, 0],
      legend: { show: false },
      cursor: this.cursor(),
      hooks: { setCursor: [this.pointed], setSelect: [this.dragged],
        draw: [() => this.draw_mark()] },
      scales: {
        // At least this span, so that a new page does not stretch a few points.
        x: { time: true, range: (_, min, max) =>
          [Math.min(Math.max(min, max - this.span_s), max - LEAST_S), max] },
        y: { range: (_, __, max) => [0, Math.max(max ?? 0, least) * 1.1] },
      },
      // The default labels have a second line, for which there is no room.
      axes: [this.axis({ size: 22, space: 80, values: "{HH}:{mm}:{ss}" }),
        this.axis({ size: 58, space: 28, values: draw_span(this.kind) })],
      series: [{}, ...this.lines.map((line) => ({
        label: line.name,
        stroke: colour(line.colour),
        width: 1.5,
        dash: line.dash,
        fill: line.fill ? colour(line.colour) + "26" : undefined,
        points: { show: false, size: 4, fill: colour(line.colour), filter: lone_points },
      }))],
    }, [[], ...this.lines.map(() => [])] as unknown as uPlot.AlignedData, this.spot);
    this.watch_drag(this.plot.over);
  }
}
