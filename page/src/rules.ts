// The rules of a queue for its groups, keys and workers.
import { queue_path, request } from "./api";
import type { QueueRef } from "./api";
import type { Config } from "./types";

const PAGE = 1000;
const MOST_PAGES = 10;

export type Scope = "group" | "key" | "worker";

export interface Rule {
  scope: Scope;
  glob: string | null;
  glob_base64?: string;
  // The one that it names; null: it matches several.
  name: string | null;
  name_base64?: string;
  settings: Config;
}

// In the server's order: of patterns of one scope the one that was changed last is the last.
export interface Rules {
  rules: Rule[];
  // There are more.
  cut: boolean;
}

export async function ask_rules(ref: QueueRef, signal: AbortSignal): Promise<Rules> {
  const rules: Rule[] = [];
  let cursor: string | null = null;
  let pages = 0;
  do {
    const query: Record<string, string> = { limit: String(PAGE) };
    if (cursor !== null) query.cursor = cursor;
    const answer: { rules: Rule[]; cursor: string | null } =
      await request(queue_path(ref, "/rules", query), { signal });
    rules.push(...answer.rules);
    cursor = answer.cursor;
  } while (cursor !== null && ++pages < MOST_PAGES);
  return { rules, cut: cursor !== null };
}
