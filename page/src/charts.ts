// Small charts with uPlot: lines for several values over the last minutes.
import uPlot from "uplot";
import { shown } from "./bytes";
import { duration, rate, short_count } from "./format";
import type { Series } from "./history";
import { colour, on_theme } from "./theme";

export type ChartKind = "depth" | "flow" | "wait";

// The least span of time that is drawn.
const LEAST_S = 45;
const MOST_S = 180;

interface Line {
  name: string;
  colour: string;
  dash?: number[];
  fill?: boolean;
  // null: a gap; undefined: unknown, the line continues.
  values: (number | null | undefined)[];
}

export const BAND_COLOURS = 8;

function lines_of(kind: ChartKind, series: Series): Line[] {
  if (kind === "depth") {
    return [{ name: "waiting", colour: "waiting", fill: true, values: series.depth },
      { name: "active", colour: "active", values: series.active }];
  }
  if (kind === "flow") {
    return [{ name: "added/s", colour: "waiting", values: series.added },
      { name: "ended/s", colour: "done", fill: true, values: series.completed }];
  }
  return [...series.waits].flatMap(([band, wait]) => {
    const colour = `band-${wait.place % BAND_COLOURS}`;
    return [{ name: `${shown(band)} p95`, colour, values: wait.p95 },
      { name: `${shown(band)} p50`, colour, dash: [3, 3], values: wait.p50 }];
  });
}

const LABEL: Record<ChartKind, (value: number) => string> = {
  depth: short_count,
  flow: (value) => `${rate(value)}/s`,
  wait: (value) => duration(value * 1000),
};

// The newest values as text, for screen readers.
function in_words(kind: ChartKind, lines: readonly Line[]): string {
  return lines.flatMap(({ name, values }) => {
    const value = values[values.length - 1];
    return value === null || value === undefined ? [] : [`${name} ${LABEL[kind](value)}`];
  }).join(", ");
}

// Half a job and half a millisecond would be labelled like whole ones.
const STEP: Record<ChartKind, number> = { depth: 1, flow: 0.1, wait: 0.001 };

function draw_span(kind: ChartKind): uPlot.Axis["values"] {
  const fits = (tick: number) => Math.abs(tick / STEP[kind] - Math.round(tick / STEP[kind])) < 1e-6;
  return (_, ticks) => ticks.map((tick) => tick !== null && fits(tick) ? LABEL[kind](tick) : "");
}

export class Chart {
  private plot: uPlot | null = null;
  private lines = 0;
  private series: Series | null = null;
  private readonly resize = new ResizeObserver(() => this.fit());
  private readonly forget_theme = on_theme(() => this.rebuild());

  // The chart takes the size of `root`; `axes`: with labelled axes.
  constructor(private root: HTMLElement, private kind: ChartKind, private axes: boolean) {
    root.setAttribute("role", "img");
    this.resize.observe(root);
  }

  stop(): void {
    this.resize.disconnect();
    this.forget_theme();
    this.plot?.destroy();
    this.plot = null;
  }

  draw(series: Series): void {
    this.series = series;
    if (this.root.clientWidth < 20) return;
    const lines = lines_of(this.kind, series);
    this.root.setAttribute("aria-label", in_words(this.kind, lines));
    if (!this.plot || this.lines !== lines.length) this.build(lines);
    this.plot!.setData([series.time, ...lines.map((line) => line.values)] as uPlot.AlignedData);
  }

  private rebuild(): void {
    this.plot?.destroy();
    this.plot = null;
    if (this.series) this.draw(this.series);
  }

  private fit(): void {
    const { clientWidth: width, clientHeight: height } = this.root;
    if (width < 20 || height < 20) return;
    if (this.plot) this.plot.setSize({ width, height });
    else if (this.series) this.draw(this.series);
  }

  private axis(extra: Partial<uPlot.Axis>): uPlot.Axis {
    const font = `11px ${getComputedStyle(document.body).fontFamily}`;
    return { show: this.axes, stroke: colour("dim"), font,
      grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, ...extra };
  }

  private build(lines: Line[]): void {
    this.plot?.destroy();
    this.lines = lines.length;
    const least = this.kind === "wait" ? 0.001 : 1;
    const pad = this.axes ? 8 : 2;
    this.plot = new uPlot({
      width: this.root.clientWidth,
      height: this.root.clientHeight,
      // A label of the time axis needs half its width beside the newest point.
      padding: [pad, this.axes ? 28 : 0, this.axes ? 0 : pad, 0],
      legend: { show: false },
      cursor: { show: false },
      scales: {
        // At least this span, so that a new page does not stretch a few points.
        x: { time: true,
          range: (_, min, max) => [Math.min(Math.max(min, max - MOST_S), max - LEAST_S), max] },
        y: { range: (_, __, max) => [0, Math.max(max ?? 0, least) * 1.1] },
      },
      // The default labels have a second line, for which there is no room.
      axes: [this.axis({ size: 22, space: 80, values: "{HH}:{mm}:{ss}" }),
        this.axis({ size: 58, space: 28, values: draw_span(this.kind) })],
      series: [{}, ...lines.map((line) => ({
        label: line.name,
        stroke: colour(line.colour),
        width: 1.5,
        dash: line.dash,
        fill: line.fill ? colour(line.colour) + "26" : undefined,
        spanGaps: this.kind !== "wait",
        points: { show: false },
      }))],
    }, [[], ...lines.map(() => [])] as unknown as uPlot.AlignedData, this.root);
  }
}
