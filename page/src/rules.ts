// The rules of a queue for its groups, keys and workers.
import { is_changed, queue_path, request } from "./api";
import type { QueueRef } from "./api";
import { value_text } from "./setting_fields";
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

// `path`: of the queue. `name`: a segment.
export function path_with_rule(path: string, scope: Scope, name: string): string {
  return `${path}${path.includes("?") ? "&" : "?"}${scope}=${name}`;
}

// Fields and values for the parameter `was`.
export function seen(settings: Config): string[] {
  return Object.entries(settings).map(([name, value]) => `${name}=${value_text(value)}`);
}

// Undoes the setting of a field that no rule had for this name: its rule is removed. One that has
// got other fields since stays, and gets what was in force `before`, as no request removes a field.
// Returns whether it is gone.
export async function take_back(ref: QueueRef, scope: Scope, name: string, field: string,
                                set: Config[string], before: Config[string]): Promise<boolean> {
  const was = seen({ [field]: set });
  const path = (rest: string) => path_with_rule(queue_path(ref, rest, { was }), scope, name);
  try {
    await request(path("/config"), { method: "DELETE" });
    return true;
  } catch (error) {
    if (!is_changed(error)) throw error;
  }
  await request(path(""), { method: "PATCH", body: { [field]: before } });
  return false;
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
