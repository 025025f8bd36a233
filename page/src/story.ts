// What has happened to one job, read out of the queue's event log.
//
// The log has no index by job. Its numbers have no gaps and its times grow, so the place where the
// job was added is found by bisection, and reading goes on from there, a page at a time.
import { ApiError, queue_path, request } from "./api";
import type { QueueRef } from "./api";
import { segment_of } from "./bytes";
import type { QueueEvent, Stats } from "./types";

const PAGE = 1000;
// Read without being asked for; more on request.
const MOST_PAGES = 40;

interface Page {
  events: QueueEvent[];
  next: string;
}

export class Story {
  readonly events: QueueEvent[] = [];
  // Everything up to now has been read.
  complete = false;
  // There is more, and the bound is reached.
  bounded = false;
  looked_at = 0;
  // Events before this are not kept any more, or were never looked at.
  begins_late = false;
  // The queue keeps no events.
  silent = false;
  private after: string | null = null;
  private pages_left = MOST_PAGES;

  constructor(private ref: QueueRef, private id: string) {}

  private page(after: string, count: number, signal: AbortSignal): Promise<Page> {
    const query = { after, count: String(count) };
    return request<Page>(queue_path(this.ref, "/events", query), { signal });
  }

  // The number before the first event that is not older than `since`. Every total counts events,
  // so their sum is a number that the log has reached.
  private async find_begin(since: number, stats: Stats, signal: AbortSignal): Promise<string> {
    const [oldest] = (await this.page("-", 1, signal)).events;
    if (!oldest) {
      this.silent = stats.added > 0;
      return "-";
    }
    this.begins_late = oldest.time > since && oldest.seq > 1;
    if (oldest.time > since) return "-";
    let low = oldest.seq;
    let high = stats.added + stats.started + stats.completed + stats.failed + stats.expired
      + stats.cancelled + stats.reclaimed - 1;
    while (high - low > PAGE / 2) {
      const middle = Math.floor((low + high) / 2);
      const [event] = (await this.page(String(middle), 1, signal)).events;
      if (event && event.time < since) low = middle;
      else high = middle;
    }
    return String(Math.max(low - 1, oldest.seq - 1));
  }

  // Reads on, as far as the bound allows; what it finds is in `events`. `progress` after each page.
  async read(since: number, stats: Stats, signal: AbortSignal, progress: () => void) {
    try {
      if (this.after === null) {
        // Events and jobs are told by one clock; what is just before it does no harm.
        this.after = await this.find_begin(since - 5, stats, signal);
      }
      for (;;) {
        if (this.pages_left === 0) {
          this.bounded = true;
          return;
        }
        const { events, next } = await this.page(this.after, PAGE, signal);
        this.events.push(...events.filter((event) => segment_of(event, "id") === this.id));
        this.looked_at += events.length;
        this.after = events.length ? next : this.after;
        // Pages of what is new count once they are full ones.
        if (events.length < PAGE) {
          this.complete = true;
          return;
        }
        this.pages_left -= 1;
        progress();
      }
    } catch (error) {
      // What stood between is not kept any more: go on with what is.
      if (!(error instanceof ApiError) || error.code !== "TRIMMED") throw error;
      this.begins_late = true;
      this.after = "-";
    }
  }

  read_further(): void {
    this.pages_left = MOST_PAGES;
    this.bounded = false;
  }

  read_all(): void {
    this.events.length = 0;
    this.looked_at = 0;
    this.after = "-";
    this.read_further();
  }
}
