// Charts with uPlot: lines for several values along one time axis, with a legend that shows the
// values under the pointer, else the latest ones.
import uPlot from "uplot";
import { shown } from "./bytes";
import { h, replace, set_text, show } from "./dom";
import { duration, moment, rate, short_count } from "./format";
import type { Lines, Values } from "./history";
import { colour, on_theme } from "./theme";

export type ChartKind = "depth" | "bands" | "flow" | "wait";
// A small chart has no axes: its span of time and its greatest value stand in its legend.
export type ChartSize = "small" | "full";

// What is narrower is a click.
const LEAST_PX = 4;
// How far keys go, as a part of what is drawn.
const KEY_STEPS: Record<string, number> = { ArrowLeft: -1 / 60, ArrowRight: 1 / 60, PageUp: -1 / 6,
  PageDown: 1 / 6, Home: -1, End: 1 };
// The least span of time that is drawn with axes.
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
    const colour = wait.place === null ? "waiting" : `band-${wait.place % BAND_COLOURS}`;
    if (kind === "bands") return [{ name: shown(band), colour, values: wait.waiting }];
    return [{ name: `${shown(band)} p95`, colour, values: wait.p95 },
      { name: `${shown(band)} p50`, colour, dash: [3, 3], values: wait.p50 }];
  });
}

const TITLE: Record<ChartKind, string> = { depth: "Jobs", bands: "Waiting by band",
  flow: "Jobs a second", wait: "Wait: p50 (dashed), p95" };

const LABEL: Record<ChartKind, (value: number) => string> = {
  depth: short_count,
  bands: short_count,
  flow: (value) => `${rate(value)}/s`,
  wait: (value) => duration(value * 1000),
};

// Half a job and half a millisecond would be labelled like whole ones.
const STEP: Record<ChartKind, number> = { depth: 1, bands: 1, flow: 0.1, wait: 0.001 };

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
  // A range that is being marked by a finger or by keys, from its beginning to the present point.
  private picked: [number, number] | null = null;
  // The point that keys have moved to, in milliseconds.
  private keyed: number | null = null;
  // The point under the pointer.
  private at: number | null = null;
  private readonly resize = new ResizeObserver(() => this.fit());
  private readonly forget_theme = on_theme(() => this.rebuild());

  // `selected`: a range of time was dragged, in milliseconds.
  constructor(private kind: ChartKind, private size: ChartSize,
              private selected?: (from: number, to: number) => void) {
    this.spot.setAttribute("aria-label", TITLE[kind]);
    if (selected) {
      this.spot.tabIndex = 0;
      this.spot.setAttribute("role", "application");
      this.spot.addEventListener("keydown", (event) => this.key(event));
      this.spot.addEventListener("blur", () => this.forget_pick());
    }
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

  // What it shows from the next drawing on.
  turn(kind: ChartKind): void {
    if (kind === this.kind) return;
    this.kind = kind;
    replace(this.legend);
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
    const range = this.picked ?? this.marked;
    const [left, right] = (range ?? [0, 0]).map((ms) => range === null ? 0
      : Math.min(Math.max(this.plot!.valToPos(ms / 1000, "x"), 0), width)).sort((a, b) => a - b);
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
    if (this.size === "small") this.draw_keys();
    set_text(this.when, this.at !== null && time[index] !== undefined
      ? `at ${moment(time[index] * 1000)}` : this.size === "small" ? this.span_in_words()
        : this.has_idle_time() ? "no line: no job started" : "");
    if (this.at !== null) return;
    this.spot.setAttribute("aria-label", `${TITLE[this.kind]}: ` + this.lines.flatMap((line, n) =>
      words[n] === "–" ? [] : [`${line.name} ${words[n]}`]).join(", "));
  }

  // A small chart has no room for the keys of lines that it does not draw at all.
  private draw_keys(): void {
    const drawn = new Set(this.lines.flatMap((line, n) =>
      this.drawn_part(line).some((value) => value !== null && value !== undefined)
        ? [this.values[n].parentElement!] : []));
    for (const value of this.values) show(value.parentElement!, drawn.has(value.parentElement!));
  }

  private drawn_part({ values }: Pick<Line, "values">): Values {
    const time = this.given?.time ?? [];
    const from = (time.at(-1) ?? 0) - this.span_s;
    return values.slice(time.findIndex((at) => at >= from));
  }

  // Whether waits have a gap where it is known what waited: their lines do not say why.
  private has_idle_time(): boolean {
    if (this.kind !== "wait" || this.given === null) return false;
    const waits = this.lines.map((line) => this.drawn_part(line));
    return this.drawn_part({ values: this.given.waiting }).some((waiting, n) =>
      typeof waiting === "number" && waits.every((values) => values[n] === null));
  }

  private span_in_words(): string {
    let most = 0;
    for (const line of this.lines) {
      for (const value of this.drawn_part(line)) if (value && value > most) most = value;
    }
    const span = this.span_s === 3600 ? "last hour" : `last ${duration(this.span_s * 1000)}`;
    return most > 0 ? `${span}, max ${LABEL[this.kind](most)}` : span;
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

  // --- Without a mouse ---

  private ms_at(left: number): number {
    return this.plot!.posToVal(left, "x") * 1000;
  }

  private point_at(ms: number): void {
    this.plot!.setCursor({ left: this.plot!.valToPos(ms / 1000, "x"), top: 1 });
  }

  private forget_pick(): void {
    this.picked = this.keyed = null;
    this.legend.setAttribute("aria-live", "off");
    this.plot?.setCursor({ left: -10, top: -10 });
    this.draw_mark();
  }

  private take_pick(): void {
    const [from, to] = (this.picked ?? [0, 0]).sort((a, b) => a - b);
    this.forget_pick();
    if (to > from) this.selected!(from, to);
  }

  private key(event: KeyboardEvent): void {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const { plot } = this;
    const { min, max } = plot?.scales.x ?? {};
    if (!plot || min === undefined || max === undefined) return;
    const step = KEY_STEPS[event.key];
    if (step !== undefined) {
      const before = this.keyed ?? max * 1000;
      this.keyed = Math.min(Math.max(before + step * (max - min) * 1000, min * 1000), max * 1000);
      this.picked = event.shiftKey ? [this.picked?.[0] ?? before, this.keyed] : null;
      this.legend.setAttribute("aria-live", "polite");
      this.point_at(this.keyed);
      this.draw_mark();
    } else if (event.key === "Enter" && this.picked) this.take_pick();
    else if (event.key === "Escape" && this.keyed !== null) this.forget_pick();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // uPlot follows the mouse only.
  private watch_fingers(over: HTMLElement): void {
    const left_of = (event: PointerEvent) => Math.min(Math.max(event.clientX
      - over.getBoundingClientRect().left, 0), over.clientWidth);
    const on = (name: "pointerdown" | "pointermove" | "pointerup" | "pointercancel",
                each: (event: PointerEvent) => void) => over.addEventListener(name, (event) => {
      if (event.pointerType !== "mouse" && this.selected) each(event);
    });
    on("pointerdown", (event) => {
      const ms = this.ms_at(left_of(event));
      this.picked = [ms, ms];
    });
    on("pointermove", (event) => {
      if (this.picked === null) return;
      this.picked[1] = this.ms_at(left_of(event));
      this.point_at(this.picked[1]);
      this.draw_mark();
    });
    on("pointerup", () => {
      const [from, to] = (this.picked ?? [0, 0]).map((ms) => this.plot!.valToPos(ms / 1000, "x"));
      if (Math.abs(to - from) < LEAST_PX) this.forget_pick();
      else this.take_pick();
    });
    on("pointercancel", () => this.forget_pick());
  }

  private readonly dragged = (plot: uPlot) => {
    const { left, width } = plot.select;
    if (width < LEAST_PX || !plot.cursor.event) return;
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
        // Small ones beside each other have the same span. Others have at least so much of it that
        // a new page does not stretch a few points.
        x: { time: true, range: (_, min, max) => [full
          ? Math.min(Math.max(min, max - this.span_s), max - LEAST_S) : max - this.span_s, max] },
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
    this.watch_fingers(this.plot.over);
  }
}
