// What happened in a range of time that was dragged in a chart: its events, if they are still kept.
// Its failures are listed by the jobs panel, which follows the same parameters.
import { set_params } from "./address";
import type { Params } from "./address";
import { ApiError, queue_path, request } from "./api";
import type { QueueRef } from "./api";
import { segment_of } from "./bytes";
import { h, replace, set_text, show } from "./dom";
import { count, duration, moment, plural } from "./format";
import { words_of_error } from "./notices";
import type { QueueEvent } from "./types";
import { Panel, empty, job_anchor, skeleton } from "./view";
import { event_in_words } from "./words";

const MOST = 1000;
const SHOWN = 100;

interface Page {
  events: QueueEvent[];
  next: string;
}

export class RangePanel {
  private readonly panel = new Panel("Events", "range");
  readonly root = this.panel.root;
  private abort: AbortController | null = null;
  private shown_range = "";

  constructor(private ref: QueueRef) {
    show(this.root, false);
    this.panel.root.querySelector("header")!.append(h("button.icon", {
      "aria-label": "Close the range", click: () => set_params({ since: "", until: "" }) }, "×"));
  }

  take({ since, until }: Params): void {
    const range = since && until ? `${since} ${until}` : "";
    if (range === this.shown_range) return;
    this.shown_range = range;
    this.stop();
    show(this.root, range !== "");
    if (range === "") return;
    const [from, to] = [Number(since), Number(until)];
    set_text(this.root.querySelector("h2")!,
      `Events from ${moment(from)} to ${moment(to)}, ${duration(to - from)}`);
    replace(this.panel.body, skeleton(4));
    this.abort = new AbortController();
    const { signal } = this.abort;
    const drawn = this.read(from, to, signal).then(({ events, more }) => this.draw(events, more));
    drawn.catch((error) => {
      if (!signal.aborted) replace(this.panel.body, h("p.fault", {}, words_of_error(error)));
    });
  }

  stop(): void {
    this.abort?.abort();
  }

  private page(after: string, most: number, signal: AbortSignal): Promise<Page> {
    return request<Page>(queue_path(this.ref, "/events", { after, count: String(most) }),
      { signal });
  }

  // The first event after this number; null if it is missing or no longer kept.
  private async first(after: string, signal: AbortSignal): Promise<QueueEvent | null> {
    try {
      return (await this.page(after, 1, signal)).events[0] ?? null;
    } catch (error) {
      if (error instanceof ApiError && error.code === "TRIMMED") return null;
      throw error;
    }
  }

  // Events have numbers that rise with the time: the first one of the range is searched for.
  private async read(from: number, to: number, signal: AbortSignal) {
    const oldest = await this.first("-", signal);
    if (oldest === null) return { events: [], more: false };
    let low = oldest.seq - 1;
    let high = low + 1;
    // No event has a number beyond the newest one.
    for (let found = await this.first(String(high), signal); found !== null && found.time < from;
      found = await this.first(String(high), signal)) {
      low = high;
      high += 2 * (high - oldest.seq) + 64;
    }
    while (oldest.time < from && high - low > 1) {
      const middle = low + Math.floor((high - low) / 2);
      const found = await this.first(String(middle), signal);
      if (found !== null && found.time < from) low = middle;
      else high = middle;
    }
    const page = await this.page(String(low), MOST, signal);
    const events = page.events.filter(({ time }) => time >= from && time <= to);
    const last = page.events.at(-1);
    return { events, more: page.events.length >= MOST && last !== undefined && last.time <= to };
  }

  private draw(events: QueueEvent[], more: boolean): void {
    set_text(this.panel.aside, "");
    if (events.length === 0) {
      return replace(this.panel.body, empty("No events of this time are kept"));
    }
    const kinds = new Map<string, number>();
    for (const event of events) kinds.set(event.type, (kinds.get(event.type) ?? 0) + 1);
    set_text(this.panel.aside, [...kinds].map(([type, number]) =>
      `${count(number)} ${type}`).join(", ") + (more ? `, of the first ${count(MOST)}` : ""));
    // Such a range is examined for its failures.
    const bad = events.filter(({ type }) => type === "failed" || type === "reclaimed");
    const listed = (bad.length > 0 ? [...bad, ...events.filter((event) => !bad.includes(event))]
      : events).slice(0, SHOWN).sort((a, b) => a.seq - b.seq);
    replace(this.panel.body, h("ol.activity.long", { tabindex: 0, "aria-label": "events" },
      ...listed.map((event) => h("li", { "data-event": event.type },
        h("time", {}, moment(event.time, true)),
        job_anchor(this.ref, segment_of(event, "id") ?? ""),
        h("span", {}, event_in_words(event))))),
    events.length > listed.length
      ? h("p.dim", {}, `${plural(events.length - listed.length, "other is",
        "others are")} not listed.`) : null);
  }
}
