// A small chart without axes in a table: lines from zero up to the greatest value, which stands
// beside it as text.
import { h, set_text, show } from "./dom";
import { colour, on_theme } from "./theme";

export interface SparkLine {
  name: string;
  colour: string;
  // null: not known.
  values: readonly (number | null)[];
}

const WIDTH = 120;
const HEIGHT = 26;

export class Spark {
  private readonly canvas = h("canvas", { role: "img" });
  private readonly top = h("small");
  private readonly under = h("small.spark-at", { hidden: true });
  readonly root = h("div.spark-line", {}, this.canvas, this.top, this.under);
  // Where the pointer is, from 0 to 1.
  private at: number | null = null;
  private by_minute = false;
  private drawn = "";
  private lines: readonly SparkLine[] = [];
  private readonly forget_theme = on_theme(() => this.paint());

  // `label`: the greatest value in words.
  constructor(private what: string, private label: (value: number) => string) {
    const scale = Math.max(1, Math.round(devicePixelRatio));
    this.canvas.setAttribute("aria-label", what);
    this.canvas.width = WIDTH * scale;
    this.canvas.height = HEIGHT * scale;
    this.canvas.getContext("2d")?.scale(scale, scale);
    const point = (event: PointerEvent) => {
      this.at = event.offsetX / Math.max(1, this.canvas.clientWidth);
      this.draw_under();
    };
    this.canvas.addEventListener("pointermove", point);
    this.canvas.addEventListener("pointerdown", point);
    this.canvas.addEventListener("pointerleave", () => {
      this.at = null;
      this.draw_under();
    });
  }

  // The values under the pointer.
  private draw_under(): void {
    show(this.under, this.at !== null && this.lines.length > 0);
    if (this.at === null) return;
    const words = this.lines.map(({ name, values }) => {
      const value = values[this.index_in(values)];
      return `${name} ${value === null || value === undefined ? "unknown" : this.label(value)}`;
    });
    const values = this.lines[0]?.values ?? [];
    const back = values.length - 1 - this.index_in(values);
    set_text(this.under, words.join(", ") + (!this.by_minute ? "" : back === 0 ? ", now"
      : `, ${back} m ago`));
  }

  private index_in(values: readonly unknown[]): number {
    return Math.min(values.length - 1, Math.max(0, Math.round(this.at! * (values.length - 1))));
  }

  stop(): void {
    this.forget_theme();
  }

  // `by_minute`: a value is of a minute, the last one of the present.
  draw(lines: readonly SparkLine[], by_minute: boolean): void {
    this.by_minute = by_minute;
    const key = lines.map((line) => line.values.join()).join(";");
    if (key === this.drawn) return;
    this.drawn = key;
    this.lines = lines;
    this.paint();
    this.draw_under();
  }

  private paint(): void {
    const pen = this.canvas.getContext("2d");
    if (!pen || this.lines.length === 0) return;
    const known = this.lines.flatMap((line) => line.values)
      .filter((value): value is number => value !== null);
    const most = Math.max(0, ...known);
    const now = this.lines.map((line) => {
      const value = line.values.at(-1);
      const known = value !== null && value !== undefined;
      return `${line.name} ${known ? this.label(value) : "unknown"}`;
    });
    set_text(this.top, most === 0 ? "" : `max ${this.label(most)}`);
    this.canvas.setAttribute("aria-label",
      `${this.what}: ${now.join(", ")}; at most ${this.label(most)}`);
    pen.clearRect(0, 0, WIDTH, HEIGHT);
    for (const line of this.lines) this.stroke(pen, line, most || 1);
  }

  private stroke(pen: CanvasRenderingContext2D, line: SparkLine, most: number): void {
    const { values } = line;
    const x = (index: number) => 1 + (WIDTH - 2) * index / Math.max(1, values.length - 1);
    const y = (value: number) => HEIGHT - 1.5 - (HEIGHT - 3) * value / most;
    pen.strokeStyle = colour(line.colour);
    pen.lineWidth = 1.5;
    pen.beginPath();
    for (const [index, value] of values.entries()) {
      if (value === null) continue;
      const begins = index === 0 || values[index - 1] === null;
      // A value without a neighbour is as wide as it is high.
      if (begins) pen.moveTo(x(index) - 0.75, y(value));
      pen.lineTo(x(index) + (begins ? 0.75 : 0), y(value));
    }
    pen.stroke();
  }
}
