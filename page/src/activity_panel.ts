// The latest events. They also tell the view when to request new data.
import type { QueueRef } from "./api";
import { segment_of } from "./bytes";
import { KeyedList, h, replace, set_text } from "./dom";
import { moment } from "./format";
import { draw_soon } from "./live";
import { EventFeed } from "./streams";
import type { StreamState } from "./streams";
import type { QueueEvent } from "./types";
import { Panel, empty, job_anchor } from "./view";
import { event_in_words } from "./words";

const SHOWN_EVENTS = 30;

const FEED_WORDS: Record<StreamState, string> = {
  live: "live", waiting: "connecting…", paused: "paused",
  sampled: "a sample: too many to follow", off: "" };

export class ActivityPanel {
  private readonly panel = new Panel("Activity");
  readonly root = this.panel.root;
  private in_view = false;
  private events: QueueEvent[] = [];
  private readonly note = h("div", {}, empty("Nothing has happened since this page was opened"));
  private readonly list: KeyedList<QueueEvent, { root: HTMLElement }>;
  private readonly feed: EventFeed;

  constructor(private ref: QueueRef, private news: () => void) {
    const rows = h("ol.activity");
    this.panel.body.append(rows, this.note);
    this.list = new KeyedList<QueueEvent, { root: HTMLElement }>(rows,
      (event) => String(event.seq), (_, event) => this.make(event), () => undefined);
    this.feed = new EventFeed(ref, (events) => this.take(events),
      (state) => set_text(this.panel.aside, FEED_WORDS[state]));
  }

  get visible(): boolean {
    return this.in_view;
  }

  set visible(visible: boolean) {
    this.in_view = visible;
    this.feed.want(visible);
    if (visible && this.events.length > 0) draw_soon(this.draw);
  }

  stop(): void {
    this.feed.stop();
  }

  private take(events: QueueEvent[]): void {
    this.events = [...events.slice(-SHOWN_EVENTS).reverse(), ...this.events].slice(0, SHOWN_EVENTS);
    this.news();
    if (this.visible) draw_soon(this.draw);
  }

  private readonly draw = () => {
    this.list.render(this.events);
    replace(this.note);
  };

  private make(event: QueueEvent): { root: HTMLElement } {
    const id = segment_of(event, "id") ?? "";
    return { root: h("li", { "data-event": event.type },
      h("time", {}, moment(event.time, true).slice(-12)), job_anchor(this.ref, id),
      h("span", {}, event_in_words(event).split(":")[0])) };
  }
}
