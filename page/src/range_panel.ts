// What happened in a range of time that was dragged in a chart: its events, if they are still kept.
// A long range shows its first events, and those of all failed runs. The jobs panel, which follows
// the same parameters, lists its failed jobs.
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
// A call examines a part of the log.
const MOST_CALLS = 20;
// A range is examined for the runs that have failed, though their jobs may have been retried.
const BAD = ["failed", "retrying", "reclaimed"];

const is_bad = ({ type }: QueueEvent) => BAD.includes(type);

interface Page {
  events: QueueEvent[];
  next: string;
}

interface Found {
  // In order: the first ones, and those of failed runs.
  events: QueueEvent[];
  // There are further ones, and further ones of failed runs.
  more: boolean;
  more_bad: boolean;
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
    const drawn = this.read(from, to, signal).then((found) => this.draw(found));
    drawn.catch((error) => {
      if (!signal.aborted) replace(this.panel.body, h("p.fault", {}, words_of_error(error)));
    });
  }

  stop(): void {
    this.abort?.abort();
  }

  private page(after: string, most: number, signal: AbortSignal, type: string[] = []):
      Promise<Page> {
    return request<Page>(queue_path(this.ref, "/events", { after, count: String(most), type }),
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

  // Events have numbers that rise with the time: the last one before the range is searched for.
  // Null: there are no events.
  private async last_before(from: number, signal: AbortSignal): Promise<number | null> {
    const oldest = await this.first("-", signal);
    if (oldest === null) return null;
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
    return low;
  }

  private async read(from: number, to: number, signal: AbortSignal): Promise<Found> {
    const before = await this.last_before(from, signal);
    if (before === null) return { events: [], more: false, more_bad: false };
    const page = await this.page(String(before), MOST, signal);
    const within = (all: QueueEvent[]) => all.filter(({ time }) => time >= from && time <= to);
    const events = within(page.events);
    const last = page.events.at(-1);
    const more = page.events.length >= MOST && last !== undefined && last.time <= to;
    if (!more) return { events, more, more_bad: false };
    const { events: bad, more: more_bad } = await this.read_bad(last.seq, to, signal);
    return { events: [...events, ...within(bad)], more, more_bad };
  }

  // Those after this number, up to this time.
  private async read_bad(after: number, to: number, signal: AbortSignal) {
    const events: QueueEvent[] = [];
    let next = String(after);
    for (let call = 0; call < MOST_CALLS && events.length < MOST; ++call) {
      const page = await this.page(next, MOST, signal, BAD);
      events.push(...page.events);
      next = page.next;
      const following = await this.first(next, signal);
      if (following === null || following.time > to) return { events, more: false };
    }
    return { events, more: true };
  }

  // The failed runs of a long range come first: they are those of all of it.
  private counts_in_words({ events, more, more_bad }: Found): string {
    const words = (some: QueueEvent[]) => {
      const kinds = new Map<string, number>();
      for (const { type } of some) kinds.set(type, (kinds.get(type) ?? 0) + 1);
      return [...kinds].map(([type, number]) => `${count(number)} ${type}`).join(", ");
    };
    if (!more) return words(events);
    const bad = words(events.filter(is_bad)) || "no failed run";
    return `${more_bad ? "at least " : ""}${bad}; of the first ${count(MOST)} events: `
      + words(events.slice(0, MOST).filter((event) => !is_bad(event)));
  }

  private draw(found: Found): void {
    const { events, more } = found;
    set_text(this.panel.aside, "");
    if (events.length === 0) {
      return replace(this.panel.body, empty("No events of this time are kept"));
    }
    set_text(this.panel.aside, this.counts_in_words(found));
    const listed = [...events.filter(is_bad), ...events.filter((event) => !is_bad(event))]
      .slice(0, SHOWN).sort((a, b) => a.seq - b.seq);
    replace(this.panel.body, h("ol.activity.long", { tabindex: 0, "aria-label": "events" },
      ...listed.map((event) => h("li", { "data-event": event.type },
        h("time", {}, moment(event.time, true)),
        job_anchor(this.ref, segment_of(event, "id") ?? ""),
        h("span", {}, event_in_words(event))))),
    more ? h("p.dim", {}, "The others are not listed.") : events.length > listed.length
      ? h("p.dim", {}, `${plural(events.length - listed.length, "other is",
        "others are")} not listed.`) : null);
  }
}
