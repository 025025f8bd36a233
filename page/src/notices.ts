// Messages outside the views: temporary notices, with an undo if possible. dialogs.ts has the
// questions.
import { h } from "./dom";

const NOTICE_MS = 6000;
const UNDO_MS = 12_000;

// A part of the page from its start, so that screen readers hear what comes into it.
export const notices = h("div.notices", { role: "status", "aria-live": "polite" });

export function notice(text: string, options: { bad?: boolean; undo?: () => void } = {}): void {
  const box = h(options.bad ? "div.notice.bad" : "div.notice", {}, h("span", {}, text));
  const gone = () => box.remove();
  if (options.undo) {
    const undo = options.undo;
    box.append(h("button.link", { click: () => { gone(); undo(); } }, "Undo"));
  }
  box.append(h("button.icon", { click: gone, "aria-label": "Dismiss" }, "×"));
  notices.append(box);
  while (notices.childElementCount > 4) notices.firstElementChild?.remove();
  setTimeout(gone, options.undo ? UNDO_MS : NOTICE_MS);
}

export function words_of_error(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export function failure(what: string, error: unknown): void {
  notice(`${what}: ${words_of_error(error)}`, { bad: true });
}

// Runs an action and reports the result.
export async function act(what: string, failed: string, change: () => Promise<unknown>,
                          undo?: () => void): Promise<boolean> {
  try {
    await change();
  } catch (error) {
    failure(failed, error);
    return false;
  }
  notice(what, { undo });
  return true;
}

// Copies the text as it is at the click.
export function copy_button(text: () => string): HTMLElement {
  return h("button.copy", { type: "button", click: () => {
    const copied = navigator.clipboard?.writeText(text()) ?? Promise.reject(new Error(
      "the browser allows this only on https and on localhost"));
    void act("Copied.", "Not copied", () => copied);
  } }, "Copy");
}
