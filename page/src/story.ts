// The history of one job, as far back as the queue's event log goes.
//
// The server searches the log, a bounded part per call; each response has the events found and how
// far the search has come.
import { ApiError, queue_path, request } from "./api";
import type { QueueRef } from "./api";
import type { QueueEvent } from "./types";

// More events of one job are read on request.
const MOST = 1000;

interface Page {
  events: QueueEvent[];
  next: string;
}

export class Story {
  readonly events: QueueEvent[] = [];
  // Everything up to now has been read.
  complete = false;
  // There are more, and the limit has been reached.
  bounded = false;
  // Events were removed before they were read.
  begins_late = false;
  private after = "-";
  private room = MOST;

  constructor(private ref: QueueRef, private id: string) {}

  // Continues reading; calls `progress` after each response.
  async read(signal: AbortSignal, progress: () => void): Promise<void> {
    try {
      while (this.room > 0) {
        const query = { after: this.after, count: String(this.room) };
        // A segment is already encoded.
        const path = `${queue_path(this.ref, "/events", query)}&id=${this.id}`;
        const { events, next } = await request<Page>(path, { signal });
        const last = this.events.at(-1)?.seq ?? 0;
        this.events.push(...events.filter((event) => event.seq > last));
        this.room -= events.length;
        this.complete = next === this.after;
        this.after = next;
        if (this.complete) return;
        progress();
      }
      this.bounded = true;
    } catch (error) {
      // The events in between are no longer kept: continue with the remaining ones.
      if (!(error instanceof ApiError) || error.code !== "TRIMMED") throw error;
      this.begins_late = true;
      this.after = "-";
    }
  }

  read_further(): void {
    this.room = MOST;
    this.bounded = false;
  }
}
