// The log of a job while it grows. What is shown is not laid out again: a log of a megabyte to
// which a line is added four times a second would hold the browser. So it consists of blocks of
// whole lines; those out of sight cost nothing (app.css).
import { Colours } from "./ansi";
import { h, set_text } from "./dom";

const BLOCK = 16 * 1024;
// What only the next characters will tell the meaning of.
const UNFINISHED = /(?:\r|\x1b(?:\[[0-9;:?]*)?)$/;

interface Block {
  root: HTMLElement;
  size: number;
  // Where it ends in all of the log.
  end: number;
}

export class LogView {
  readonly root = h("pre", { tabindex: 0, role: "log", "aria-label": "log" });
  private readonly gap = h("div");
  private blocks: Block[] = [];
  private colours = new Colours();
  private drawn = 0;
  private ends_line = true;

  constructor() {
    this.root.append(this.gap);
  }

  // It is drawn anew, as it now begins earlier.
  clear(): void {
    for (const { root } of this.blocks.splice(0)) root.remove();
  }

  // `text`: what is shown of the log, which has `end` characters in all. The log follows its end,
  // unless it was scrolled back.
  draw(text: string, end: number, begins_late: boolean): void {
    const start = end - text.length;
    while (this.blocks.length > 0 && this.blocks[0].end <= start) {
      this.blocks.shift()!.root.remove();
    }
    if (this.blocks.length === 0) {
      [this.drawn, this.ends_line, this.colours] = [start, true, new Colours()];
    }
    set_text(this.gap, begins_late ? "…\n" : "");
    const { scrollTop, scrollHeight, clientHeight } = this.root;
    const added = text.slice(this.drawn - start).replace(UNFINISHED, "");
    if (added === "") return;
    this.append(added);
    if (scrollTop + clientHeight >= scrollHeight - 8) this.root.scrollTop = this.root.scrollHeight;
  }

  private append(text: string): void {
    for (let at = 0; at < text.length;) {
      let block = this.blocks.at(-1);
      if (block === undefined || (block.size >= BLOCK && this.ends_line)) {
        block = { root: h("div.log-block"), size: 0, end: this.drawn };
        this.blocks.push(block);
        this.root.append(block.root);
      }
      // Up to the end of the line with which it is full.
      const line = text.indexOf("\n", at + Math.max(0, BLOCK - block.size));
      const to = line < 0 ? text.length : line + 1;
      block.root.append(...this.colours.take(text.slice(at, to)));
      block.size += to - at;
      this.drawn += to - at;
      block.end = this.drawn;
      this.ends_line = text[to - 1] === "\n";
      at = to;
    }
  }
}
