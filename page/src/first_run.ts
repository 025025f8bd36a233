// What is shown instead of a queue that has no jobs yet, or is not there: its first job, to be
// pasted, with this server's port.
import { overview_link } from "./address";
import { state } from "./api";
import type { QueueRef } from "./api";
import { is_addressable, shown } from "./bytes";
import { h, replace } from "./dom";
import { copy_button } from "./notices";
import { ask_to_make } from "./queue_actions";
import { empty } from "./view";

type Language = "redis-cli" | "Python" | "TypeScript";

function code(language: Language, queue: string, db: number): string {
  const port = state.session?.port ?? 6379;
  const host = location.hostname || "localhost";
  const url = `redis://${host}:${port}${db ? `/${db}` : ""}`;
  if (language === "Python") {
    return `from sluice import Queue\n\nqueue = Queue("${queue}", "${url}")\n`
      + "job = queue.add({\"to\": \"ada\"}, pri=\"high\")\n"
      + "print(job.id, job.state, \"at position\", job.position)\n";
  }
  if (language === "TypeScript") {
    return "import { Queue } from '@sluice/queue'\n\n"
      + `const queue = new Queue('${queue}', { url: '${url}' })\n`
      + "const job = await queue.add({ to: 'ada' }, { pri: 'high' })\n"
      + "console.log(job.id, job.state, 'at position', job.position)\nqueue.close()\n";
  }
  const at = (host === "localhost" || host === "127.0.0.1" ? "" : ` -h ${host}`)
    + (port === 6379 ? "" : ` -p ${port}`) + (db ? ` -n ${db}` : "");
  return `redis-cli${at} Q.ADD ${queue} '*' '{"to":"ada"}' PRI HIGH\n`;
}

// Tabs with the code of each language. A name that is not of plain letters is not put into code.
export function first_job(name: string, db: number): HTMLElement {
  const queue = /^[\w:.-]+$/.test(name) ? name : "mail";
  const languages: Language[] = ["redis-cli", "Python", "TypeScript"];
  const body = h("div.code");
  const tabs = languages.map((language) => h("button", { role: "tab", type: "button",
    "aria-selected": "false", click: () => choose(language) }, language));
  const choose = (language: Language) => {
    for (const tab of tabs) tab.setAttribute("aria-selected", String(tab.textContent === language));
    const text = code(language, queue, db);
    replace(body, h("pre", { tabindex: 0 }, text), copy_button(() => text));
  };
  choose("redis-cli");
  return h("div.first-job", {},
    h("div.tabs", { role: "tablist", "aria-label": "Language" }, ...tabs), body,
    state.session?.port ? null : h("p.dim", {}, "This server does not show its port here; "
      + "6379 is the usual one."));
}

export function unused_queue({ queue, db }: QueueRef): HTMLElement {
  return empty("This queue is empty",
    h("p", {}, "No job has been added to it yet. Paste this into a terminal or a program:"),
    first_job(shown(queue), db));
}

export function missing_queue({ queue, db }: QueueRef): HTMLElement {
  const make = h("button.primary", { click: () => ask_to_make(db, queue) }, "Make it…");
  const find = h("button", { title: "Find a queue (/)", click: () =>
    document.querySelector<HTMLInputElement>(".search input")?.select() }, "Find another…");
  return empty(`There is no queue ${shown(queue)}`,
    h("p", {}, "It was deleted, or it has not had a job or a setting yet, or its name is another "
      + "one."),
    h("div.buttons", {}, state.may("operate") && is_addressable(queue) ? make : null, find,
      h("a.button", { href: overview_link(db) }, "All queues")),
    h("p", {}, "Its first job makes it. Paste this into a terminal or a program:"),
    first_job(shown(queue), db));
}
